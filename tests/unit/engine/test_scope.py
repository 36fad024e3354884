"""Check which run a step belongs to: one a trace, one an outermost agent, or one a conversation."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from reach_otel.engine.scope import AgentScope, ConversationScope, TraceScope, plain_id, qualify
from reach_otel.span.step import Step
from tests.support.engines import Driver, verdicts
from tests.support.steps import Steps
from tests.support.tasks import goal, task


def test_an_explicit_run_is_a_run_in_every_scope() -> None:
    """A step that names its run belongs to it, whatever trace it is in."""
    step = Steps().tool("find", 0, 1, run_id="mine")
    for scope in (TraceScope(), AgentScope(9), ConversationScope(9)):
        placement = scope.place(step)
        assert (placement.run_id, placement.mixed) == ("mine", True)


def test_span_ids_of_two_traces_stay_apart() -> None:
    """In a run of several traces equal span ids are different spans, and are shown as they were sent."""
    one, two = (qualify(Steps(run).tool("find", 0, 1, span_id="s", parent="p")) for run in (1, 2))
    assert one.span_id != two.span_id
    assert one.parent_id != two.parent_id
    assert plain_id(one.span_id) == plain_id(two.span_id) == "s"


def two_agents() -> list[Step]:
    """Tell of two agents in one trace under one web request; the second has a helper."""
    steps = Steps()
    steps.tool("find", 1, 2, parent="first", args={}, result=1)
    steps.agent("bot", 0, 3, parent="chain", span_id="first", output="done")
    steps.tool("find", 5, 6, parent="helper", args={}, result=1)
    steps.agent("helper", 4, 7, parent="second", span_id="helper")
    steps.agent("bot", 4, 8, parent="web", span_id="second", output="done")
    steps.add("other", 0, 3, parent="web", span_id="chain")
    steps.add("other", 0, 9, span_id="web")
    return steps.made


def agent_runs(order: Any) -> dict[str, dict[str, Any]]:
    records = verdicts((task(goal("find")),), [[step] for step in order], run_scope="agent")
    return {run_id.rpartition("-")[2]: record for run_id, record in records.items()}


def test_one_run_an_outermost_agent() -> None:
    """Steps go with the outermost agent above them, in any order."""
    expected = agent_runs(two_agents())
    assert sorted(expected) == ["first", "second"]
    assert {record["outcome"] for record in expected.values()} == {"success"}
    for order in list(permutations(two_agents()))[::97]:
        assert agent_runs(order) == expected


def test_many_agents_of_one_trace_are_placed_in_no_time() -> None:
    """The cost of a step does not grow with the number of agents in its trace."""
    steps = Steps()
    for n in range(3_000):
        steps.tool("find", 3 * n, 3 * n + 1, parent=f"a{n}")
        steps.agent("bot", 3 * n, 3 * n + 2, parent="web", span_id=f"a{n}")
    scope = AgentScope(9)
    runs = {scope.place(step).run_id for step in steps.made}
    assert len(runs) == 3_000


def test_the_agent_scope_keeps_no_content() -> None:
    """To place steps only their place in the tree is remembered, and of so many traces."""
    scope = AgentScope(2)
    for run in range(5):
        scope.place(Steps(run).tool("find", 0, 1, args={"secret": 1}, result="secret"))
    assert len(scope._traces) == 2
    assert "secret" not in repr([(known.tree.tools, known.spans) for known in scope._traces.values()])


def turn(run: int, start: int, *, told: bool) -> list[Step]:
    """Tell one turn of a conversation, whose id stands on the agent's span or is told by the model at its start."""
    steps = Steps(run)
    steps.add("other", start, start + 1, span_id="wrap", parent="root")
    steps.model(start, start + 1, parent="root", conversation_id="talk" if told else None)
    steps.tool("find", start + 1, start + 2, parent="wrap", span_id="one", args={"n": run}, result=run)
    steps.agent("bot", start, start + 3, span_id="root", conversation_id="talk", output="done")
    return steps.made


def test_one_run_a_conversation() -> None:
    """Traces of one conversation are one run, also if its id turns up late, in any order."""
    tasks = (task(goal("find")),)
    turns = [*turn(1, 0, told=False), *turn(2, 10, told=True)]
    expected = verdicts(tasks, [turns], run_scope="conversation")
    assert list(expected) == ["talk"]
    assert expected["talk"]["actions"]["effective"] == 2
    for order in list(permutations(turns))[::4999]:
        assert verdicts(tasks, [[step] for step in order], run_scope="conversation") == expected


def test_steps_found_to_belong_to_a_judged_run_are_late() -> None:
    """A part of a run that has its verdict already is forgotten and counted, so that nobody waits for it."""
    driver = Driver((task(goal("find")),), run_scope="conversation", idle_seconds=5)
    driver.feed(turn(1, 0, told=True))
    driver.wait(6)
    assert list(driver.records) == ["talk"]
    driver.feed(turn(2, 10, told=False)[:3])
    driver.feed(turn(2, 10, told=False)[3:])
    assert driver.merged == {Steps(2).trace_id}
    assert driver.counts[("late", "verdict")] == 3
    assert driver.engine.runs() == []


def test_a_run_that_got_its_name_late_falls_due_as_well() -> None:
    """A step which only tells a run's name, and is itself not kept, still sets its deadline."""
    driver = Driver((task(goal("find")),), run_scope="conversation", idle_seconds=5, actions_max=1)
    steps = Steps()
    driver.feed([steps.tool("find", 0, 1)])
    driver.feed([steps.tool("find", 1, 2, conversation_id="talk")])
    assert driver.counts[("overflow", "actions")] == 1
    driver.wait(6)
    assert list(driver.records) == ["talk"]

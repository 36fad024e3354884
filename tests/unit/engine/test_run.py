"""Check that a run is the same whatever the order of its steps, and what it says of itself."""

from __future__ import annotations

from itertools import permutations

import pytest

from reach_otel.engine.action import Action
from reach_otel.engine.conclude import conclude
from reach_otel.engine.plan import no_plan, plan_of
from reach_otel.engine.run import Run
from reach_otel.span.step import Step
from reach_otel.task import Task
from tests.support.engines import verdicts
from tests.support.steps import Steps, answer, call, plain
from tests.support.tasks import goal, task


def run_of(steps: list[Step], of: Task | None = None) -> Run:
    run = Run("r", "t", no_plan() if of is None else plan_of(of), 1_000)
    for step in steps:
        run.add(step)
    return run


def test_conditions_on_the_agent_do_not_depend_on_the_order() -> None:
    """An action bears the name of the nearest agent, also where a wrapper between them comes last."""
    steps = Steps()
    steps.tool("find", 2, 3, parent="chain", args={}, result=1)
    steps.model(3, 4, parent="chain", output="found")
    steps.add("other", 1, 5, parent="bot", span_id="chain")
    steps.agent("bot", 0, 6, span_id="bot")
    goals = [
        goal("acted", verify={"tool": "find", "when": "agent == 'bot'"}),
        goal("said", verify={"when": "tool == null && agent == 'bot' && text == 'found'"}),
    ]
    for order in permutations(steps.made):
        [record] = verdicts((task(*goals),), [[step] for step in order]).values()
        assert [m["state"] for m in record["milestones"]] == ["reached", "reached"]


def test_a_tool_that_ends_after_its_agent_bears_its_name() -> None:
    """What an agent started and did not wait for is the agent's too."""
    steps = Steps()
    steps.agent("bot", 0, 2, span_id="bot")
    steps.tool("find", 1, 4, parent="bot")
    run = run_of(steps.made, task(goal("acted", verify={"tool": "find", "when": "agent == 'bot'"})))
    assert run.summary().milestones[0].state == "reached"


@pytest.mark.parametrize(
    ("agents", "name"),
    [
        ([("boss", None, 0), ("helper", "s0", 1)], "boss"),
        ([(None, None, 0), ("helper", "s0", 1)], "helper"),
        ([("second", None, 2), ("first", None, 1)], "first"),
    ],
)
def test_a_run_is_its_outermost_named_agent_s(agents: list[tuple[str | None, str | None, int]], name: str) -> None:
    """The earliest outermost agent with a name, else the earliest named one."""
    steps = Steps()
    for n, (agent, parent, start) in enumerate(agents):
        steps.add("agent", start, 9, agent=agent, parent=parent, span_id=f"s{n}")
    for order in (steps.made, steps.made[::-1]):
        run = run_of(order)
        for step in order:
            if step.agent is not None and step.agent not in run.evidence.agents:
                run.evidence.agents += (step.agent,)
        assert run.agent == name


def test_a_text_read_late_is_known_from_its_own_time_on() -> None:
    """What the user said before a call grounds it, whenever the span that tells so arrives."""
    steps = Steps()
    steps.tool("find", 2, 3, parent="root", args={"sku": "SKU-1"}, result={"n": 1})
    steps.tool("find", 4, 5, parent="root", args={"sku": "SKU-2"}, result={"n": 2})
    steps.agent("bot", 0, 6, span_id="root", user="Find SKU-1.")
    run = run_of(steps.made, task(goal("find"), grounded=["sku"]))
    run.settle()
    assert [(f.finding, f.action) for f in run.fold.findings] == [("fabricated", 2)]


def test_what_another_agent_is_told_is_not_the_user_s_word() -> None:
    """Texts given within a tool are no source."""
    steps = Steps()
    steps.tool("ask", 1, 4, parent="root", span_id="ask", args={}, result={"n": 1})
    steps.agent("helper", 2, 3, parent="ask", span_id="helper", user="Find SKU-9.")
    steps.tool("find", 5, 6, parent="root", args={"sku": "SKU-9"})
    steps.agent("bot", 0, 7, span_id="root", user="Go.")
    run = run_of(steps.made, task(goal("find"), grounded=["sku"]))
    run.settle()
    assert [f.finding for f in run.fold.findings] == ["fabricated"]


def test_a_summary_is_up_to_date() -> None:
    """A look folds what is stale, also after the task became another one."""
    steps = Steps()
    steps.tool("find", 4, 5, args={}, result=1)
    steps.tool("send", 1, 2, args={}, result=1)
    run = run_of(steps.made)
    assert run.summary().actions == 2
    run.replan(plan_of(task(goal("send"), goal("find"), goal("x"))))
    assert [m.state for m in run.summary().milestones] == ["reached", "reached", "missed"]


def test_faults_are_told_once_by_kind() -> None:
    """Folding anew, in another order and with more steps, tells new faults only."""
    of = task(goal("a", verify={"when": "result.n > 'x'"}), goal("b", verify={"python": "operator:concat"}))
    steps = Steps()
    run = run_of([steps.tool("a", 4, 5, args={}, result={"n": 1})], of)
    assert sorted(run.new_faults()) == ["cel", "python"]
    run.add(steps.tool("a", 1, 2, args={}, result={"n": 1}))
    run.settle()
    assert sorted(run.new_faults()) == ["cel", "python"]
    run.add(steps.tool("a", 0, 1, args={}, result={"n": "z"}))
    run.settle()
    assert (run.new_faults(), run.new_faults()) == (["python"], [])


def test_a_part_brings_its_faults_along() -> None:
    """What was told of a run that turned out to be a part is not told again."""
    of = task(goal("a", verify={"when": "result.n > 'x'"}))
    whole = run_of([Steps(1).tool("a", 0, 1, args={}, result={"n": 1})], of)
    part = run_of([Steps(2).tool("a", 2, 3, args={}, result={"n": 1})], of)
    assert (whole.new_faults(), part.new_faults()) == (["cel"], ["cel"])
    whole.absorb(part)
    whole.settle()
    assert (whole.fold.actions, whole.new_faults()) == (2, [])


def test_a_look_changes_nothing() -> None:
    """Writing the record of an open run leaves the run to go on as before."""
    steps = Steps()
    for n in range(4):
        steps.tool("find", 2 * n, 2 * n + 1, parent="root", args={"n": n}, result={"ref": f"REF-10{n}"})
    steps.agent("bot", 0, 9, span_id="root", output="REF-103")
    of = task(goal("find", used=True))
    looked, left = run_of([], of), run_of(steps.made, of)
    for step in steps.made:
        looked.add(step)
        conclude(looked, final=False)
    assert plain(conclude(looked, final=True)) == plain(conclude(left, final=True))


def talk(turns: int) -> list[Step]:
    """Tell a run of several turns, in each of which a tool is called that does not exist."""
    made = []
    for turn in range(turns):
        steps, now = Steps(turn), 10 * turn
        asks = (call("find", f"c{turn}"), call("fly", f"f{turn}"))
        steps.model(now, now + 1, parent=f"root{turn}", calls=asks, span_id=f"m{turn}")
        steps.tool("find", now + 2, now + 3, parent=f"root{turn}", call_id=f"c{turn}", args={}, span_id=f"t{turn}")
        steps.agent("bot", now, now + 5, span_id=f"root{turn}")
        made += steps.made
    return made


def test_calls_of_one_turn_are_not_given_up_for_the_end_of_another() -> None:
    """While a later turn goes on, only the unanswered calls of turns that have ended failed."""
    run = run_of(talk(2)[:4])
    assert [(a.tool, a.ok) for a in conclude_actions(run)] == [("fly", False), ("find", True)]
    run.add(talk(2)[4])
    assert [(a.tool, a.ok) for a in conclude_actions(run)] == [("fly", False), ("find", True), ("find", True)]
    run.add(talk(2)[5])
    assert [a.tool for a in conclude_actions(run)] == ["fly", "find", "fly", "find"]


def conclude_actions(run: Run) -> list[Action]:
    run.settle()
    return run.assembly.actions


def test_a_turn_folds_the_run_anew_once() -> None:
    """The turns of a conversation do not make each of its steps cost a new fold."""
    run, folds = run_of([]), []
    for step in talk(30):
        run.add(step)
        before = run.fold
        run.settle()
        folds.append(run.fold is not before)
    assert sum(folds) == 30


def test_what_is_answered_after_all_was_not_given_up() -> None:
    """A late answer, even one that says nothing, makes a call which was given up a good one."""
    run = run_of(talk(1))
    run.settle()
    assert [a.ok for a in run.assembly.actions] == [False, True]
    run.add(Steps().model(7, 8, answers=(answer("f0"),), span_id="later"))
    run.settle()
    assert [a.ok for a in run.assembly.actions] == [True, True]

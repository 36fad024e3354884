"""Check that each call is one action, and that taking steps one by one gives what seeing all of them gives."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from reach_otel.engine.action import FOREVER_NS
from reach_otel.engine.assemble import Assembly, Effect
from reach_otel.engine.run import step_key
from reach_otel.engine.tree import Tree
from reach_otel.span.step import Step
from tests.support.histories import make_run
from tests.support.steps import Steps, answer, call


def rebuilt(steps: list[Step], *, over_ns: int | None = None, actions_max: int = 1_000) -> Assembly:
    tree, assembly = Tree(), Assembly(actions_max)
    for step in steps:
        tree.add(step)
    assembly.rebuild(sorted(steps, key=step_key), tree, over_ns=over_ns)
    return assembly


def plain(assembly: Assembly) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(action) for action in assembly.actions]


@pytest.mark.parametrize("seed", range(150))
def test_taking_steps_one_by_one_is_seeing_all(seed: int) -> None:
    """After each step that came in order, the short cut has the same actions as the definition, or asks for it."""
    random = Random(seed)
    steps = sorted(make_run(random, turns=8), key=step_key)
    tree, assembly = Tree(), Assembly()
    for n, step in enumerate(steps, 1):
        awaited = tree.add(step)
        if assembly.extend(step, tree, awaited) is Effect.REBUILD:
            assembly.rebuild(steps[:n], tree, over_ns=None)
        assert plain(assembly) == plain(rebuilt(steps[:n]))


def test_steps_in_order_need_no_rebuilding() -> None:
    """A plain run of questions, calls with ids, and answers is assembled in one pass."""
    steps = Steps()
    tree, assembly = Tree(), Assembly()
    for n in range(0, 30, 3):
        steps.model(n, n + 1, parent="root", calls=(call("find", f"c{n}"),), answers=(answer(f"c{n - 3}", n),))
        steps.tool("find", n + 1, n + 2, parent="root", call_id=f"c{n}", args={"n": n}, result=n)
    for step in steps.made:
        tree.add(step)
        assert assembly.extend(step, tree, awaited=False) is not Effect.REBUILD
    assert len(assembly.actions) == 10


def test_nested_spans_of_one_tool_are_one_call() -> None:
    """Place and time are the outer span's, the tool's name the inner one's, content that of whoever has it."""
    steps = Steps()
    steps.tool("Find", 0, 9, span_id="outer", args={"n": 1})
    steps.add("other", 1, 8, parent="outer", span_id="client")
    steps.tool("mcp__shop__find", 2, 7, parent="client", result={"a": 1}, error="late")
    [action] = rebuilt(steps.made).actions
    assert (action.span_id, action.tool, action.args, action.result) == ("outer", "mcp__shop__find", {"n": 1}, {"a": 1})
    assert (action.ok, action.error) == (False, "late")


def test_an_equal_id_makes_one_call_of_spans_that_overlap() -> None:
    """Spans side by side with one call id are one call if they share a moment; touching is not enough, nor is an id."""
    steps = Steps()
    steps.tool("find", 0, 4, call_id="c1")
    steps.tool("find", 3, 6, call_id="c1")
    steps.tool("find", 6, 8, call_id="c1")
    steps.tool("send", 3, 6, call_id="c1")
    assert [(a.tool, a.span_id[-1]) for a in rebuilt(steps.made).actions] == [
        ("find", "1"),
        ("send", "4"),
        ("find", "3"),
    ]


def test_a_tool_around_an_agent_is_a_handoff() -> None:
    """An agent used as a tool is handed over to, whatever the tool calls itself."""
    steps = Steps()
    steps.tool("ask", 0, 5, span_id="ask", parent="root")
    steps.agent("helper", 1, 4, parent="ask", span_id="helper")
    steps.tool("find", 2, 3, parent="helper")
    assert [(a.kind, a.to_agent) for a in rebuilt(steps.made).actions] == [("tool", None), ("handoff", "helper")]


def test_answers_of_an_earlier_turn_are_recalled_once() -> None:
    """Results in the history which no call of this run asked for are kept as sources, from their first showing."""
    steps = Steps()
    old = answer("old", {"ref": "R-1"})
    for start in (0, 4):
        steps.model(start, start + 1, answers=(old,))
    assembly = rebuilt(steps.made)
    assert assembly.recalled == [(old, steps.made[0].start_ns)]
    assert assembly.actions == []


def test_a_span_with_no_result_takes_the_answer_with_its_id() -> None:
    """Also when the message that asked for it was lost."""
    steps = Steps()
    steps.tool("send", 0, 1, call_id="c2", args={})
    steps.model(2, 3, answers=(answer("c2", {"sent": 1}),))
    [action] = rebuilt(steps.made).actions
    assert action.result == {"sent": 1}


def test_unanswered_calls_are_given_up_at_the_end_only() -> None:
    """A call with neither span nor answer is pending until the run has ended, then it failed."""
    steps = Steps()
    steps.model(0, 1, calls=(call("fly", "c1"),))
    assert rebuilt(steps.made, over_ns=FOREVER_NS).actions == []  # a model call alone tells nothing of what came of it
    steps.agent("bot", 0, 2)
    assert rebuilt(steps.made).actions == []
    [action] = rebuilt(steps.made, over_ns=FOREVER_NS).actions
    assert (action.ok, action.error, action.derived) == (False, "no result", True)
    assert (action.start_ns, action.end_ns) == (steps.made[0].end_ns,) * 2


def test_no_more_actions_are_kept_than_allowed() -> None:
    """Derived actions count towards the limit too."""
    steps = Steps()
    steps.model(0, 1, calls=tuple(call("find", f"c{n}") for n in range(5)))
    steps.agent("bot", 0, 2)
    assert len(rebuilt(steps.made, over_ns=FOREVER_NS, actions_max=3).actions) == 3


def test_the_span_with_the_id_takes_the_call_back() -> None:
    """A span of equal arguments that came first loses the call to the one that bears its id."""
    steps = Steps()
    steps.model(0, 1, calls=(call("act", "c1", {"n": 1}),))
    steps.tool("act", 2, 3, args={"n": 1})
    steps.tool("act", 4, 5, call_id="c1", result=1)
    tree, assembly = Tree(), Assembly()
    effects = [assembly.extend(step, tree, tree.add(step)) for step in steps.made]
    assert effects == [Effect.NONE, Effect.APPENDED, Effect.REBUILD]
    assert [(a.call_id, a.args) for a in rebuilt(steps.made).actions] == [(None, {"n": 1}), ("c1", {"n": 1})]

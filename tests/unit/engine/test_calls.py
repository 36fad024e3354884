"""Check which call of a model an action carries out, and what becomes of calls with no span."""

from __future__ import annotations

from typing import Any

import pytest

from reach_otel.engine.action import Action
from reach_otel.engine.calls import Asks, is_put_off, match, plain_name
from reach_otel.span.step import Call
from tests.support.engines import verdict, verdicts
from tests.support.steps import Steps, answer, at, call
from tests.support.tasks import goal, task


@pytest.mark.parametrize(
    ("tool", "plain"),
    [("Ask Bob", "ask_bob"), ("mcp__crm__ask-bob", "ask_bob"), ("functions.ask_bob", "ask_bob"), ("搜索", "搜索")],
)
def test_names_are_compared_plainly(tool: str, plain: str) -> None:
    """Prefixes of servers, case and punctuation do not matter."""
    assert plain_name(tool) == plain


def span(tool: str, start: int, *, call_id: str | None = None, args: Any = None) -> Action:
    return Action(
        kind="tool",
        span_id=f"span@{start}",
        start_ns=at(start),
        end_ns=at(start + 1),
        tool=tool,
        call_id=call_id,
        args=args,
        has_args=args is not None,
    )


def owners(asking: Steps, *spans: Action) -> dict[str, tuple[int, int]]:
    """Give for each span the start (in ticks) and the place in its message of the call it carries out."""
    asks = Asks()
    for step in asking.made:
        asks.add(step)
    return {
        action.span_id: ((asked.start_ns - at(0)) // (at(1) - at(0)), asked.index)
        for asked, action in match(asks, list(spans))
    }


def test_an_id_goes_before_arguments_and_arguments_before_the_name() -> None:
    """A call id decides; where either side has none, equal arguments do, and only then the name."""
    asking = Steps()
    asking.model(0, 1, calls=(call("find", "c1", {"n": 1}), call("find", None, {"n": 2}), call("find", None, {"n": 3})))
    by_id, by_args = span("find", 4, call_id="c1", args={"n": 2}), span("find", 3, args={"n": 2})
    assert owners(asking, by_id, by_args, span("find", 2, args={"n": 9})) == {
        "span@4": (0, 0),
        "span@3": (0, 1),
        "span@2": (0, 2),
    }


def test_the_latest_message_that_asks_owns_the_span() -> None:
    """What was asked twice and run once was run for the second asking; a later message cannot have asked for it."""
    asking = Steps()
    for start in (0, 4, 9):
        asking.model(start, start + 1, calls=(call("find", "again", {"n": 1}),))
    assert owners(asking, span("find", 6, call_id="again")) == {"span@6": (4, 0)}
    assert owners(asking, span("find", 6, args={"n": 1})) == {"span@6": (4, 0)}


def test_the_name_alone_is_enough_until_the_agent_asks_again() -> None:
    """A span of other arguments belongs to the call of that name only while its agent has asked for nothing else."""
    asking = Steps()
    asking.model(0, 1, calls=(call("find", None, {"n": 1}),), agent="a")
    other_agent = Steps(2).model(2, 3, calls=(call("send"),), agent="b")
    asking.made.append(other_agent)
    assert owners(asking, span("find", 4, args={"n": 2})) == {"span@4": (0, 0)}
    asking.model(3, 4, calls=(call("send"),), agent="a")
    assert owners(asking, span("find", 4, args={"n": 2})) == {}


def test_one_call_that_two_spans_report_is_asked_once() -> None:
    """Two model spans that overlap in time and ask for the same are two reports of one call."""
    asking = Steps()
    asking.model(0, 4, calls=(call("find", "c1"),))
    asking.model(1, 5, calls=(call("find", "c1"),))
    asking.model(6, 7, calls=(call("find", "c1"),))
    asks = Asks()
    for step in asking.made:
        asks.add(step)
    assert [(a.nth, a.start_ns) for a in asks.all] == [(0, at(0)), (1, at(6))]
    assert asks.open == 2


def test_many_calls_of_one_name_are_matched_in_no_time() -> None:
    """Matching n calls with n spans does not compare each with each."""
    asking, spans = Steps(), []
    for n in range(3_000):
        asking.model(4 * n, 4 * n + 1, calls=(call("find", None, {"n": n}),))
        spans.append(span("find", 4 * n + 2, args={"n": n}))
    assert len(owners(asking, *spans)) == 3_000


def test_a_call_put_off_did_not_happen() -> None:
    """A step that was interrupted to ask a person is no action, and nor is the call it answers to."""
    steps = Steps()
    steps.model(0, 1, parent="root", calls=(call("send", "c1"),))
    steps.add("other", 1, 2, parent="root", tool="send", call_id="c1")
    steps.agent("bot", 0, 3, span_id="root")
    assert is_put_off(steps.made[1])
    record = verdict(task(goal("send")), steps.made)
    assert sum(record["actions"].values()) == 0


def story(*, asks: Any, says: Any = None) -> dict[str, Any]:
    """Let a model ask for one call that leaves no span, and give the record."""
    steps = Steps()
    steps.model(0, 1, parent="root", calls=(asks,))
    steps.model(4, 5, parent="root", answers=() if says is None else (says,))
    steps.agent("bot", 0, 6, span_id="root")
    return verdict(task(goal("find")), steps.made)


def test_an_answered_call_with_no_span_is_an_action() -> None:
    """Its result is the answer; it lasts from the question to the answer."""
    record = story(asks=call("find", "c1", {"n": 1}), says=answer("c1", {"ref": 1}))
    assert (record["milestones"][0]["state"], record["actions"]["effective"]) == ("reached", 1)


def test_a_handover_needs_no_answer() -> None:
    """Who hands over may never hear an answer: that is no failure."""
    record = story(asks=Call("find", "c1", kind="handoff"))
    assert (record["obstacles"], record["milestones"][0]["state"]) == ((), "reached")


def test_a_call_that_was_never_answered_failed() -> None:
    """A tool that does not exist leaves neither a span nor an answer."""
    record = story(asks=call("find", "c1", {"n": 1}))
    assert [o["kind"] for o in record["obstacles"]] == ["error"]


def test_an_error_in_the_answer_is_the_call_s() -> None:
    """An answer that tells of an error and has no result makes the span's call a failed one, in any order."""
    steps = Steps()
    steps.model(0, 1, parent="root", calls=(call("find", "c1"),))
    steps.tool("find", 1, 2, parent="root", call_id="c1", args={})
    steps.model(4, 5, parent="root", answers=(answer("c1", error="no such thing"),))
    steps.agent("bot", 0, 6, span_id="root")
    for order in (steps.made, steps.made[::-1]):
        [record] = verdicts((task(goal("find")),), [order]).values()
        assert [o["kind"] for o in record["obstacles"]] == ["error"]

"""Check that a trace is forgotten when no open run needs it, in each scope, and not before."""

from __future__ import annotations

from typing import Any

from reach_otel.engine import Engine, Limits
from reach_otel.engine.events import RunClosed, RunDropped, RunMerged, RunOpened
from reach_otel.service.ledger import Ledger
from reach_otel.span import Step
from reach_otel.task.task import Tasks

SECOND_NS = 1_000_000_000


def step(trace: str, span: str, kind: Any = "tool", **fields: Any) -> Step:
    fields = {"tool": "look", "start_ns": 1, "end_ns": 2, **fields}
    return Step(kind=kind, trace_id=trace, span_id=span, **fields)


class Follower:
    """Run an engine and a ledger side by side, as the scorer does."""

    def __init__(self, scope: Any) -> None:
        limits = Limits(run_scope=scope, grace_seconds=1, idle_seconds=10)
        self.engine = Engine(Tasks(), limits)
        self.ledger = Ledger(scope, verdicts_max=1_000, traces_max=50, idle_seconds=10)
        self.now_ns = 0

    def feed(self, *steps: Step) -> list[str]:
        self.ledger.note(steps)
        free = self.ledger.follow(self.engine.feed(steps, self.now_ns))
        return free + self.ledger.settle({one.trace_id for one in steps}, self.now_ns)

    def wait(self, seconds: float) -> list[str]:
        self.now_ns += int(seconds * SECOND_NS)
        return self.ledger.follow(self.engine.tick(self.now_ns)) + self.ledger.settle((), self.now_ns)


def agent(trace: str, span: str = "root", **fields: Any) -> Step:
    return step(trace, span, "agent", tool=None, agent="bot", **fields)


def test_a_trace_is_free_with_the_verdict_on_its_run() -> None:
    """The usual case: one trace, one run."""
    follower = Follower("trace")
    assert follower.feed(step("t1", "a", parent_id="root"), step("t2", "a", parent_id="root")) == []
    assert follower.feed(agent("t1")) == []
    assert follower.wait(2) == ["t1"]
    assert follower.wait(20) == ["t2"]


def test_a_trace_with_an_explicit_run_beside_its_own_waits_for_both() -> None:
    """Two runs hold steps of one trace; the later verdict frees it."""
    follower = Follower("trace")
    follower.feed(step("t1", "a", parent_id="root"), step("t1", "b", run_id="mine", parent_id="x"))
    follower.feed(agent("t1"))
    assert follower.wait(2) == []
    assert follower.wait(20) == ["t1"]


def test_an_explicit_run_over_two_traces_frees_both() -> None:
    """One run holds two traces."""
    follower = Follower("trace")
    follower.feed(step("t1", "a", run_id="mine"), step("t2", "b", run_id="mine"))
    assert sorted(follower.wait(20)) == ["t1", "t2"]


def test_a_conversation_holds_all_its_traces_also_those_that_joined_late() -> None:
    """A trace that turns out to belong to a conversation is kept until that ends."""
    follower = Follower("conversation")
    follower.feed(step("t1", "a"))
    follower.feed(step("t1", "b", conversation_id="c"), step("t2", "a", conversation_id="c"))
    assert follower.wait(5) == []
    follower.feed(step("t3", "a", conversation_id="c"))
    assert follower.wait(8) == []
    assert sorted(follower.wait(20)) == ["t1", "t2", "t3"]


def test_a_trace_of_two_agents_waits_for_both_runs() -> None:
    """With one run for each outermost agent, the trace is free with the last verdict."""
    follower = Follower("agent")
    follower.feed(step("t1", "a", parent_id="one"), step("t1", "b", parent_id="two"))
    follower.feed(agent("t1", "one"))
    assert follower.wait(2) == []
    follower.feed(agent("t1", "two"))
    assert follower.wait(2) == ["t1"]


def test_spans_of_no_run_are_free_after_silence_unless_an_agent_turns_up() -> None:
    """Spans of ordinary services are kept for a while, since they may stand above an agent."""
    follower = Follower("trace")
    assert follower.feed(step("t1", "a", "other", tool=None), step("t2", "a", "other", tool=None)) == []
    assert follower.wait(6) == []
    assert follower.feed(step("t2", "b", parent_id="x")) == []
    assert follower.wait(6) == ["t1"]
    assert follower.wait(20) == ["t2"]


def test_late_steps_are_free_after_silence() -> None:
    """What comes after the verdict is not kept for ever."""
    follower = Follower("trace")
    follower.feed(agent("t1"))
    assert follower.wait(2) == ["t1"]
    assert follower.feed(step("t1", "late")) == []
    assert follower.wait(11) == ["t1"]


def test_traces_of_no_run_are_bounded() -> None:
    """Beyond the bound the oldest are free at once."""
    follower = Follower("trace")
    free = [trace for n in range(60) for trace in follower.feed(step(f"t{n}", "a", "other", tool=None))]
    assert free == [f"t{n}" for n in range(10)]


def test_nothing_is_remembered_once_all_is_free() -> None:
    """The ledger is as small after a day as after a start, in every scope."""
    for scope in ("trace", "agent", "conversation"):
        follower = Follower(scope)
        for n in range(30):
            follower.feed(
                step(f"t{n}", "a", "other", tool=None),
                step(f"t{n}", "b", conversation_id=f"c{n % 3}", parent_id="a"),
                step(f"t{n}", "c", run_id=f"mine-{n % 4}"),
                agent(f"t{n}", parent_id="a"),
            )
        free = follower.wait(60) + follower.wait(60)
        assert {f"t{n}" for n in range(30)} <= set(free)
        ledger = follower.ledger
        assert (ledger._open, ledger._spread, ledger._holders, ledger._unheld) == (set(), {}, {}, {}), scope


def test_a_dropped_run_frees_its_trace() -> None:
    """A run on which the engine failed is not replayed for ever."""
    ledger = Ledger("trace", verdicts_max=10, traces_max=10, idle_seconds=10)
    assert ledger.follow([RunOpened("t1"), RunDropped("t1")]) == ["t1"]


def test_a_merged_run_hands_its_traces_on() -> None:
    """Where two runs turn out to be one, its verdict frees the traces of both."""
    ledger = Ledger("conversation", verdicts_max=10, traces_max=10, idle_seconds=10)
    assert ledger.follow([RunOpened("t1"), RunOpened("t2"), RunMerged("t1", "t2")]) == []
    assert ledger.settle(["t1", "t2"], 0) == []
    closed = Engine(Tasks(), Limits(), keep_steps=False)
    closed.feed([step("t2", "a")], 0)
    (verdict,) = [event for event in closed.close(0) if isinstance(event, RunClosed)]
    assert ledger.follow([verdict]) == ["t1", "t2"]

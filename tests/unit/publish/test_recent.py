"""Check what is remembered of finished runs."""

from __future__ import annotations

from reach_otel.engine import Engine, Limits
from reach_otel.publish.recent import Recent
from reach_otel.task import Tasks
from tests.support.steps import Steps, trace_id


def run_of(run: int, run_id: str | None = None) -> Steps:
    steps = Steps(run)
    steps.tool("look", 1, 2, parent="ff", args={}, result=1, run_id=run_id)
    steps.agent("a", 0, 9, span_id="ff", run_id=run_id)
    return steps


def test_a_finished_run_is_known_by_run_and_trace() -> None:
    """A record is found by its run's id; a trace names the runs seen in it, open or finished."""
    engine, recent = Engine(Tasks(), Limits()), Recent(10)
    recent.publish(engine.feed(run_of(1, "r1").made, 0))
    assert recent.runs_of(trace_id(1)) == ("r1",)
    assert recent.record("r1") is None
    recent.publish(engine.close(1))
    record = recent.record("r1")
    assert record is not None
    assert (record.final, record.trace_id) == (True, trace_id(1))
    assert recent.runs_of(trace_id(1)) == ("r1",)
    assert recent.runs_of("unknown") == ()


def test_no_more_is_kept_than_asked() -> None:
    """The oldest record goes first, and with it every trace of its trace."""
    engine, recent = Engine(Tasks(), Limits()), Recent(3)
    for run in range(1, 8):
        recent.publish(engine.feed(run_of(run).made, 0))
        recent.publish(engine.close(run))
    assert [run for run in range(1, 8) if recent.record(trace_id(run))] == [5, 6, 7]
    assert recent.runs_of(trace_id(4)) == ()
    assert len(recent._by_trace) == 3
    assert recent._open == {}


def test_a_merged_run_is_forgotten() -> None:
    """A part that was taken for a run leaves nothing behind."""
    engine, recent = Engine(Tasks(), Limits(run_scope="conversation")), Recent(3)
    for run in (1, 2):
        steps = Steps(run)
        steps.tool("look", 1, 2, parent="ff", args={}, result=1)
        recent.publish(engine.feed(steps.made, 0))
        agent = steps.agent("a", 0, 9, span_id="ff", conversation_id="c")
        recent.publish(engine.feed([agent], 0))
    recent.publish(engine.close(1))
    assert len(recent._finished) == 1
    assert recent._open == {}

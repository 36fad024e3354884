"""Check how the demo follows runs and sums them up."""

from __future__ import annotations

from reach_otel.demo.board import VERDICT_PATIENCE, WINDOW_RUNS, Board
from reach_otel.engine.record import Record
from tests.unit.demo.samples import record, summary


def board_of(verdicts: dict[str, Record]) -> Board:
    return Board(verdicts.get, lambda trace_id: f"behaviour of {trace_id}")


def test_a_run_that_is_gone_and_has_a_verdict_has_finished() -> None:
    """A run is open as long as the handle lists it, and finished once, with what its agent did."""
    verdicts: dict[str, Record] = {}
    board = board_of(verdicts)
    assert board.look([summary("a"), summary("b")]) == []
    verdicts["a"] = record("a")
    assert [done.record.trace_id for done in board.look([summary("b")])] == ["a"]
    assert board.look([summary("b")]) == []
    assert board.finished[0].behaviour == "behaviour of a"
    assert [run.trace_id for run in board.open] == ["b"]


def test_a_verdict_that_comes_late_is_waited_for_but_not_for_ever() -> None:
    """A run without a verdict is asked for again, until it is plain that none will come."""
    verdicts: dict[str, Record] = {}
    board = board_of(verdicts)
    board.look([summary("a"), summary("b")])
    assert board.look([]) == []
    verdicts["a"] = record("a", final=False)
    assert board.look([]) == []
    verdicts["a"] = record("a")
    assert len(board.look([])) == 1
    for _ in range(VERDICT_PATIENCE):
        assert board.look([]) == []
    verdicts["b"] = record("b")
    assert board.look([]) == []


def test_open_runs_stand_in_order_of_their_start() -> None:
    """The view does not jump when the handle lists runs in another order."""
    board = board_of({})
    board.look([summary("b", started_ns=2), summary("a", started_ns=1)])
    assert [run.trace_id for run in board.open] == ["a", "b"]


def test_rates_and_high_layer_are_those_of_the_window() -> None:
    """Reach is that of the last runs: once they are good, the bad ones before do not count any more."""
    verdicts: dict[str, Record] = {}
    board = board_of(verdicts)
    assert board.high_layer() is None
    board.look([summary("bad")])
    assert [rate.share for rate in board.rates()] == [None] * 5
    verdicts["bad"] = record("bad", outcome="partial", missed="stock", reason="fabricated")
    board.look([])
    assert board.high_layer() == 0.0
    assert {rate.id: rate.share for rate in board.rates()} == {
        "read": 1.0, "customer": 1.0, "stock": 0.0, "escalate": 0.0, "update": 0.0,
    }  # fmt: skip
    for n in range(WINDOW_RUNS):
        verdicts[f"good {n}"] = record(f"good {n}")
        board.look([summary(f"good {n}")])
        board.look([])
    assert board.high_layer() == 1.0
    assert board.all.runs == WINDOW_RUNS + 1

"""Summing up the records of a task."""

from __future__ import annotations

import pytest

from reach_otel.offline.summary import TaskTally
from tests.unit.offline.records import milestone, record


def test_high_layer_reach_is_a_share_of_sums() -> None:
    """Two runs reach one, and none, of the two deepest milestones: 1 of 4, which is high risk."""
    tally = TaskTally("shop")
    tally.add(record("a", milestone("x"), milestone("y", layer=2), milestone("z", "missed", layer=2)))
    tally.add(record("b", milestone("x"), milestone("y", "missed", layer=2), milestone("z", "missed", layer=2)))
    summary = tally.summary()
    assert summary.high_layer == 0.25
    assert summary.high_risk


def test_optional_and_fallback_milestones_are_no_part_of_the_high_layer() -> None:
    tally = TaskTally("shop")
    tally.add(record("a", milestone("x"), milestone("o", "missed", layer=2, kind="optional")))
    assert tally.summary().high_layer == 1.0


def test_a_task_without_must_milestones_has_no_high_layer_and_is_no_risk() -> None:
    tally = TaskTally("shop")
    tally.add(record("a"))
    summary = tally.summary()
    assert summary.high_layer is None
    assert not summary.high_risk


def test_reach_rate_and_first_reach_of_a_milestone() -> None:
    """Reached in two of three runs, at actions 2 and 4; in the third its result was not used."""
    tally = TaskTally("shop")
    tally.add(record("a", milestone("stock", action=2)))
    tally.add(record("b", milestone("stock", action=4)))
    tally.add(record("c", milestone("stock", "passed", reason="unused", action=9)))
    (stock,) = tally.summary().milestones
    assert stock.rate == pytest.approx(0.667, abs=0.001)
    assert (stock.first_action, stock.first_seconds) == (3, 1.5)
    assert stock.reasons == {"unused": 1}


def test_a_milestone_never_met_is_counted_as_missed() -> None:
    tally = TaskTally("shop")
    tally.add(record("a", milestone("stock", "missed")))
    (stock,) = tally.summary().milestones
    assert stock.rate == 0
    assert stock.first_action is None
    assert stock.reasons == {"missed": 1}


def test_means_leave_out_runs_that_have_no_such_score() -> None:
    tally = TaskTally("shop")
    tally.add(record("a", depth=0.5, digestion=None, coverage=0))
    tally.add(record("b", depth=1.0, digestion=0.5))
    summary = tally.summary()
    assert (summary.depth, summary.digestion, summary.coverage) == (0.75, 0.5, 0.5)
    assert summary.outcomes == {"success": 2}

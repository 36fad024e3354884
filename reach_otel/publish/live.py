"""Keep gauges of the runs that are going on, by what changes: a scrape never walks the runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from reach_otel import names

if TYPE_CHECKING:
    from reach_otel.engine.events import RunSummary
    from reach_otel.publish.metrics import Board
    from reach_otel.publish.series import Number

_DEPTH_STEPS = 1 << 20  # depths are summed as exact binary fractions, so that the sum returns to 0 with the runs


class _Share(NamedTuple):
    """What one run adds to the gauges."""

    board: Board
    agent: str
    layer: str
    depth: float
    milestones: frozenset[str]
    stuck: bool


class LiveRuns:
    """Remember of each running run what it adds, so that it can be taken back."""

    __slots__ = ("_shares",)

    def __init__(self) -> None:
        self._shares: dict[str, _Share] = {}

    def changed(self, board: Board, summary: RunSummary) -> None:
        """Take note of a run's new numbers."""
        before = self._shares.get(summary.run_id)
        after = _share(board, summary)
        if before == after:
            return
        self._shares[summary.run_id] = after
        if before is not None and before.board is board:
            _move(before, after)
        else:
            if before is not None:
                _add(before, -1)
            _add(after, 1)

    def gone(self, run_id: str) -> None:
        """Forget a run; one that was never seen is no matter."""
        share = self._shares.pop(run_id, None)
        if share is not None:
            _add(share, -1)


def _share(board: Board, summary: RunSummary) -> _Share:
    reached = [milestone for milestone in summary.milestones if milestone.state == "reached"]
    return _Share(
        board,
        board.labels.agent(summary.agent),
        str(max((milestone.layer for milestone in reached if milestone.type == "must"), default=0)),
        round(summary.depth * _DEPTH_STEPS) / _DEPTH_STEPS,
        frozenset(milestone.id for milestone in reached),
        names.STUCK in summary.findings,
    )


def _gauges(share: _Share) -> Iterator[tuple[Number, float]]:
    groups = share.board.groups
    yield groups[names.RUNS_ACTIVE][(share.agent,)], 1
    yield groups[names.LIVE_RUNS][(share.layer,)], 1
    yield share.board.one(names.LIVE_DEPTH_SUM), share.depth
    for milestone in share.milestones:
        yield groups[names.LIVE_MILESTONE_REACHED][(milestone,)], 1
    if share.stuck:
        yield share.board.one(names.LIVE_STUCK_RUNS), 1


def _add(share: _Share, times: int) -> None:
    for gauge, amount in _gauges(share):
        gauge.inc(times * amount)


def _move(before: _Share, after: _Share) -> None:
    """Take back the old numbers and add the new ones; gauges that stay as they are show no dip meanwhile."""
    groups = after.board.groups
    if before.agent != after.agent:
        groups[names.RUNS_ACTIVE][(after.agent,)].inc()
        groups[names.RUNS_ACTIVE][(before.agent,)].inc(-1)
    if before.layer != after.layer:
        groups[names.LIVE_RUNS][(after.layer,)].inc()
        groups[names.LIVE_RUNS][(before.layer,)].inc(-1)
    if before.depth != after.depth:
        after.board.one(names.LIVE_DEPTH_SUM).inc(after.depth - before.depth)
    for milestone in after.milestones - before.milestones:
        groups[names.LIVE_MILESTONE_REACHED][(milestone,)].inc()
    for milestone in before.milestones - after.milestones:
        groups[names.LIVE_MILESTONE_REACHED][(milestone,)].inc(-1)
    if before.stuck != after.stuck:
        after.board.one(names.LIVE_STUCK_RUNS).inc(after.stuck - before.stuck)

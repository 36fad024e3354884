"""Sum up the records of a task: how many runs, how far, and which milestones they miss and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import fmean, median
from typing import TYPE_CHECKING

from reach_otel.engine.scores import HIGH_RISK_BELOW

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reach_otel.engine.record import MilestoneRecord, Record, Scores


@dataclass(frozen=True, slots=True)
class MilestoneSummary:
    """Tell how often one milestone was reached, when at first, and why it was not."""

    id: str
    type: str
    layer: int
    runs: int
    reached: int
    first_action: float | None  # medians over the runs that reached it
    first_seconds: float | None
    reasons: Mapping[str, int]  # of runs in which it was not reached; "missed" where its condition never held

    @property
    def rate(self) -> float:
        return self.reached / self.runs


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """Tell how the runs of one task went.

    Means are over runs; ``high_layer`` is a share of sums, ``None`` where no must-milestone is declared.
    """

    task: str
    runs: int
    outcomes: Mapping[str, int]
    depth: float
    purity: float
    digestion: float | None  # mean over the runs that met an obstacle
    composite: float
    high_layer: float | None
    coverage: float
    milestones: tuple[MilestoneSummary, ...]

    @property
    def high_risk(self) -> bool:
        return self.high_layer is not None and self.high_layer < HIGH_RISK_BELOW


class _Milestone:
    __slots__ = ("actions", "layer", "reached", "reasons", "runs", "seconds", "type")

    def __init__(self, first: MilestoneRecord) -> None:
        self.type = first.type
        self.layer = first.layer
        self.runs = self.reached = 0
        self.actions: list[int] = []
        self.seconds: list[float] = []
        self.reasons: Counter[str] = Counter()

    def add(self, record: MilestoneRecord) -> None:
        self.runs += 1
        if record.state != "reached":
            self.reasons[record.reason or record.state] += 1
            return
        self.reached += 1
        if record.action is not None:
            self.actions.append(record.action)
        if record.seconds is not None:
            self.seconds.append(record.seconds)

    def summary(self, name: str) -> MilestoneSummary:
        return MilestoneSummary(
            id=name,
            type=self.type,
            layer=self.layer,
            runs=self.runs,
            reached=self.reached,
            first_action=median(self.actions) if self.actions else None,
            first_seconds=median(self.seconds) if self.seconds else None,
            reasons=self.reasons,
        )


class TaskTally:
    """Take the records of one task one by one; memory grows with milestones and a few numbers a run."""

    __slots__ = ("_coverage", "_expected_high", "_milestones", "_outcomes", "_reached_high", "_scores", "task")

    def __init__(self, task: str) -> None:
        self.task = task
        self._outcomes: Counter[str] = Counter()
        self._scores: list[Scores] = []
        self._milestones: dict[str, _Milestone] = {}
        self._expected_high = self._reached_high = self._coverage = 0

    def add(self, record: Record) -> None:
        """Count one record in."""
        self._outcomes[record.outcome] += 1
        self._scores.append(record.scores)
        self._coverage += record.scores.coverage
        for milestone in record.milestones:
            self._milestones.setdefault(milestone.id, _Milestone(milestone)).add(milestone)
        deepest = max((m.layer for m in record.milestones if m.type == "must"), default=0)
        high = [m for m in record.milestones if m.type == "must" and m.layer == deepest]
        self._expected_high += len(high)
        self._reached_high += sum(m.state == "reached" for m in high)

    def summary(self) -> TaskSummary:
        """Sum up what was counted so far; raises ``ValueError`` (from the mean) with nothing counted."""
        digestions = [s.digestion for s in self._scores if s.digestion is not None]
        return TaskSummary(
            task=self.task,
            runs=len(self._scores),
            outcomes=self._outcomes,
            depth=fmean(s.depth for s in self._scores),
            purity=fmean(s.purity for s in self._scores),
            digestion=fmean(digestions) if digestions else None,
            composite=fmean(s.composite for s in self._scores),
            high_layer=self._reached_high / self._expected_high if self._expected_high else None,
            coverage=self._coverage / len(self._scores),
            milestones=tuple(m.summary(name) for name, m in self._milestones.items()),
        )

"""Gather what the demo shows: open runs, finished ones, and the reach of the last few of them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from reach_otel.engine.events import MilestoneView, RunSummary
from reach_otel.engine.record import MilestoneRecord, Record
from reach_otel.offline.stop import stopped_at

WINDOW_RUNS = 30
HIGH_RISK_BELOW = 0.5
VERDICT_PATIENCE = 200
"""How many looks a run may be gone without a verdict before it is given up (the scorer has evicted it)."""

Milestones = Sequence[MilestoneView | MilestoneRecord]


@dataclass(slots=True)
class Mean:
    """Take the mean of numbers as they come; absent ones do not count."""

    total: float = 0.0
    n: int = 0

    def add(self, value: float | None) -> None:
        if value is not None:
            self.total += value
            self.n += 1

    @property
    def value(self) -> float | None:
        return self.total / self.n if self.n else None


@dataclass(slots=True)
class Tally:
    """Sum up finished runs of one kind since the start."""

    runs: int = 0
    depth: Mean = field(default_factory=Mean)
    purity: Mean = field(default_factory=Mean)
    digestion: Mean = field(default_factory=Mean)
    composite: Mean = field(default_factory=Mean)
    high_layer: Mean = field(default_factory=Mean)
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, record: Record) -> None:
        scores = record.scores
        self.runs += 1
        self.depth.add(scores.depth)
        self.purity.add(scores.purity)
        self.digestion.add(scores.digestion)
        self.composite.add(scores.composite)
        self.high_layer.add(scores.high_layer)
        self.outcomes[record.outcome] += 1
        if reason := stopped_at(record):
            self.reasons[reason] += 1


@dataclass(frozen=True, slots=True)
class Finished:
    """One finished run, and what the agent really did in it (which no score has seen)."""

    record: Record
    behaviour: str


@dataclass(frozen=True, slots=True)
class Rate:
    """How often one milestone was reached over the window; ``share`` is ``None`` before the first run has finished."""

    id: str
    type: str
    layer: int
    share: float | None


def in_layers(milestones: Milestones) -> list[MilestoneView | MilestoneRecord]:
    """Sort milestones as they are shown: by layer, as declared within one."""
    return sorted(milestones, key=lambda milestone: milestone.layer)


class Board:
    """Follow runs by looking at the open ones again and again; a run that is gone has finished."""

    def __init__(self, score: Callable[[str], Record | None], behaviour_of: Callable[[str], str | None]) -> None:
        self.open: tuple[RunSummary, ...] = ()
        self.finished: deque[Finished] = deque(maxlen=WINDOW_RUNS)
        self.by_behaviour: dict[str, Tally] = {}
        self.all = Tally()
        self._score = score
        self._behaviour_of = behaviour_of
        self._gone: dict[str, int] = {}

    def look(self, runs: Iterable[RunSummary]) -> list[Finished]:
        """Take the runs that are open now; return what has finished since the last look, in order."""
        before = {run.trace_id for run in self.open}
        self.open = tuple(sorted(runs, key=lambda run: run.started_ns))
        now = {run.trace_id for run in self.open}
        for trace_id in before - now:
            self._gone.setdefault(trace_id, 0)
        finished = [done for trace_id in sorted(self._gone) if (done := self._verdict(trace_id, trace_id in now))]
        finished.sort(key=lambda done: (done.record.start, done.record.duration_seconds))
        for done in finished:
            self.finished.append(done)
            self.all.add(done.record)
            self.by_behaviour.setdefault(done.behaviour, Tally()).add(done.record)
        return finished

    def rates(self) -> list[Rate]:
        """Return the reach rate of every milestone over the window, in layers."""
        shown: Milestones = self.finished[-1].record.milestones if self.finished else ()
        if not shown and self.open:
            shown = self.open[0].milestones
        reached = Counter(m.id for done in self.finished for m in done.record.milestones if m.state == "reached")
        runs = len(self.finished)
        return [Rate(m.id, m.type, m.layer, reached[m.id] / runs if runs else None) for m in in_layers(shown)]

    def high_layer(self) -> float | None:
        """Return the share of deepest must-milestones reached over the window; ``None`` before the first verdict."""
        mean = Mean()
        for done in self.finished:
            mean.add(done.record.scores.high_layer)
        return mean.value

    def _verdict(self, trace_id: str, open_again: bool) -> Finished | None:
        record = self._score(trace_id)
        if record is not None and record.final:
            del self._gone[trace_id]
            return Finished(record, self._behaviour_of(trace_id) or "")
        self._gone[trace_id] += 1
        if open_again or self._gone[trace_id] > VERDICT_PATIENCE:
            del self._gone[trace_id]
        return None

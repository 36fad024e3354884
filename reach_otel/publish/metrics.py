"""Count verdicts in Prometheus metrics (SPEC 10).

Everything about a run is counted at its verdict, at once, so that sums over replicas and restarts are exact. Series
exist at 0 from the start for the variants that a task or the settings fix, else for ``unknown``; one that turns up
later gets its zero series when its first run is first seen, which is before that run's verdict by ``grace`` at least.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from reach_otel import names
from reach_otel.engine.events import Counted, Event, RunChanged, RunClosed, RunDropped, RunMerged
from reach_otel.publish.catalog import DECLARED_METRICS, LIVE_METRICS, TASK_METRICS
from reach_otel.publish.health import Health, Scorer
from reach_otel.publish.labels import (
    MASKED,
    OTHER,
    OVERFLOW,
    REASONS,
    STEP_KINDS,
    UNSPECIFIED,
    LabelsByTask,
    TaskLabels,
)
from reach_otel.publish.live import LiveRuns
from reach_otel.publish.series import Family, Group, Series, Trace, declared
from reach_otel.publish.timeouts import timeouts
from reach_otel.publish.variants import Variants

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Exposed

    from reach_otel.engine.action import Action
    from reach_otel.engine.events import VariantBy
    from reach_otel.engine.record import Record
    from reach_otel.task import Tasks

LABEL_BUDGET: Final = 300
_TRACE_ID_MAX: Final = 64  # longer ones would break the exposition format's limit on exemplars


class Metrics:
    """Publish events as metrics, and collect these for a scrape.

    :meth:`publish` is for the owner thread of the engine, :meth:`collect` for any. It is a collector in
    prometheus_client's sense: register it in the registry that is exposed.
    """

    def __init__(
        self,
        tasks: Tasks,
        *,
        health: Health | None = None,
        variant: str | None = None,
        variants: Iterable[str] = (),
        label_budget: int = LABEL_BUDGET,
        trust_spans: bool = False,
    ) -> None:
        """``trust_spans``: the application's own code makes them, so a variant that only a span names may show."""
        self._labels = LabelsByTask(tasks)
        families = [Family(metric, label_budget) for metric in (*TASK_METRICS, *LIVE_METRICS)]
        self._families = {family.name: family for family in families}
        fixed = [name for name in (variant, *(task.variant for task in tasks)) if name]
        declared = (*variants, variant) if variants and variant else variants
        self.variants = Variants(declared, known=fixed, trust_spans=trust_spans)
        self._boards: dict[tuple[str, str], Board] = {}
        self._scorer = Scorer(health or Health())
        self._live = LiveRuns()
        for labels in self._labels.values():
            for name in (None,) if labels.variant else self.variants.declared or (variant,):
                self._board(labels.name, name, "named")

    def publish(self, events: Sequence[Event]) -> None:
        """Count what happened."""
        for event in events:
            if isinstance(event, RunChanged):
                summary = event.summary
                self._live.changed(self._board(summary.task, summary.variant, summary.variant_by), summary)
            elif isinstance(event, RunClosed):
                self._live.gone(event.record.run)
                self._board(event.record.task, event.record.variant, event.variant_by).count(event)
            elif isinstance(event, RunMerged):
                self._live.gone(event.run_id)
                self._scorer.merged()
            elif isinstance(event, RunDropped):
                self._live.gone(event.run_id)
            elif isinstance(event, Counted):
                self._scorer.counted(event)

    def describe(self) -> Iterator[Exposed]:
        """Name what will be collected, so that a registry can find clashes."""
        return self.collect()

    def collect(self) -> Iterator[Exposed]:
        """Give all metrics for a scrape."""
        yield from (family.expose() for family in self._families.values())
        yield from (declared(metric, self._labels.values()) for metric in DECLARED_METRICS)
        yield from self._scorer.collect()

    def _board(self, task: str, variant: str | None, by: VariantBy | None) -> Board:
        labels = self._labels[task]
        key = (labels.name, labels.variant or self.variants.label(variant, by))
        board = self._boards.get(key) or self._boards.get((labels.name, OVERFLOW))
        if board is None:
            groups = {name: family.group(labels, key[1]) for name, family in self._families.items()}
            board = Board(labels, groups, self._scorer)
            # Once nothing is left for further variants, they share a board, so that boards are bounded too.
            self._boards[(labels.name, OVERFLOW) if board.is_overflow else key] = board
        return board


class Board:
    """Hold the series of one task and variant, ready to be counted on."""

    __slots__ = ("_overflowing", "_scorer", "groups", "is_overflow", "labels")

    def __init__(self, labels: TaskLabels, groups: dict[str, tuple[Group, bool]], scorer: Scorer) -> None:
        self.labels = labels
        self.groups = {name: group for name, (group, _) in groups.items()}
        self._overflowing = tuple(name for name, (_, overflows) in groups.items() if overflows)
        self.is_overflow = not any(self.groups.values())  # no series of its own at all
        self._scorer = scorer

    def one(self, name: str) -> Series:
        """Return the series of a metric that has no label beside ``task`` and ``variant``."""
        return self.groups[name][()]

    def count(self, event: RunClosed) -> None:
        """Count a verdict."""
        record = event.record
        known = 0 < len(record.trace_id) <= _TRACE_ID_MAX
        trace = Trace({"trace_id": record.trace_id}, time.time()) if known else None
        if record.task == self.labels.name and record.task != names.UNMATCHED:
            self._count_reach(record, trace)
        self._count_run(record, trace)
        self._count_actions(event.actions, trace)
        for stage in timeouts(event):
            self.groups[names.TIMEOUTS_TOTAL][(stage,)].inc(1, trace)
        for kind, number in event.masked:
            where = kind if kind in STEP_KINDS else OTHER
            self.groups[names.SENSITIVE_TOTAL][(UNSPECIFIED, where, MASKED)].inc(number, trace)
        model_seconds = self.one(names.MODEL_DURATION_SECONDS)
        for call in event.models:
            model_seconds.observe(call.seconds, trace)
        for name in self._overflowing:
            self._scorer.overflowed(name)

    def _count_run(self, record: Record, trace: Trace | None) -> None:
        groups = self.groups
        groups[names.RUNS_TOTAL][(record.outcome,)].inc(1, trace)
        self.one(names.RUN_PURITY_RATIO).observe(_ratio(record.scores.purity), trace)
        if record.scores.digestion is not None:
            self.one(names.RUN_DIGESTION_RATIO).observe(_ratio(record.scores.digestion), trace)
        self.one(names.RUN_DURATION_SECONDS).observe(record.duration_seconds, trace)
        for klass, number in record.actions.items():
            if number:
                groups[names.ACTIONS_TOTAL][(klass,)].inc(number)
        for obstacle in record.obstacles:
            groups[names.OBSTACLES_TOTAL][(obstacle.kind, "true" if obstacle.digested else "false")].inc()
        findings = groups[names.FINDINGS_TOTAL]
        for finding in record.findings:
            _known(findings, (finding.finding,)).inc(1, trace)
        tokens = record.tokens
        agent = self.labels.agent(record.agent)
        spent = tokens.effective + tokens.retry + tokens.ineffective + tokens.answer
        for kind, number in (
            ("effective", tokens.effective),
            ("retry", tokens.retry),
            ("ineffective", tokens.ineffective),
            ("answer", tokens.answer),
            (OTHER, max(0, tokens.total - spent)),
        ):
            if number:
                groups[names.TOKENS_TOTAL][(kind, agent)].inc(number)
        if record.cost_dollars:
            self.one(names.COST_DOLLARS_TOTAL).inc(record.cost_dollars)

    def _count_reach(self, record: Record, trace: Trace | None) -> None:
        groups = self.groups
        scores = record.scores
        self.one(names.RUN_DEPTH_RATIO).observe(_ratio(scores.depth), trace)
        self.one(names.RUN_SCORE_RATIO).observe(_ratio(scores.composite), trace)
        self.one(names.COVERAGE_EXPECTED_TOTAL).inc()
        self.one(names.COVERAGE_REACHED_TOTAL).inc(bool(scores.coverage))
        expected = groups[names.MILESTONE_EXPECTED_TOTAL]
        reached = groups[names.MILESTONE_REACHED_TOTAL]
        first_actions = groups[names.MILESTONE_FIRST_REACH_ACTIONS]
        first_seconds = groups[names.MILESTONE_FIRST_REACH_SECONDS]
        layers: list[tuple[int, bool]] = []
        for series, milestone in zip(self.labels.milestones, record.milestones, strict=False):
            is_reached = milestone.state == "reached"
            if milestone.type == "must":
                layers.append((milestone.layer, is_reached))
            expected[series].inc()
            if is_reached:
                reached[series].inc()
                if milestone.action is not None:
                    first_actions[(milestone.id,)].observe(milestone.action)
                if milestone.seconds is not None:
                    first_seconds[(milestone.id,)].observe(milestone.seconds)
        if layers:
            deepest = max(layer for layer, _ in layers)
            self.one(names.HIGH_LAYER_EXPECTED_TOTAL).inc(sum(layer == deepest for layer, _ in layers))
            self.one(names.HIGH_LAYER_REACHED_TOTAL).inc(sum(layer == deepest and got for layer, got in layers))
            for k, share in scores.reach_at_k.items():
                groups[names.AT_K_EXPECTED_TOTAL][(k,)].inc(len(layers))
                groups[names.AT_K_REACHED_TOTAL][(k,)].inc(round(share * len(layers)))
        for level, verdict in record.levels.items():
            groups[names.LEVEL_RUNS_TOTAL][(level,)].inc()
            if verdict.passed:
                groups[names.LEVEL_PASSED_TOTAL][(level,)].inc()
        if (broken := record.break_point) is not None:
            reason = broken.reason if broken.reason in REASONS.get(broken.level, ()) else OTHER
            groups[names.BREAK_POINTS_TOTAL][(broken.level, reason)].inc(1, trace)

    def _count_actions(self, actions: Iterable[Action], trace: Trace | None) -> None:
        calls = self.groups[names.TOOL_CALLS_TOTAL]
        seconds = self.groups[names.TOOL_DURATION_SECONDS]
        known = self.labels.tools
        for action in actions:
            if action.kind == "handoff":
                pair = (self.labels.agent(action.agent), self.labels.agent(action.to_agent))
                self.groups[names.HANDOFFS_TOTAL][pair].inc()
                continue
            key = (action.tool if action.tool in known else OTHER, "ok" if action.ok else "error")
            calls[key].inc()
            seconds[key].observe(action.seconds, None if action.ok else trace)
            rule = self.labels.violation(action)
            if rule is not None:
                self.groups[names.VIOLATIONS_TOTAL][(rule,)].inc(1, trace)


def _known(group: Group, values: tuple[str]) -> Series:
    return group[values if values in group else (OTHER,)]


def _ratio(value: float) -> float:
    """Round off what floating point adds, so that 0.1 + 0.2 falls into the bucket of 0.3."""
    return round(value, 9)

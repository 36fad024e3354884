"""List every metric: type, labels, help and closed set of label values, for code, tests and README alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal

from reach_otel import names
from reach_otel.publish import labels
from reach_otel.publish.labels import TaskLabels
from reach_otel.publish.timeouts import STAGES

Values = tuple[str, ...]
Told = tuple[Values, float]  # label values, and the number that a task file tells for them

RATIO_BUCKETS: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
ACTION_BUCKETS: Final = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0, 30.0, 50.0)
RUN_BUCKETS: Final = (0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0)
CALL_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
AGE_BUCKETS: Final = (1.0, 5.0, 15.0, 60.0, 300.0, 1_800.0, 7_200.0)


def _one(_: TaskLabels) -> Iterable[Values]:
    return ((),)


@dataclass(frozen=True, slots=True)
class Metric:
    """Describe one metric.

    ``values`` gives the label values after ``task`` and ``variant``; ``None`` for the scorer's own, which have neither.
    ``declared`` gives what a task file says, by ``task`` alone: such a metric never changes while the task is loaded.
    """

    name: str
    type: Literal["counter", "gauge", "histogram", "info"]
    help: str
    labels: tuple[str, ...] = ()
    values: Callable[[TaskLabels], Iterable[Values]] | None = _one
    buckets: tuple[float, ...] = ()
    declared: Callable[[TaskLabels], Iterable[Told]] | None = None

    @property
    def all_labels(self) -> tuple[str, ...]:
        """Return the labels as they are exposed."""
        if self.declared is not None:
            return ("task", *self.labels)
        return self.labels if self.values is None else ("task", "variant", *self.labels)


def _milestones(task: TaskLabels) -> Iterable[Values]:
    return task.milestones


def _milestone_ids(task: TaskLabels) -> Iterable[Values]:
    return ((milestone.id,) for milestone in task.milestones)


def _tools(task: TaskLabels) -> Iterable[Values]:
    return ((tool, status) for tool in task.tools for status in labels.STATUSES)


def _tokens(task: TaskLabels) -> Iterable[Values]:
    return ((kind, agent) for kind in labels.TOKEN_CLASSES for agent in task.agents)


def _each(values: Iterable[str]) -> Callable[[TaskLabels], Iterable[Values]]:
    fixed = tuple((value,) for value in values)
    return lambda _: fixed


def _counter(
    name: str,
    help: str,  # noqa: A002 - the word of the exposition format
    *label_names: str,
    values: Callable[[TaskLabels], Iterable[Values]] = _one,
) -> Metric:
    return Metric(name, "counter", help, label_names, values)


def _histogram(
    name: str,
    help: str,  # noqa: A002
    buckets: tuple[float, ...],
    *label_names: str,
    values: Callable[[TaskLabels], Iterable[Values]] = _one,
) -> Metric:
    return Metric(name, "histogram", help, label_names, values, buckets)


TASK_METRICS: Final[tuple[Metric, ...]] = (
    _counter(names.RUNS_TOTAL, "Runs with a verdict.", "outcome", values=_each(labels.OUTCOMES)),
    _histogram(names.RUN_DEPTH_RATIO, "Reach depth of each run with a task.", RATIO_BUCKETS),
    _histogram(names.RUN_PURITY_RATIO, "Path purity of each run.", RATIO_BUCKETS),
    _histogram(names.RUN_DIGESTION_RATIO, "Obstacle digestion of each run that met an obstacle.", RATIO_BUCKETS),
    _histogram(names.RUN_SCORE_RATIO, "Composite reach score of each run with a task.", RATIO_BUCKETS),
    _histogram(names.RUN_DURATION_SECONDS, "Duration of each run.", RUN_BUCKETS),
    _counter(names.HIGH_LAYER_EXPECTED_TOTAL, "Must-milestones of the deepest layer, over runs."),
    _counter(names.HIGH_LAYER_REACHED_TOTAL, "Of these, reached."),
    _counter(names.COVERAGE_EXPECTED_TOTAL, "Runs with a task."),
    _counter(names.COVERAGE_REACHED_TOTAL, "Of these, runs that reached every must-milestone."),
    _counter(names.MILESTONE_EXPECTED_TOTAL, "Runs by milestone.", "milestone", "type", "layer", values=_milestones),
    _counter(
        names.MILESTONE_REACHED_TOTAL,
        "Runs that reached the milestone.",
        "milestone",
        "type",
        "layer",
        values=_milestones,
    ),
    _histogram(
        names.MILESTONE_FIRST_REACH_ACTIONS,
        "Number of the action at which a milestone was first reached.",
        ACTION_BUCKETS,
        "milestone",
        values=_milestone_ids,
    ),
    _histogram(
        names.MILESTONE_FIRST_REACH_SECONDS,
        "Seconds from the start of the run until a milestone was first reached.",
        RUN_BUCKETS,
        "milestone",
        values=_milestone_ids,
    ),
    _counter(
        names.AT_K_EXPECTED_TOTAL,
        "Must-milestones, over runs.",
        "k",
        values=lambda task: ((k,) for k in task.ks),
    ),
    _counter(
        names.AT_K_REACHED_TOTAL,
        "Of these, reached within the first k actions.",
        "k",
        values=lambda task: ((k,) for k in task.ks),
    ),
    _counter(names.LEVEL_RUNS_TOTAL, "Runs by level that was judged.", "level", values=_each(labels.LEVELS)),
    _counter(names.LEVEL_PASSED_TOTAL, "Runs that passed the level.", "level", values=_each(labels.LEVELS)),
    _counter(
        names.BREAK_POINTS_TOTAL,
        "Runs by the first level that failed, and why.",
        "level",
        "reason",
        values=lambda _: labels.break_points(),
    ),
    _counter(names.ACTIONS_TOTAL, "Actions by purity class.", "class", values=_each(labels.CLASSES)),
    _counter(
        names.OBSTACLES_TOTAL,
        "Obstacles met, and whether the agent got past them.",
        "kind",
        "digested",
        values=lambda _: ((kind, digested) for kind in labels.OBSTACLE_KINDS for digested in ("true", "false")),
    ),
    _counter(names.FINDINGS_TOTAL, "Flags on trajectories.", "finding", values=_each((*names.FINDINGS, labels.OTHER))),
    _counter(
        names.TOKENS_TOTAL,
        "Tokens by what they were spent on, by the run's agent.",
        "class",
        "agent",
        values=_tokens,
    ),
    _counter(names.COST_DOLLARS_TOTAL, "Cost of runs whose models have a known price."),
    _counter(names.TOOL_CALLS_TOTAL, "Tool calls by tool and status.", "tool", "status", values=_tools),
    _histogram(
        names.TOOL_DURATION_SECONDS, "Duration of each tool call.", CALL_BUCKETS, "tool", "status", values=_tools
    ),
    _histogram(names.MODEL_DURATION_SECONDS, "Duration of each model call.", CALL_BUCKETS),
    _counter(
        names.HANDOFFS_TOTAL,
        "Handoffs between agents.",
        "from",
        "to",
        values=lambda task: ((giver, taker) for giver in task.agents for taker in task.agents),
    ),
    _counter(
        names.TIMEOUTS_TOTAL,
        "Timeouts by where they arose: a call of a tool, a further try of one, a call of a model, or the run "
        "where no call of it did.",
        "stage",
        values=_each(STAGES),
    ),
    _counter(
        names.VIOLATIONS_TOTAL,
        "Calls of tools that the task forbids, or does not allow.",
        "rule",
        values=_each(labels.RULES),
    ),
    _counter(
        names.SENSITIVE_TOTAL,
        "Sensitive values in spans, by kind, by the kind of step they stood in, and by what became of them.",
        "kind",
        "where",
        "action",
        values=lambda _: product(labels.SENSITIVE_KINDS, labels.STEP_KINDS, labels.SENSITIVE_ACTIONS),
    ),
)
"""Metrics that are counted at the verdict."""

LIVE_METRICS: Final[tuple[Metric, ...]] = (
    Metric(
        names.RUNS_ACTIVE, "gauge", "Runs going on now.", ("agent",), lambda task: ((agent,) for agent in task.agents)
    ),
    Metric(
        names.LIVE_RUNS,
        "gauge",
        "Runs going on now, by the deepest layer in which they have reached a must-milestone (0: none yet).",
        ("layer",),
        lambda task: ((str(layer),) for layer in range(task.layers_max + 1)),
    ),
    Metric(names.LIVE_DEPTH_SUM, "gauge", "Sum of the reach depth of the runs going on now."),
    Metric(
        names.LIVE_MILESTONE_REACHED,
        "gauge",
        "Runs going on now that have reached the milestone.",
        ("milestone",),
        _milestone_ids,
    ),
    Metric(names.LIVE_STUCK_RUNS, "gauge", "Runs going on now that were found stuck."),
)
"""Gauges of running runs, kept up to date by deltas."""

DECLARED_METRICS: Final[tuple[Metric, ...]] = (
    Metric(
        names.TIER_WEIGHT,
        "gauge",
        "Share of each tier in the total score, from the task's `scene`.",
        ("tier",),
        declared=lambda task: (((tier,), weight) for tier, weight in task.tier_weights),
    ),
    Metric(
        names.DURATION_LIMIT_SECONDS,
        "gauge",
        "Longest mean duration of a run that the task declares.",
        declared=lambda task: (((), limit) for limit in task.duration_limits),
    ),
)
"""What task files say that rules and panels compare with."""

SCORER_METRICS: Final[tuple[Metric, ...]] = (
    Metric(names.SCORER_QUEUE_SPANS, "gauge", "Ended spans waiting to be scored.", values=None),
    Metric(names.SCORER_LAG_SECONDS, "gauge", "Age of the oldest span waiting to be scored.", values=None),
    Metric(names.SCORER_SPANS_RECEIVED_TOTAL, "counter", "Spans taken from the queue.", values=None),
    Metric(names.SCORER_SPANS_DROPPED_TOTAL, "counter", "Spans not scored.", ("reason",), None),
    Metric(
        names.SCORER_ODD_SPANS_TOTAL,
        "counter",
        "Spans with something odd, scored as far as it goes.",
        ("reason",),
        None,
    ),
    Metric(
        names.SCORER_LATE_SPAN_AGE_SECONDS,
        "histogram",
        "How long after the verdict on their run spans arrived.",
        values=None,
        buckets=AGE_BUCKETS,
    ),
    Metric(names.SCORER_DUPLICATES_TOTAL, "counter", "Spans that came twice.", values=None),
    Metric(names.SCORER_RUNS_EVICTED_TOTAL, "counter", "Runs closed for want of room.", ("reason",), None),
    Metric(names.SCORER_RUNS_MERGED_TOTAL, "counter", "Runs found to be a part of another.", values=None),
    Metric(
        names.SCORER_INCOMPLETE_RUNS_TOTAL,
        "counter",
        "Runs not scored because a part of them may be elsewhere.",
        ("reason",),
        None,
    ),
    Metric(names.SCORER_CONDITION_FAULTS_TOTAL, "counter", "Conditions that failed to tell.", ("reason",), None),
    Metric(names.SCORER_ERRORS_TOTAL, "counter", "Faults of the scorer itself.", ("stage",), None),
    Metric(
        names.SCORER_LABEL_OVERFLOW_TOTAL,
        "counter",
        "Runs counted under `overflow` for want of room.",
        ("metric",),
        None,
    ),
    Metric(names.SCORER_BUILD_INFO, "info", "Version of reach-otel.", ("version",), None),
)
"""The scorer's own health."""

COMMIT_BUCKETS: Final = (0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)

SERVICE_METRICS: Final[tuple[Metric, ...]] = (
    Metric(
        names.SERVICE_REQUESTS_TOTAL,
        "counter",
        "Requests with spans or logs, by how they were answered: HTTP status, or name of the gRPC status.",
        ("signal", "code"),
        None,
    ),
    Metric(names.SERVICE_INFLIGHT_BYTES, "gauge", "Bodies held at the moment, decompressed.", values=None),
    Metric(names.SERVICE_QUEUE_BYTES, "gauge", "Bodies of the spans waiting to be scored.", values=None),
    Metric(
        names.SERVICE_COMMIT_SECONDS,
        "histogram",
        "How long the database took to make spans or verdicts safe.",
        values=None,
        buckets=COMMIT_BUCKETS,
    ),
    Metric(names.SERVICE_JOURNAL_ERRORS_TOTAL, "counter", "What the database could not do, by what.", ("stage",), None),
    Metric(
        names.SERVICE_UNJOURNALLED_SPANS_TOTAL,
        "counter",
        "Spans acknowledged while the database failed: scored, but lost if the process dies.",
        values=None,
    ),
    Metric(names.SERVICE_DATABASE_BYTES, "gauge", "Bytes of the database in use.", values=None),
    Metric(names.SERVICE_READY, "gauge", "1 while the service takes spans and keeps them, else 0.", values=None),
)
"""The service's own, beside those of its scorer."""

METRICS: Final = (*TASK_METRICS, *LIVE_METRICS, *DECLARED_METRICS, *SCORER_METRICS)
"""Metrics of every scoring process."""


def markdown() -> str:
    """Render all metrics for the README."""
    lines = ["| metric | type | labels | what it counts |", "|---|---|---|---|"]
    for metric in (*METRICS, *SERVICE_METRICS):
        shown = ", ".join(f"`{label}`" for label in metric.all_labels)
        lines.append(f"| `{metric.name}` | {metric.type} | {shown} | {metric.help} |")
    return "\n".join(lines) + "\n"

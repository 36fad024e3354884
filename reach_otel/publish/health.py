"""Show how the scorer itself is doing: its queue, its faults, what it could not keep."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

from reach_otel import names
from reach_otel.publish.catalog import SCORER_METRICS
from reach_otel.publish.series import Family, Spread
from reach_otel.span import Faults
from reach_otel.version import version

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Exposed

    from reach_otel.engine.events import Counted

STAGES: Final = ("attach", "serve", "read", "normalise", "redact", "engine", "publish", "worker", "evaluation")
INCOMPLETE: Final = ("began_before", "no_root")
LATE_COUNTED_MAX: Final = 1_000
_STEP: Final = "step"

_METRICS: Final = {metric.name: metric for metric in SCORER_METRICS}


class Health:
    """Hold the numbers of the scorer's own health. Its owner thread writes them, anyone may read."""

    __slots__ = ("errors", "faults", "lag_seconds", "queue_spans", "received", "refused")

    def __init__(
        self,
        queue_spans: Callable[[], int] = lambda: 0,
        lag_seconds: Callable[[], float] = lambda: 0.0,
        refused: Callable[[], dict[str, int]] = lambda: {"queue_full": 0, "closed": 0},
        faults: Faults | None = None,
    ) -> None:
        self.queue_spans = queue_spans
        self.lag_seconds = lag_seconds
        self.refused = refused
        self.faults = Faults() if faults is None else faults
        self.received = 0
        self.errors: Tally[str] = Tally(dict.fromkeys(STAGES, 0))

    def dropped(self) -> Tally[str]:
        """Count, by reason, the spans that never reached the engine."""
        unread = {reason: number for reason, number in dict(self.faults).items() if reason in Faults.DROPPED}
        return Tally({**self.refused(), **dict.fromkeys(Faults.DROPPED, 0), **unread})

    def odd(self) -> Tally[str]:
        """Count, by reason, the spans that were mended on reading."""
        return Tally({reason: number for reason, number in dict(self.faults).items() if reason not in Faults.DROPPED})


class Scorer:
    """Expose :class:`Health`, and count what the engine says about itself."""

    def __init__(self, health: Health) -> None:
        self._health = health
        self._duplicates = 0
        self._merged = 0
        self._odd: Tally[str] = Tally()
        self._dropped: Tally[str] = Tally({"actions_max": 0, "steps_max": 0})
        self._evicted: Tally[str] = Tally({"runs_max": 0, "fault": 0})
        self._incomplete: Tally[str] = Tally(dict.fromkeys(INCOMPLETE, 0))
        self._faults: Tally[str] = Tally(dict.fromkeys(("cel", "python", "python_timeout"), 0))
        self._failed: Tally[str] = Tally()
        self._overflow: Tally[str] = Tally()
        self._late_family = Family(_METRICS[names.SCORER_LATE_SPAN_AGE_SECONDS], budget=1)
        self._late: Spread = self._late_family.at(())

    def counted(self, event: Counted) -> None:
        """Count what is no run event."""
        if event.what == "duplicate":
            self._duplicates += event.n
        elif event.what == "late":
            for _ in range(min(event.n, LATE_COUNTED_MAX)):
                self._late.observe(event.seconds or 0.0)
        elif event.what == "evicted":
            self._evicted[event.reason] += event.n
        elif event.what == "incomplete":
            self._incomplete[event.reason] += event.n
        elif event.what == "fault":
            (self._failed if event.reason == _STEP else self._faults)[event.reason] += event.n
        elif event.what == "overflow":
            self._dropped[f"{event.reason}_max"] += event.n
        elif event.what == "merged":
            self._merged += event.n
        else:
            self._odd[event.reason or event.what] += event.n

    def merged(self) -> None:
        """Count a run that was a part of another."""
        self._merged += 1

    def overflowed(self, metric: str) -> None:
        """Count a verdict that went to the ``overflow`` series of a metric, in part or whole."""
        self._overflow[metric] += 1

    def collect(self) -> Iterator[Exposed]:
        """Give the metrics for a scrape."""
        health = self._health
        yield self._late_family.expose()
        yield _gauge(names.SCORER_QUEUE_SPANS, health.queue_spans())
        yield _gauge(names.SCORER_LAG_SECONDS, health.lag_seconds())
        yield _counter(names.SCORER_SPANS_RECEIVED_TOTAL, health.received)
        yield _counter(names.SCORER_DUPLICATES_TOTAL, self._duplicates)
        yield _counter(names.SCORER_RUNS_MERGED_TOTAL, self._merged)
        yield _counters(names.SCORER_SPANS_DROPPED_TOTAL, "reason", _sum(health.dropped(), self._dropped))
        yield _counters(names.SCORER_ODD_SPANS_TOTAL, "reason", _sum(health.odd(), self._odd))
        yield _counters(names.SCORER_RUNS_EVICTED_TOTAL, "reason", self._evicted)
        yield _counters(names.SCORER_INCOMPLETE_RUNS_TOTAL, "reason", self._incomplete)
        yield _counters(names.SCORER_CONDITION_FAULTS_TOTAL, "reason", self._faults)
        # Steps and runs on which the engine failed are its faults as much as what it raises.
        failed = Tally({"engine": self._failed[_STEP] + self._evicted["fault"]})
        yield _counters(names.SCORER_ERRORS_TOTAL, "stage", _sum(health.errors, failed))
        yield _counters(names.SCORER_LABEL_OVERFLOW_TOTAL, "metric", self._overflow)
        yield _build_info()


def _gauge(name: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, _METRICS[name].help, value=value)


def _counter(name: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(name, _METRICS[name].help, value=value)


def _counters(name: str, label: str, tally: Tally[str]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, _METRICS[name].help, labels=[label])
    for value, number in dict(tally).items():
        family.add_metric([value], number)
    return family


def _sum(first: Tally[str], second: Tally[str]) -> Tally[str]:
    """Add up two tallies that another thread may write to: each is copied in one go first."""
    total = Tally(dict(first))
    total.update(dict(second))
    return total


def _build_info() -> InfoMetricFamily:
    name = names.SCORER_BUILD_INFO.removesuffix("_info")
    return InfoMetricFamily(name, _METRICS[names.SCORER_BUILD_INFO].help, value={"version": version()})

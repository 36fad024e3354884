"""Expose how the service itself is doing, and say whether it is ready."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from reach_otel import names
from reach_otel.publish.catalog import SERVICE_METRICS

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Exposed

    from reach_otel.service.journal import Journal
    from reach_otel.service.limits import Budget
    from reach_otel.service.scorer import Scorer

_HELP: Final = {metric.name: metric.help for metric in SERVICE_METRICS}
_SIGNALS: Final = ("traces", "logs")
_CODES: Final = ("200", "400", "401", "413", "415", "429", "503")


class Telemetry:
    """Count answers, and collect the service's own metrics."""

    def __init__(self, scorer: Scorer, journal: Journal, budget: Budget) -> None:
        self._scorer = scorer
        self._journal = journal
        self._budget = budget
        self._answers = Counter({(signal, code): 0 for signal in _SIGNALS for code in _CODES})
        self._lock = threading.Lock()
        self.is_stopping: Callable[[], bool] = lambda: False

    def answered(self, signal: str, code: int | str) -> None:
        """Count one answer."""
        with self._lock:
            self._answers[signal, str(code)] += 1

    def reasons(self) -> list[str]:
        """Say what keeps the service from taking spans and keeping them; nothing when it is ready."""
        reasons: list[str] = []
        if self.is_stopping():
            reasons.append("the service is stopping")
        if not self._scorer.is_alive:
            reasons.append("the scorer does not run")
        elif self._scorer.is_replaying:
            reasons.append("the journal is being replayed")
        if self._scorer.room.is_full:
            reasons.append("the queue is full")
        if (trouble := self._journal.trouble) is not None:
            reasons.append(f"the journal fails: {trouble}")
        return reasons

    def describe(self) -> Iterator[Exposed]:
        """Name what will be collected."""
        return self.collect()

    def collect(self) -> Iterator[Exposed]:
        """Give all metrics for a scrape."""
        journal = self._journal
        with self._lock:
            answers = dict(self._answers)
        requests = CounterMetricFamily(
            names.SERVICE_REQUESTS_TOTAL, _HELP[names.SERVICE_REQUESTS_TOTAL], labels=("signal", "code")
        )
        for labels, number in answers.items():
            requests.add_metric(labels, number)
        yield requests
        yield _gauge(names.SERVICE_INFLIGHT_BYTES, self._budget.held)
        yield _gauge(names.SERVICE_QUEUE_BYTES, self._scorer.room.size)
        yield journal.commit_seconds.expose()
        yield _counters(names.SERVICE_JOURNAL_ERRORS_TOTAL, "stage", journal.errors)
        yield CounterMetricFamily(
            names.SERVICE_UNJOURNALLED_SPANS_TOTAL,
            _HELP[names.SERVICE_UNJOURNALLED_SPANS_TOTAL],
            value=journal.unjournalled,
        )
        yield _gauge(names.SERVICE_DATABASE_BYTES, journal.size)
        yield _gauge(names.SERVICE_READY, 0 if self.reasons() else 1)


def _gauge(name: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, _HELP[name], value=value)


def _counters(name: str, label: str, tally: Mapping[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, _HELP[name], labels=[label])
    for value, number in dict(tally).items():
        family.add_metric([value], number)
    return family

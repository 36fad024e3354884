"""Keep the series of one metric: all label sets of a task from the start, one ``overflow`` beyond the budget.

Only the owner thread writes, so that no lock is needed: a scrape on another thread reads each number in one step, and a
fork cannot happen while a lock is held. The exposition itself is prometheus_client's.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.samples import Exemplar

from reach_otel.publish.catalog import Metric, Values
from reach_otel.publish.labels import OVERFLOW, TaskLabels

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Exposed

Series = Any  # Number or Spread, as the metric's type has it


class Trace(NamedTuple):
    """Link a number to the trace behind it: shown as an exemplar."""

    labels: dict[str, str]
    timestamp: float  # Unix seconds


class Number:
    """A counter or gauge."""

    __slots__ = ("exemplar", "value")

    def __init__(self, _: tuple[float, ...] = ()) -> None:
        self.value: float = 0.0
        self.exemplar: Exemplar | None = None

    def inc(self, amount: float = 1, trace: Trace | None = None) -> None:
        """Add to it."""
        self.value += amount
        if trace is not None:
            self.exemplar = Exemplar(trace.labels, amount, trace.timestamp)


class Spread:
    """A histogram."""

    __slots__ = ("bounds", "counts", "exemplars", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.exemplars: list[Exemplar | None] = [None] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, amount: float, trace: Trace | None = None) -> None:
        """Add a value to its bucket."""
        place = bisect_left(self.bounds, amount)
        self.counts[place] += 1
        self.sum += amount
        if trace is not None:
            self.exemplars[place] = Exemplar(trace.labels, amount, trace.timestamp)


class Group(dict[Values, Series]):
    """Hold the series of one task and variant by the other labels; what has none of its own shares ``overflow``."""

    __slots__ = ("_family", "_task")

    def __init__(self, own: Mapping[Values, Series], family: Family, task: str) -> None:
        super().__init__(own)
        self._family = family
        self._task = task

    def __missing__(self, values: Values) -> Series:
        found = self[values] = self._family.overflow(self._task)
        return found


class Family:
    """Hold all series of one metric.

    The budget is a number of label sets a task. The first variant of a task gets what it needs as far as the budget
    goes; a later one gets its whole set or none, so that no variant is counted by halves. Whatever gets none is counted
    in one series, whose labels all say ``overflow``.
    """

    __slots__ = ("_budget", "_make", "_metric", "_series", "_used", "name")

    def __init__(self, metric: Metric, budget: int) -> None:
        self.name: Final = metric.name
        self._metric = metric
        self._budget = budget
        self._used: dict[str, int] = {}
        self._series: dict[Values, Series] = {}
        self._make = Spread if metric.type == "histogram" else Number

    def group(self, task: TaskLabels, variant: str) -> tuple[Group, bool]:
        """Make the series of a task and variant; also say whether some of them are in ``overflow``."""
        wanted = list(self._metric.values(task)) if self._metric.values is not None else []
        used = self._used.get(task.name, 0)
        room = self._budget - 1 - used  # one is kept for the overflow
        admitted = wanted[: max(room, 0)] if not used else wanted if len(wanted) <= room else []
        self._used[task.name] = used + len(admitted)
        own = {values: self.at((task.name, variant, *values)) for values in admitted}
        return Group(own, self, task.name), len(admitted) < len(wanted)

    def overflow(self, task: str) -> Series:
        """Return the series that takes what is beyond the budget of a task."""
        return self.at((task, OVERFLOW, *(OVERFLOW for _ in self._metric.labels)))

    def at(self, values: Values) -> Series:
        """Return the series of these label values, made when it is new."""
        series = self._series.get(values)
        if series is None:
            series = self._series[values] = self._make(self._metric.buckets)
        return series

    def expose(self) -> Exposed:
        """Give all series for a scrape."""
        metric = self._metric
        series = tuple(self._series.items())
        if metric.type == "histogram":
            histogram = HistogramMetricFamily(metric.name, metric.help, labels=metric.all_labels)
            for values, spread in series:
                histogram.add_metric(values, tuple(_cumulative(spread)), spread.sum)
            return histogram
        if metric.type == "counter":
            counter = CounterMetricFamily(metric.name, metric.help, labels=metric.all_labels)
            for values, number in series:
                counter.add_metric(values, number.value, exemplar=number.exemplar)
            return counter
        gauge = GaugeMetricFamily(metric.name, metric.help, labels=metric.all_labels)
        for values, number in series:
            gauge.add_metric(values, number.value)
        return gauge


def declared(metric: Metric, tasks: Iterable[TaskLabels]) -> Exposed:
    """Give the series of a metric that only repeats what task files say."""
    gauge = GaugeMetricFamily(metric.name, metric.help, labels=metric.all_labels)
    for task in tasks:
        for values, number in metric.declared(task) if metric.declared is not None else ():
            gauge.add_metric((task.name, *values), number)
    return gauge


def _cumulative(spread: Spread) -> Iterator[tuple[str, float] | tuple[str, float, Exemplar]]:
    total = 0
    for bound, count, exemplar in zip((*spread.bounds, None), spread.counts, spread.exemplars, strict=True):
        total += count
        le = "+Inf" if bound is None else repr(bound)
        yield (le, total) if exemplar is None else (le, total, exemplar)

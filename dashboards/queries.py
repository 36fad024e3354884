"""Spell PromQL the one way the panels use it: sums over replicas, ratios as sum over sum, no window by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

RATE: Final = "$__rate_interval"
"""The window of graphs: four scrapes, or a step of the graph if that is longer."""

SHOWN: Final = "$__range"
"""The window of tables and single numbers: all the time that is shown."""

TASK: Final = 'task=~"$task"'
PICKED: Final = (TASK, 'variant=~"$variant"')
KNOWN_OUTCOME: Final = ('outcome!~"evicted|overflow"',)
"""Runs of which one knows how they ended: evicted ones were not seen to the end, and `overflow` holds good and bad."""

QUANTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

INSTANCE: Final = 'instance=~"$instance"'
JOB: Final = 'job="reach-otel"'

Counting = Callable[..., str]


def series(metric: str, *matchers: str) -> str:
    """Return a selector."""
    return f"{metric}{{{', '.join(matchers)}}}" if matchers else metric


def rate(metric: str, *by: str, where: tuple[str, ...] = (), of: tuple[str, ...] = PICKED) -> str:
    """Return how much a counter grows a second; for graphs."""
    return _sum(f"rate({series(metric, *of, *where)}[{RATE}])", by)


def grown(metric: str, *by: str, where: tuple[str, ...] = (), of: tuple[str, ...] = PICKED) -> str:
    """Return how much a counter grew in the time that is shown; for tables and single numbers."""
    return _sum(f"increase({series(metric, *of, *where)}[{SHOWN}])", by)


def steps(metric: str, *by: str, where: tuple[str, ...] = (), of: tuple[str, ...] = PICKED) -> str:
    """Return how much a counter grew from one point of a graph to the next."""
    return _sum(f"increase({series(metric, *of, *where)}[{RATE}])", by)


def gauge(metric: str, *by: str, where: tuple[str, ...] = (), of: tuple[str, ...] = PICKED) -> str:
    """Return the sum of a gauge over replicas."""
    return _sum(series(metric, *of, *where), by)


def share(part: str, whole: str) -> str:
    """Return a ratio; nothing, and not NaN, where there is nothing to divide by."""
    return f"{part} / ({whole} > 0)"


def shares(part: str, whole: str, *spread: str) -> str:
    """Return the ratios of parts that have labels ``spread`` beside those of the whole."""
    return f"{part} / ignoring ({', '.join(spread)}) group_left () ({whole} > 0)"


def mean(histogram: str, *by: str, over: Counting = rate, of: tuple[str, ...] = PICKED) -> str:
    """Return the mean of what a histogram saw."""
    return share(over(f"{histogram}_sum", *by, of=of), over(f"{histogram}_count", *by, of=of))


def quantile(q: float, histogram: str, *by: str, over: Counting = rate, of: tuple[str, ...] = PICKED) -> str:
    """Return a quantile of what a histogram saw."""
    return f"histogram_quantile({q}, {over(f'{histogram}_bucket', 'le', *by, of=of)})"


def at_least(number: str, rule: str, *where: str) -> str:
    """Return a number, but no less than a rule held at some time of that which is shown.

    What a series that begins with its first event counts is nothing to ``increase``; the rules count it.
    """
    held = f"sum(max_over_time({series(rule, TASK, *where)}[{SHOWN}]))"
    return f"clamp_min({number}, scalar({held} or vector(0)))"


def recorded(rule: str, *by: str) -> str:
    """Return what a recording rule holds, by task alone unless told otherwise; such rules are over all variants."""
    return f"max by ({', '.join(by or ('task',))}) ({series(rule, TASK)})"


def prefixed(label: str, word: str, expression: str) -> str:
    """Put a word before the values of a label."""
    return f'label_replace({expression}, "{label}", "{word} $1", "{label}", "(.*)")'


def _sum(expression: str, by: tuple[str, ...]) -> str:
    return f"sum by ({', '.join(by)}) ({expression})" if by else f"sum({expression})"

"""Count what the service's own health is read from: verdicts, timeouts, late spans, spans a second, resources."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from reach_otel.engine.events import Counted, Event, RunClosed
from reach_otel.publish.timeouts import STAGES, timeouts
from reach_otel.service.entries import rfc3339
from reach_otel.version import version

if TYPE_CHECKING:
    from reach_otel.publish.health import Health

RATE_SECONDS: Final = 10.0
SAMPLE_SECONDS: Final = 0.5


class Vitals:
    """Follow the engine's events on the owner thread, and show the sums to anyone."""

    def __init__(self, health: Health) -> None:
        self._health = health
        self._started_us = time.time_ns() // 1_000
        self._started = time.monotonic()
        self._outcomes: Counter[str] = Counter()
        self._timeouts: Counter[str] = Counter(dict.fromkeys(STAGES, 0))
        self._counted: Counter[str] = Counter()
        self._samples: deque[tuple[float, int]] = deque([(self._started, 0)])
        self._lock = threading.Lock()

    def publish(self, events: Sequence[Event]) -> None:
        """Count what happened."""
        for event in events:
            if isinstance(event, RunClosed):
                self._outcomes[event.record.outcome] += 1
                self._timeouts.update(timeouts(event))
            elif isinstance(event, Counted):
                self._counted[event.what] += event.n

    def shown(self) -> dict[str, Any]:
        """Show the numbers as of now."""
        health = self._health
        return {
            "version": version(),
            "started": rfc3339(self._started_us),
            "uptime_seconds": round(time.monotonic() - self._started, 3),
            "verdicts": {"total": sum(self._outcomes.values()), "by_outcome": dict(self._outcomes)},
            "spans": {
                "received": health.received,
                "per_second": self._rate(),
                "queue": health.queue_spans(),
                "dropped": dict(health.dropped()),
                "late": self._counted["late"],
                "duplicates": self._counted["duplicate"],
            },
            "timeouts": dict(self._timeouts),
            "errors": dict(health.errors),
            "lag_seconds": health.lag_seconds(),
            "process": resources(),
        }

    def _rate(self) -> float:
        """Give the spans a second over about the last ten, or since it was last asked where that is longer ago."""
        now, received = time.monotonic(), self._health.received
        with self._lock:
            samples = self._samples
            while len(samples) > 1 and now - samples[1][0] >= RATE_SECONDS:
                samples.popleft()
            then, before = samples[0]
            if now - samples[-1][0] >= SAMPLE_SECONDS:
                samples.append((now, received))
        return round((received - before) / (now - then), 3) if now > then else 0.0


def resources() -> dict[str, Any]:
    """Show what the process takes of the machine; ``None`` for memory where the system does not tell."""
    times = os.times()
    return {
        "memory_peak_bytes": _memory_peak_bytes(),
        "cpu_seconds": round(times.user + times.system, 3),
        "threads": threading.active_count(),
    }


def _memory_peak_bytes() -> int | None:
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

"""Tell the time, from the system or by hand."""

from __future__ import annotations

import time
from typing import Final, Protocol

SELDOM_SECONDS: Final = 60.0


class Clock(Protocol):
    """Give a monotonic time in nanoseconds; only differences of it mean anything."""

    def now_ns(self) -> int: ...


class SystemClock:
    """Read the operating system's monotonic clock."""

    __slots__ = ()

    def now_ns(self) -> int:
        return time.monotonic_ns()


class ManualClock:
    """Stand still until told to move; for replay and tests."""

    __slots__ = ("_now_ns",)

    def __init__(self, now_ns: int = 0) -> None:
        self._now_ns = now_ns

    def now_ns(self) -> int:
        return self._now_ns

    def advance(self, seconds: float) -> None:
        """Move forward by ``seconds``; a negative value raises ``ValueError``."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back: {seconds} s")
        self._now_ns += int(seconds * 1e9)


class Seldom:
    """Say yes once a minute for each key: what may happen at each span is not worth a log line each time."""

    __slots__ = ("_latest", "_seconds")

    def __init__(self, seconds: float = SELDOM_SECONDS) -> None:
        self._seconds = seconds
        self._latest: dict[str, float] = {}

    def __call__(self, key: str = "") -> bool:
        now, latest = time.monotonic(), self._latest.get(key)
        if latest is not None and now - latest < self._seconds:
            return False
        self._latest[key] = now
        return True

"""Tell the time, from the system or by hand."""

from __future__ import annotations

import time
from typing import Protocol


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

"""Count what was refused, on threads that must not wait."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable


class Refusals:
    """Count spans that were not taken, with no lock on the side that counts."""

    __slots__ = ("_count", "_lock", "_reads", "add")

    def __init__(self) -> None:
        self._count = itertools.count()
        self._reads = 0
        self._lock = threading.Lock()
        self.add: Callable[[], int] = self._count.__next__  # one step, which no other thread can come between

    def value(self) -> int:
        """Return how many there were; reading counts too, and is taken off again."""
        with self._lock:
            number = next(self._count) - self._reads
            self._reads += 1
            return number

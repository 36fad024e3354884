"""Time several cases side by side, so that what disturbs the machine disturbs all of them alike."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

Case = Callable[[], float]
"""Does its work once and returns the seconds that count."""


@dataclass(frozen=True)
class Timing:
    """Hold the seconds of one case, one entry a round; entries of the same place were taken one after the other."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.seconds)

    def ratio_to(self, other: Timing) -> float:
        """Give the median of the ratios round by round, which is steadier than the ratio of medians."""
        return median(mine / theirs for mine, theirs in zip(self.seconds, other.seconds, strict=True))


def interleave(cases: Mapping[str, Case], rounds: int) -> dict[str, Timing]:
    """Run all cases ``rounds`` times, in turns that start with another case each time, after one round to warm up."""
    names = list(cases)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds + 1):
        start = turn % len(names)
        for name in names[start:] + names[:start]:
            gc.collect()
            taken = cases[name]()
            if turn:
                seconds[name].append(taken)
    return {name: Timing(tuple(taken)) for name, taken in seconds.items()}


def cpu_seconds(work: Callable[[], object]) -> float:
    """Give the processor time that this thread spent in ``work``."""
    start = time.thread_time_ns()
    work()
    return (time.thread_time_ns() - start) / 1e9

"""How often ReachHighLayerLow pages by chance, and how late with few runs, is what its comment and the runbook say."""

from __future__ import annotations

import math
import random
import re
from itertools import accumulate
from typing import Any, Final, NamedTuple

import pytest

from tests.support import panels

STEP_SECONDS: Final = 15
A_DAY: Final = 86_400 // STEP_SECONDS
FOR_SECONDS: Final = 120
KEPT_SECONDS: Final = 300


class Limits(NamedTuple):
    """The numbers of the rules: runs that each window must have, and what a fall must be beyond."""

    floors: tuple[int, int, int]
    variance: float
    hour: int


def committed() -> Limits:
    rules: dict[str, dict[str, Any]] = {rule.get("record") or rule["alert"]: rule for rule in panels.rules()}
    window = rules["task:reach_high_layer:ratio"]["expr"]
    alert = rules["ReachHighLayerLow"]
    assert (alert["for"], alert["keep_firing_for"]) == ("2m", "5m")
    floors = [int(re.findall(rf"increase{span} >= (\d+)", window)[0]) for span in ("5m", "15m", "1h")]
    (variance,) = re.findall(r"task:reach_high_layer_runs:increase >= ([\d.]+)", alert["expr"])
    (hour,) = re.findall(r"increase1h >= (\d+)", alert["expr"])
    return Limits((floors[0], floors[1], floors[2]), float(variance), int(hour))


def pages(limits: Limits, runs_an_hour: float, share: float, days: int) -> float:
    """Return the pages a day of a task whose runs come at random, and of which this share reaches the deepest layer."""
    chance = random.Random(7)
    none = math.exp(-runs_an_hour * STEP_SECONDS / 3600)
    came = [_poisson(chance, none) for _ in range(days * A_DAY)]
    runs = list(accumulate(came, initial=0))
    reached = list(accumulate((sum(chance.random() < share for _ in range(n)) for n in came), initial=0))
    told = pending = kept = 0
    fires = False
    for now in range(1, len(runs)):
        if _is_low(limits, runs, reached, now):
            pending, kept = pending + STEP_SECONDS, KEPT_SECONDS
            if not fires and pending > FOR_SECONDS:
                fires, told = True, told + 1
        else:
            pending, kept = 0, kept - STEP_SECONDS
            fires = fires and kept > 0
    return told / days


def _poisson(chance: random.Random, none: float) -> int:
    n, left = 0, chance.random()
    while left > none:
        n, left = n + 1, left * chance.random()
    return n


def _is_low(limits: Limits, runs: list[int], reached: list[int], now: int) -> bool:
    def window(seconds: int) -> tuple[int, int]:
        begin = max(0, now - seconds // STEP_SECONDS)
        return runs[now] - runs[begin], reached[now] - reached[begin]

    for seconds, floor in zip((300, 900, 3600), limits.floors, strict=True):
        n, good = window(seconds)
        if n >= floor:
            below = 0.5 - good / n
            in_hour, good_in_hour = window(3600)
            lasts = in_hour >= limits.hour and good_in_hour / in_hour < 0.5
            return below > 0 and (below**2 * n >= limits.variance or lasts)
    return False


@pytest.mark.slow
@pytest.mark.parametrize(
    ("runs_an_hour", "share", "stated"),
    [(12, 0.8, 0.05), (72, 0.8, 0.02), (12, 0.7, 0.7), (24, 0.7, 0.25), (72, 0.7, 0.25), (72, 0.6, 5), (240, 0.6, 5)],
)
def test_chance_pages_no_more_than_is_stated(runs_an_hour: float, share: float, stated: float) -> None:
    """Hardly any for a task at 0.8, one in four days at 0.7 (0.7 a day with 12 runs an hour), up to 5 a day at 0.6."""
    assert pages(committed(), runs_an_hour, share, days=100) <= stated


@pytest.mark.slow
def test_without_the_standard_error_it_would() -> None:
    """The simulation can tell: with 10 runs and any value below 0.5, a task at 0.7 pages several times a day."""
    assert pages(Limits((10, 10, 10), 0, 40), 72, 0.7, days=10) > 3


@pytest.mark.slow
@pytest.mark.parametrize("runs_an_hour", [24, 288])
def test_a_task_that_is_below_pages(runs_an_hour: float) -> None:
    """0.45 for good is told of within a day, also where the hour has too few runs to decide alone."""
    assert pages(committed(), runs_an_hour, 0.45, days=1) >= 1

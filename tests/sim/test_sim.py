"""Play long random histories with faults; the seed is the commit, so each differs and each can be played again.

``REACH_TEST_SIM_SEED`` sets the seed. A failure names it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from reach_otel.engine.store import Engine
from tests.sim.history import Faults, History

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reach_otel.engine.events import Event
    from reach_otel.span.step import Step


def seed() -> int:
    """Take the seed from the environment, else from the commit."""
    given = os.environ.get("REACH_TEST_SIM_SEED")
    if given is not None:
        return int(given)
    here = Path(__file__).parent
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=False)
    return int(hashlib.sha256(head.stdout.encode()).hexdigest()[:8], 16)


def play(history: History) -> None:
    """Play a history; a failure says how to play it again."""
    try:
        history.play()
    except AssertionError as error:
        raise AssertionError(f"REACH_TEST_SIM_SEED={history.seed}, {history.runs} runs: {error}") from error


def test_a_history_with_faults() -> None:
    """Whatever happens to the spans on the way, each verdict is right for what arrived, comes once and in time."""
    play(History(seed(), runs=600, rate=4.0))


def test_a_history_without_faults() -> None:
    """Where nothing goes wrong, nothing goes wrong."""
    play(History(seed() + 1, runs=200, faults=Faults(0, 0, 0, 0, 0, 0, 0)))


@pytest.mark.slow
def test_a_long_history_with_many_faults() -> None:
    """The same holds for thousands of runs under much heavier faults."""
    heavy = Faults(lose=0.05, duplicate=0.2, delay=0.15, reorder=0.5, skew=0.1, huge=0.02, restart=0.02)
    play(History(seed() + 2, runs=8000, rate=20.0))
    play(History(seed() + 3, runs=4000, rate=10.0, faults=heavy))


# Canaries: engines with a known fault, which the history must not survive --------------------------------------------


class ByArrival(Engine):
    """Orders what it is fed by arrival instead of by the spans' own times."""

    def feed(self, steps: Iterable[Step], now_ns: int) -> list[Event]:
        clock: Any = self.__dict__.setdefault("arrivals", count())
        return super().feed([self.late(step, next(clock)) for step in steps], now_ns)

    @staticmethod
    def late(step: Step, arrival: int) -> Step:
        length = step.end_ns - step.start_ns
        end_ns = 1_796_025_600_000_000_000 + arrival * 10**9
        return msgspec.structs.replace(step, start_ns=end_ns - length, end_ns=end_ns)


class CountsTwice(Engine):
    """Takes every span for a new one, though it may have come before."""

    def feed(self, steps: Iterable[Step], now_ns: int) -> list[Event]:
        seen: Any = self.__dict__.setdefault("seen", {})
        fresh = []
        for step in steps:
            key = (step.trace_id, step.span_id)
            seen[key] = seen.get(key, 0) + 1
            again = step.kind == "tool" and seen[key] > 1
            fresh.append(msgspec.structs.replace(step, span_id=f"{step.span_id}{seen[key]}") if again else step)
        return super().feed(fresh, now_ns)


class Forgetful(Engine):
    """Loses one step in two hundred."""

    def feed(self, steps: Iterable[Step], now_ns: int) -> list[Event]:
        clock: Any = self.__dict__.setdefault("fed", count(1))
        return super().feed([step for step in steps if next(clock) % 200], now_ns)


class Hasty(Engine):
    """Gives its verdicts before their time."""

    def tick(self, now_ns: int) -> list[Event]:
        return super().tick(now_ns + 1_500_000_000)


@pytest.mark.parametrize("broken", [ByArrival, CountsTwice, Forgetful, Hasty])
def test_canary(broken: type[Engine]) -> None:
    """A broken engine does not survive the history: the check can fail."""
    with pytest.raises(AssertionError):
        History(seed(), runs=300, make=broken).play()

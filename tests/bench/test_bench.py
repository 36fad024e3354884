"""Run each benchmark in small: it must work; figures are for ``python -m tests.bench``."""

from __future__ import annotations

import pytest

from tests.bench.__main__ import rows
from tests.bench.timing import Timing, interleave

pytestmark = pytest.mark.bench


def test_every_benchmark_gives_a_figure() -> None:
    measured = list(rows(quick=True))
    assert len(measured) >= 8
    assert all(row.what and row.measured and row.goal for row in measured)


def test_cases_take_turns_and_the_first_round_is_thrown_away() -> None:
    order: list[str] = []

    def case(name: str, seconds: float) -> float:
        order.append(name)
        return seconds

    timings = interleave({"a": lambda: case("a", 1.0), "b": lambda: case("b", 2.0)}, rounds=2)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert timings == {"a": Timing((1.0, 1.0)), "b": Timing((2.0, 2.0))}
    assert timings["b"].ratio_to(timings["a"]) == 2.0

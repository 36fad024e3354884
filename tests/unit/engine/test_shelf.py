"""Check that only so many runs are kept ready, and that nobody can tell."""

from __future__ import annotations

from random import Random

import pytest

from reach_otel.engine.plan import no_plan
from reach_otel.engine.run import Run
from reach_otel.engine.shelf import Shelf
from tests.support.engines import Driver, verdicts
from tests.support.histories import make_run, make_task
from tests.support.steps import Steps

PLAN = no_plan()


def shelf_of(*runs: Run, hot_max: int = 1) -> Shelf:
    shelf = Shelf(hot_max, 1_000)
    for run in runs:
        shelf.put(run)
    shelf.tidy()
    return shelf


def run_with(name: str, value: object = 1, *, over: bool = False) -> Run:
    run = Run(name, "t", PLAN, 1_000)
    run.due_ns = 5
    run.add(Steps().tool("find", 0, 1, parent="root", args={"x": value}))
    if over:
        run.add(Steps().agent("bot", 0, 2, span_id="root"))
    return run


@pytest.mark.parametrize("hot", [1, 2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_interleaved_runs_are_scored_as_if_all_were_ready(hot: int, seed: int) -> None:
    """Runs fed in turn, each step waking one and sending another to rest, give the same records."""
    random = Random(seed)
    tasks = (make_task(random),)
    runs = [make_run(random, n, turns=5) for n in range(1, 6)]
    woven = [[run[n]] for n in range(max(map(len, runs))) for run in runs if n < len(run)]
    assert verdicts(tasks, woven, hot_runs_max=hot) == verdicts(tasks, woven)


def test_open_runs_look_the_same_at_rest() -> None:
    """Neither summaries nor records of open runs tell which are packed, and looking changes nothing."""
    random = Random(7)
    tasks = (make_task(random),)
    lean, roomy = Driver(tasks, hot_runs_max=1), Driver(tasks)
    for n in range(1, 6):
        steps = make_run(random, n, turns=5)[:-1] or [Steps(n).tool("find", 0, 1)]
        lean.feed(steps)
        roomy.feed(steps)
    assert lean.engine.runs() == roomy.engine.runs()
    assert lean.open_records() == roomy.open_records()
    assert lean.engine.runs() == roomy.engine.runs()


def test_the_order_is_that_of_feeding() -> None:
    """The run fed longest ago stands first, packed or not, and wakes as the last."""
    shelf = shelf_of(run_with("a"), run_with("b"), run_with("c"))
    assert list(shelf) == ["a", "b", "c"]
    assert [s.run_id for s in shelf.summaries()] == ["a", "b", "c"]
    woken = shelf.get("a")
    assert woken is not None
    shelf.put(woken)
    shelf.tidy()
    assert list(shelf) == ["b", "c", "a"]
    assert (len(shelf), shelf.due_ns("b"), shelf.due_ns("x"), shelf.get("x")) == (3, 5, None, None)


def test_a_run_that_cannot_be_packed_rests_as_it_is() -> None:
    """It loses its place among the ready ones to others, and nothing else."""
    odd = run_with("odd", object())
    shelf = shelf_of(odd, run_with("b"), run_with("c"))
    assert list(shelf) == ["odd", "b", "c"]
    assert shelf.pop("odd") is odd
    assert list(shelf) == ["b", "c"]


def test_a_run_that_is_over_goes_first() -> None:
    """Of the oldest few one that has ended anyway makes room, else the very oldest."""
    shelf = shelf_of(run_with("a"), run_with("b", over=True), run_with("c"))
    assert shelf.oldest(1) == "a"
    assert shelf.oldest(3) == "b"

"""Hold that an engine keeps within its limits, whatever it is fed, and gives one verdict a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tests.property.worlds import World, fixed, make_world, worlds
from tests.support.engines import Driver
from tests.support.steps import Steps

if TYPE_CHECKING:
    from random import Random

randoms = st.randoms(use_true_random=False)


@fixed(60)
@given(randoms)
def test_open_runs_and_kept_actions_stay_within_limits(random: Random) -> None:
    """After every step there are at most ``runs_max`` open runs of at most ``actions_max`` actions each."""
    world = make_world(random, runs=6, tasks=1, turns=6)
    driver = Driver(world.tasks, runs_max=3, actions_max=4)
    steps = world.steps
    random.shuffle(steps)
    for step in steps:
        driver.feed([step])
        assert len(driver.engine.runs()) <= 3
        for record in driver.open_records().values():
            assert sum(s["class"] is not None for s in record["steps"]) <= 4
    for record in driver.close().values():
        assert sum(s["class"] is not None for s in record["steps"]) <= 4


@fixed(60)
@given(worlds(runs=4, tasks=2, turns=4), randoms)
def test_one_verdict_a_run_ever(world: World, random: Random) -> None:
    """Late, repeated and badly timed spans, ticks at any time and evictions never make a second verdict on a run."""
    driver = Driver(world.tasks, runs_max=random.choice((2, 50)))
    steps = [*world.steps, *(s for s in world.steps if random.random() < 0.3)]
    random.shuffle(steps)
    for step in steps:
        driver.feed([step])
        if random.random() < 0.4:
            driver.wait(random.choice((0.5, 3, 40, 700)))
    driver.wait(10_000)
    assert not driver.engine.runs()
    assert driver.engine.due_ns() is None
    before = len(driver.records)
    for step in steps:
        driver.feed([step])
    driver.close()
    assert len(driver.records) == before == len(world.runs)  # the driver itself fails on a second verdict


def test_extra_actions_are_counted_and_not_kept() -> None:
    """Of actions beyond ``actions_max`` only the number is known, and the run goes on to its verdict."""
    driver = Driver((), actions_max=5)
    made = Steps()
    for n in range(8):
        made.tool("find", n * 2, n * 2 + 1, parent="root", args={"n": n}, result={"n": n})
    made.agent("bot", 0, 20, span_id="root")
    driver.feed(made.made)
    [record] = driver.close().values()
    assert sum(s["class"] is not None for s in record["steps"]) == 5
    assert sum(n for (what, _), n in driver.counts.items() if what == "overflow") == 3


def test_the_verdict_cache_is_bounded() -> None:
    """Of the last ``verdicts_max`` verdicts a late span is told; the memory of older ones is given up."""
    driver = Driver((), verdicts_max=3)
    runs = []
    for run in range(1, 6):
        made = Steps(run)
        made.tool("find", 0, 1, parent="root")
        made.agent("bot", 0, 2, span_id="root")
        driver.feed(made.made)
        driver.wait(5)
        runs.append(made)
    assert len(driver.records) == 5
    for made in runs[-3:]:
        driver.feed([made.tool("find", 1, 2, parent="root")])
        assert not driver.engine.runs()
    assert sum(n for (what, _), n in driver.counts.items() if what == "late") == 3
    driver.feed([runs[0].tool("find", 1, 2, parent="root")])
    assert len(driver.engine.runs()) == 1

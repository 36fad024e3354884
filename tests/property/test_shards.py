"""Hold two engines, between which traces move in the midst of things, to what one engine says of the same spans."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from reach_otel.engine import Engine
from tests.property.worlds import fixed, make_world
from tests.support.compare import assert_same
from tests.support.engines import Driver, verdicts

NOBODY = 0  # a time before all spans


@fixed(300)
@given(st.integers(0, 2**32), st.integers(-2, 70))
def test_two_scorers_never_both_score_a_run_that_moved(seed: int, per_cent: int) -> None:
    """A scorer joins: from then on it gets the spans that end. A run is scored whole by one, or it is counted.

    The joining one scores what began with it, just as one engine would, and counts what was under way, or has no root.
    Of that the other one may have a part: it waits for the root in vain, and gives up on the run as abandoned, if no
    inner agent ended.
    """
    random = Random(seed)
    world = make_world(random, runs=5, tasks=2, turns=5)
    runs = [list(steps) for steps in world.runs]
    first = min(step.start_ns for steps in runs for step in steps)
    last = max(step.end_ns for steps in runs for step in steps)
    joined_ns = first + (last - first) * per_cent // 100
    whole = verdicts(world.tasks, runs)

    old = Driver(world.tasks, make=Engine)
    new = Driver(world.tasks, make=lambda *args, **more: Engine(*args, since_ns=joined_ns, **more))
    moved = []
    for steps in runs:
        stays = random.random() < 0.3
        random.shuffle(steps)
        for step in steps:
            (old if stays or step.end_ns < joined_ns else new).feed([step])
        if not stays and any(step.end_ns >= joined_ns for step in steps):
            moved.append(steps)
    before, after = old.close(), new.close()

    assert not before.keys() & after.keys()
    assert before.keys() | after.keys() <= whole.keys()
    counted = under_way = 0
    for steps in moved:
        run = steps[0].trace_id
        has_root = any(s.kind == "agent" and s.parent_id is None for s in steps)
        is_under_way = min(step.start_ns for step in steps if step.kind != "other") < joined_ns
        if has_root and not is_under_way:
            assert_same(after[run], whole[run])
            continue
        assert run not in after
        counted += 1
        under_way += has_root
        if has_root and run in before and not any(s.kind == "agent" and s.end_ns < joined_ns for s in steps):
            assert before[run]["outcome"] == "abandoned"
    # Of a run without a root, what is left for the joining one may all have begun with it.
    assert new.counts.get(("incomplete", "began_before"), 0) >= under_way
    assert sum(n for (what, _), n in new.counts.items() if what == "incomplete") == counted
    for run in before.keys() - {steps[0].trace_id for steps in moved}:
        assert_same(before[run], whole[run])


@fixed(100)
@given(st.integers(0, 2**32), st.integers(1, 4))
def test_sums_over_scorers_are_those_of_one(seed: int, scorers: int) -> None:
    """Traces shared out over several scorers that were there all the time get the same verdicts as from one."""
    random = Random(seed)
    world = make_world(random, runs=6, tasks=2, turns=4)
    engines = [
        Driver(world.tasks, make=lambda *args, **more: Engine(*args, since_ns=NOBODY, **more)) for _ in range(scorers)
    ]
    for steps in world.runs:
        random.choice(engines).feed(steps)
    shared = [driver.close() for driver in engines]
    merged = {run: record for records in shared for run, record in records.items()}
    assert sum(map(len, shared)) == len(merged)
    assert_same(merged, verdicts(world.tasks, world.runs))

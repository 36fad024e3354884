"""Hold the streaming engine to a slow plain model that sees the whole run at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tests.property.plain_model import choose, model, modelled
from tests.property.worlds import World, fixed, worlds
from tests.support.compare import assert_same
from tests.support.engines import Driver, verdicts

if TYPE_CHECKING:
    from random import Random

    from reach_otel.span.step import Step


@fixed(600)
@given(worlds(tasks=2, turns=8))
def test_verdict_equals_plain_model(world: World) -> None:
    """The verdict on a run is what the plain model makes of all its steps."""
    [record] = verdicts(world.tasks, [[step] for step in world.steps]).values()
    assert_same(modelled(record), model(choose(world.tasks, world.steps), world.steps))


@fixed(150)
@given(worlds(tasks=2, turns=5), st.randoms(use_true_random=False))
def test_live_numbers_equal_those_of_the_set_so_far(world: World, random: Random) -> None:
    """After every single step, in any order, an open run's record is that of a fresh engine and of the plain model."""
    arriving = world.steps
    random.shuffle(arriving)
    live = Driver(world.tasks)
    so_far: list[Step] = []
    for step in arriving:
        so_far.append(step)
        live.feed([step])
        fresh = Driver(world.tasks)
        fresh.feed(sorted(so_far, key=lambda s: (s.end_ns, s.span_id)))
        assert_same(live.open_records(), fresh.open_records())
        for record in live.open_records().values():
            assert_same(modelled(record), model(choose(world.tasks, so_far), so_far, final=False))
        assert len(live.engine.runs()) == any(step.kind != "other" for step in so_far)  # wrappers alone make no run

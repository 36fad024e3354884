"""Hold that scores are a function of the set of steps: not of order, batching, repetition or neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.worlds import World, fixed, worlds
from tests.support.compare import assert_same
from tests.support.engines import verdicts
from tests.support.steps import batches

if TYPE_CHECKING:
    from random import Random

    from reach_otel.span.step import Step

randoms = st.randoms(use_true_random=False)
cuts = st.lists(st.integers(0, 200), max_size=6)


def disturbed(random: Random, steps: list[Step]) -> list[Step]:
    """Repeat some steps, then shuffle all."""
    again = [step for step in steps if random.random() < 0.2]
    mixed = [*steps, *again]
    random.shuffle(mixed)
    return mixed


@fixed(200)
@given(worlds(runs=3, tasks=2), randoms, cuts)
def test_any_order_batching_and_repetition_give_equal_records(world: World, random: Random, places: list[int]) -> None:
    """Several runs, shuffled into each other, partly repeated and cut into any batches, score as when told in order."""
    plain = verdicts(world.tasks, [world.steps])
    assert_same(verdicts(world.tasks, batches(disturbed(random, world.steps), places)), plain)
    assert len(plain) == len(world.runs)


@fixed(100)
@given(worlds(runs=3, tasks=2))
def test_runs_do_not_see_each_other(world: World) -> None:
    """A run scores in company as it does alone."""
    alone: dict[str, object] = {}
    for run in world.runs:
        alone |= verdicts(world.tasks, [run])
    turns = max(len(run) for run in world.runs)
    woven = [run[n] for n in range(turns) for run in world.runs if n < len(run)]
    assert_same(verdicts(world.tasks, [woven]), alone)


@pytest.mark.parametrize("scope", ["agent", "conversation"])
@fixed(200)
@given(worlds(runs=3, tasks=2), randoms, cuts)
def test_other_scopes_do_not_see_order_either(scope: str, world: World, random: Random, places: list[int]) -> None:
    """One run an agent, or one a conversation over several traces, scores the same in any order too."""
    marked = [
        msgspec.structs.replace(step, conversation_id="talk")
        if n != 1 and (step.kind == "agent" or (step.kind == "model" and random.random() < 0.5))
        else step
        for n, run in enumerate(world.runs)
        for step in run
    ]
    plain = verdicts(world.tasks, [marked], run_scope=scope)
    assert_same(verdicts(world.tasks, batches(disturbed(random, marked), places), run_scope=scope), plain)


@fixed(100)
@given(worlds(runs=4, tasks=2), randoms)
def test_two_replicas_say_what_one_does(world: World, random: Random) -> None:
    """Runs shared out by trace over two engines give together what one engine gives."""
    one = verdicts(world.tasks, [world.steps])
    homes = {step.trace_id: random.randrange(2) for step in world.steps}
    two = [verdicts(world.tasks, [[s for s in world.steps if homes[s.trace_id] == home]]) for home in (0, 1)]
    assert not two[0].keys() & two[1].keys()
    assert_same(two[0] | two[1], one)

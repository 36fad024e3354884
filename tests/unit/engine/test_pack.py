"""Check that a run at rest is the same run when it wakes."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from reach_otel.engine.conclude import conclude
from reach_otel.engine.pack import pack, unpack
from reach_otel.engine.plan import plan_of
from reach_otel.engine.run import Run
from reach_otel.span.step import Step
from tests.support.histories import make_run, make_task
from tests.support.steps import Steps, plain
from tests.support.tasks import goal, task

SHOP = task(goal("find", used=True), grounded=["sku"])


def run_of(steps: list[Step], of: Any = SHOP) -> Run:
    run = Run("r", "t", plan_of(of), 1_000)
    for step in steps:
        run.add(step)
    return run


@pytest.mark.parametrize("seed", range(40))
def test_a_run_packed_in_its_midst_ends_the_same(seed: int) -> None:
    """Packing after any number of steps, in any order of steps, changes no figure of the record."""
    random = Random(seed)
    of, steps = make_task(random), make_run(random, turns=6)
    random.shuffle(steps)
    whole, half = run_of(steps, of), run_of(steps[: len(steps) // 2], of)
    packed = pack(half)
    assert packed is not None
    assert (packed.summary(), packed.is_over) == (half.summary(), half.is_over)
    woken = unpack(packed, 1_000)
    for step in steps[len(steps) // 2 :]:
        woken.add(step)
    assert plain(conclude(woken, final=True, steps=True)) == plain(conclude(whole, final=True, steps=True))


def test_what_was_told_is_not_told_again() -> None:
    """Deadline and told faults outlive the packing."""
    run = run_of(
        [Steps().tool("find", 0, 1, args={}, result={"n": 1})], task(goal("a", verify={"when": "result.n > 'x'"}))
    )
    assert run.new_faults() == ["cel"]
    run.due_ns = 7
    packed = pack(run)
    assert packed is not None
    woken = unpack(packed, 1_000)
    woken.settle()
    assert (woken.due_ns, woken.new_faults(), woken.fold.faults) == (7, [], ["cel"])


@pytest.mark.parametrize("value", [object(), 1 << 80, {"x": "\ud800"}])
def test_a_value_with_no_plain_form_cannot_be_packed(value: Any) -> None:
    """Such a run stays as it is."""
    assert pack(run_of([Steps().tool("find", 0, 1, args={"x": value})])) is None

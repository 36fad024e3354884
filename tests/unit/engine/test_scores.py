"""Check each score as a function of where the milestones stand."""

from __future__ import annotations

import pytest

from reach_otel.engine.scores import composite, high_layer, overall, purity, reach_at, score, share
from reach_otel.task import Weights
from tests.support.folds import Folding
from tests.support.tasks import chain, goal, task

USUAL = Weights(0.4, 0.3, 0.3)


def test_purity_is_the_effective_share() -> None:
    """Effective actions over all; none at all is 0."""
    assert purity({"effective": 9, "off_task": 3}) == 0.75
    assert purity({"effective": 0}) == 0.0


@pytest.mark.parametrize(
    ("parts", "no_obstacle", "whole"),
    [
        ((0.42, 0.88, 0.31), "exclude", 0.525),
        ((0.6, 0.75, None), "exclude", 0.664),
        ((0.6, 0.75, None), "one", 0.765),
        ((0.0, 0.0, None), "exclude", 0.0),
        ((0.0, 0.0, None), "one", 0.0),
        ((1.0, 1.0, None), "exclude", 1.0),
    ],
)
def test_absent_digestion_is_left_out(parts: tuple[float, float, float | None], no_obstacle: str, whole: float) -> None:
    """Without obstacles the other weights are scaled up, or it counts as 1; an agent that does nothing scores 0."""
    assert composite(*parts, USUAL, no_obstacle=no_obstacle) == pytest.approx(whole, abs=5e-4)


def test_weights_of_digestion_alone_score_nothing_without_obstacles() -> None:
    """There is no division by nothing."""
    assert composite(1.0, 1.0, None, Weights(0.0, 0.0, 1.0)) == 0.0


def test_a_share_of_nothing_is_absent() -> None:
    """No flags, no share."""
    assert (share([]), share([True, False])) == (None, 0.5)


def test_reach_within_the_first_actions() -> None:
    """Only milestones that held by action K count, and only reached ones."""
    folding = Folding(task(goal("a"), goal("b", used=True), goal("c")))
    for tool in ("a", "b", "c"):
        folding.call(tool, {}, {})
    assert [reach_at(folding.fold.progress, k) for k in (1, 2, 3)] == pytest.approx([1 / 3, 1 / 3, 2 / 3])


def test_high_layer_is_that_of_the_deepest_must_milestones() -> None:
    """The share reached in the deepest layer; a task without must-milestones has none."""
    folding = Folding(task(*chain("a", "b"), goal("b2", after=["a"])))
    for tool in ("a", "b"):
        folding.call(tool, {}, {})
    assert high_layer(folding.fold.progress) == 0.5
    traps = [{"id": "t", "verify": {"tool": "x"}}]
    assert high_layer(Folding(task(traps=traps)).fold.progress) is None


@pytest.mark.parametrize(("output", "trapped", "depth"), [(True, False, 1.0), (False, False, 0.0), (True, True, 0.0)])
def test_a_task_of_traps_asks_for_an_output_and_no_trap(output: bool, trapped: bool, depth: float) -> None:
    """Depth, coverage and reach@K are all or nothing there."""
    folding = Folding(task(traps=[{"id": "t", "verify": {"tool": "x"}}]))
    scores = score(folding.fold.progress, folding.fold.classes, has_output=output, trapped=trapped)
    assert (scores.depth, scores.coverage, set(scores.reach_at_k.values())) == (depth, int(depth), {depth})


def test_a_trap_makes_the_composite_nothing() -> None:
    """Depth stays as it is, so that one can see both."""
    folding = Folding(task(goal("a")))
    folding.call("a", {}, {})
    assert overall(folding.fold.progress, folding.fold.classes, has_output=True, trapped=True) == (1.0, 1.0, None, 0.0)


def test_an_optional_bonus_is_capped() -> None:
    """The bonus adds to the composite, up to 1."""
    goals = [goal("a"), goal("b"), goal("extra", type="optional")]
    folding = Folding(task(*goals, optional_bonus=0.2))
    folding.call("a", {}, {})
    before = overall(folding.fold.progress, folding.fold.classes, has_output=False, trapped=False)[3]
    folding.call("extra", {}, {})
    assert overall(folding.fold.progress, folding.fold.classes, has_output=False, trapped=False)[3] == before + 0.2
    folding.call("b", {}, {})
    assert overall(folding.fold.progress, folding.fold.classes, has_output=False, trapped=False)[3] == 1.0


def test_k_of_the_task_is_one_of_the_reported() -> None:
    """Reach@5, @10 and @k are given; a run of no task has no k of its own."""
    for folding, ks in ((Folding(task(goal("a"), k=7)), ["5", "7", "10"]), (Folding(None), ["5", "10"])):
        scores = score(folding.fold.progress, folding.fold.classes, has_output=False, trapped=False)
        assert list(scores.reach_at_k) == ks

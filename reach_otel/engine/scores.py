"""Compute the reach scores of one run from where its milestones stand: each a small pure function (SPEC 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reach_otel.engine.record import Scores

if TYPE_CHECKING:
    from reach_otel.engine.progress import Progress
    from reach_otel.task import Weights

HIGH_RISK_BELOW = 0.5
REACH_AT = (5, 10)  # K of Reach@K beside the task's own


def depth(progress: Progress, *, has_output: bool, trapped: bool) -> float:
    """Reach depth, SPEC 6.1: weighted share of must-milestones reached. A task of traps only asks not to be trapped."""
    if not progress.plan.must:
        return 1.0 if has_output and not trapped and progress.plan.matched else 0.0
    return progress.reached_weight / progress.plan.weight if progress.plan.weight else 0.0


def purity(classes: dict[str, int]) -> float:
    """Path purity, SPEC 6.2: effective actions / all actions; 0 without actions."""
    total = sum(classes.values())
    return classes["effective"] / total if total else 0.0


def composite(
    depth: float, purity: float, digestion: float | None, weights: Weights, *, no_obstacle: str = "exclude"
) -> float:
    """Weigh the three parts, SPEC 6.4. Without obstacles digestion is left out and the other weights are scaled up."""
    if digestion is None and no_obstacle == "one" and (depth or purity):
        digestion = 1.0
    if digestion is None:
        weight = weights.depth + weights.purity
        return (weights.depth * depth + weights.purity * purity) / weight if weight else 0.0
    return weights.depth * depth + weights.purity * purity + weights.digestion * digestion


def share(flags: Sequence[bool]) -> float | None:
    """Share of true flags, ``None`` without any."""
    return sum(flags) / len(flags) if flags else None


def high_layer(progress: Progress) -> float | None:
    """High-layer reach, SPEC 6.5: share of reached must-milestones in the deepest layer."""
    deepest = len(progress.plan.deepest)
    return progress.reached_deepest / deepest if deepest else None


def reach_at(progress: Progress, k: int) -> float:
    """Reach@K, SPEC 6.6: share of must-milestones that are reached and held within the first ``k`` actions."""
    must = progress.plan.must
    return sum(progress.reached[i] and (mark := progress.held[i]) is not None and mark.n <= k for i in must) / len(must)


def overall(
    progress: Progress, classes: dict[str, int], *, has_output: bool, trapped: bool
) -> tuple[float, float, float | None, float]:
    """Return (depth, purity, digestion, composite) of a run; a trap makes the composite 0 (SPEC 6.4)."""
    task = progress.plan.task
    reach_depth = depth(progress, has_output=has_output, trapped=trapped)
    path_purity = purity(classes)
    digestion = progress.obstacles.ratio()
    if trapped:
        return reach_depth, path_purity, digestion, 0.0
    whole = composite(reach_depth, path_purity, digestion, task.weights, no_obstacle=task.no_obstacle)
    if task.optional_bonus:
        optional = share([progress.reached[m.index] for m in task.milestones if m.type == "optional"])
        whole = min(1.0, whole + task.optional_bonus * (optional or 0.0))
    return reach_depth, path_purity, digestion, whole


def score(progress: Progress, classes: dict[str, int], *, has_output: bool, trapped: bool) -> Scores:
    """Compute all reach scores of one run."""
    milestones = progress.plan.task.milestones
    reach_depth, path_purity, digestion, whole = overall(progress, classes, has_output=has_output, trapped=trapped)
    must = len(progress.plan.must)
    return Scores(
        depth=reach_depth,
        purity=path_purity,
        digestion=digestion,
        composite=whole,
        high_layer=high_layer(progress),
        coverage=int(progress.reached_must == must if must else reach_depth == 1.0),
        reach_at_k={
            str(k): reach_at(progress, k) if must else reach_depth for k in sorted({*REACH_AT, progress.plan.k} - {0})
        },
        optional_reach=share([progress.reached[m.index] for m in milestones if m.type == "optional"]),
        fallback_reach=share([progress.reached[m.index] for m in milestones if m.type == "fallback"]),
    )

"""See whether the cost of a span grows with the length of its run or with the size of its task's graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.bench.scoring import Scorer, bench_tasks, normalised, task_of_size
from tests.bench.timing import cpu_seconds, interleave
from tests.bench.workload import GenAiRun

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reach_otel.span import Step
    from reach_otel.task import Tasks

GOAL = 1.3
BATCH_STEPS = 16
"""Steps that reach the engine at once, the same in all cases: after each batch the run's numbers are published."""


def by_length(
    *, lengths: Sequence[int] = (10, 100, 1_000), steps: int = 6_000, rounds: int = 7
) -> list[tuple[int, float, float]]:
    """Rows are (actions a run, microseconds a span, ratio to the shortest run)."""
    cases = {}
    for length in lengths:
        runs = [GenAiRun(length, history=2, seed=n) for n in range(max(1, steps // (2 * length)))]
        cases[length] = _case(runs, bench_tasks())
    return _compare(cases, rounds)


def by_milestones(
    *, sizes: Sequence[int] = (5, 50, 200), steps: int = 6_000, rounds: int = 7
) -> list[tuple[int, float, float]]:
    """Rows are (milestones of the task, microseconds a span, ratio to the smallest graph).

    The runs are the same in all cases: 100 actions, with the tools of the first 5 milestones in turn.
    """
    cases = {}
    tools = [f"tool_{n}" for n in range(min(sizes))]
    for size in sizes:
        runs = [GenAiRun(100, history=2, tools=tools, seed=n) for n in range(max(1, steps // 200))]
        cases[size] = _case(runs, task_of_size(size))
    return _compare(cases, rounds)


def _case(runs: list[GenAiRun], tasks: Tasks) -> tuple[Callable[[], float], int]:
    runs_steps: list[list[Step]] = [normalised(run.spans()) for run in runs]

    def score() -> None:
        scorer = Scorer(tasks)
        for steps in runs_steps:
            for at in range(0, len(steps), BATCH_STEPS):
                scorer.feed(steps[at : at + BATCH_STEPS])
        scorer.finish()

    return lambda: cpu_seconds(score), sum(len(steps) for steps in runs_steps)


def _compare(cases: dict[int, tuple[Callable[[], float], int]], rounds: int) -> list[tuple[int, float, float]]:
    timings = interleave({str(size): work for size, (work, _) in cases.items()}, rounds)
    smallest = next(iter(cases))
    base = timings[str(smallest)]
    rows = []
    for size, (_, spans) in cases.items():
        scale = cases[smallest][1] / spans
        timing = timings[str(size)]
        rows.append((size, timing.median / spans * 1e6, timing.ratio_to(base) * scale))
    return rows

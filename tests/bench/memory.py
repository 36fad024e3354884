"""Measure what many open runs take: resident memory of a process of its own that holds nothing else."""

from __future__ import annotations

import gc
import json
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

GOAL_MIB = 500
ACTIONS = 5
"""Actions a run; with its model calls that makes 11 spans with content, and the root is still running."""


@dataclass(frozen=True)
class Held:
    """Hold the figures of one measurement; MiB are resident memory above that of the idle process."""

    runs: int
    actions: int
    mib: float
    open_runs: int


def measure(*, runs: int = 50_000) -> Held:
    """Open ``runs`` runs in a subprocess and see how much it grows."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.memory", str(runs)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    return Held(**json.loads(done.stdout))


def resident_mib() -> float:
    """Give this process's resident memory; its peak where the system does not tell the present one."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
    return pages * resource.getpagesize() / 2**20


def main(runs: int) -> None:
    """Open the runs in this process and print the figures as JSON."""
    from tests.bench.scoring import Scorer, bench_tasks, bodies_of_open_runs

    scorer = Scorer(bench_tasks())
    scorer.take(next(bodies_of_open_runs(1, ACTIONS)))  # caches and imports are no part of what runs take
    gc.collect()
    before = resident_mib()
    for body in bodies_of_open_runs(runs, ACTIONS):
        scorer.take(body)
    gc.collect()
    held = {"runs": runs, "actions": ACTIONS, "mib": resident_mib() - before, "open_runs": scorer.open_runs - 1}
    print(json.dumps(held))


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""Replay sets of labelled runs against task files made from their graphs, and compare outcome with label.

    python -m examples.trajectories.evaluate DATA [--disagreements]

Prints one row a set and exits 1 when the accuracy of any is below 0.90. A run counts as "predicted success" when its
outcome is ``success``; AUC is the chance that a successful run scores higher than a failed one, ties counting half.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from examples.trajectories.make_tasks import make, read_lines, sets, write
from reach_otel.offline.replay import replay
from reach_otel.task import load

if TYPE_CHECKING:
    from reach_otel.engine import Record

ACCURACY_MIN = 0.90


@dataclass(frozen=True)
class Judged:
    """Hold one run's record beside its label."""

    record: Record
    task: str
    success: bool

    @property
    def predicted(self) -> bool:
        return self.record.outcome == "success"


def judge(folder: Path) -> list[Judged]:
    """Replay the runs of one set; raises ``ValueError`` for a run without a record or scored against another task."""
    with tempfile.TemporaryDirectory() as tasks:
        write(make(folder), Path(tasks))
        records = {record.trace_id: record for record in replay([folder / "runs"], load([tasks]))}
    judged = []
    for label in read_lines(folder / "labels.jsonl"):
        record = records.get(label["trace_id"])
        if record is None or record.task != label["dag_id"]:
            raise ValueError(f"{label['trace_id']} should be scored as {label['dag_id']}: {record and record.task}")
        judged.append(Judged(record, label["dag_id"], label["success"]))
    return judged


def accuracy(runs: list[Judged]) -> float:
    """Give the share of runs whose outcome agrees with the label."""
    return sum(run.predicted == run.success for run in runs) / len(runs)


def auc(good: list[float], bad: list[float]) -> float:
    """Give the chance that a value of ``good`` is above one of ``bad``, ties counting half; 0.5 if either is empty."""
    if not good or not bad:
        return 0.5
    bad = sorted(bad)
    return sum(bisect_left(bad, x) + bisect_right(bad, x) for x in good) / (2 * len(good) * len(bad))


def row(name: str, runs: list[Judged]) -> str:
    """Make one row of the table."""
    counts = [
        sum(run.predicted is predicted and run.success is success for run in runs)
        for predicted, success in ((True, True), (False, False), (True, False), (False, True))
    ]
    areas = [
        auc(
            [getattr(run.record.scores, score) for run in runs if run.success],
            [getattr(run.record.scores, score) for run in runs if not run.success],
        )
        for score in ("depth", "composite")
    ]
    cells = [name, str(len(runs)), f"{accuracy(runs):.3f}", *map(str, counts), *(f"{area:.3f}" for area in areas)]
    return "| " + " | ".join(cells) + " |"


HEAD = """\
| set | runs | accuracy | true success | true failure | false success | false failure | AUC depth | AUC composite |
|---|---|---|---|---|---|---|---|---|"""


def explain(run: Judged) -> str:
    """Tell why a run was judged against its label."""
    record = run.record
    parts = [f"outcome {record.outcome}, label {'success' if run.success else 'failure'}"]
    parts += [f"{m.id} {m.state} ({m.reason})" for m in record.milestones if m.type == "must" and m.state != "reached"]
    parts += [f"trap {trap.id} at action {trap.action}" for trap in record.traps]
    parts += [f"{level}: {verdict.reason}" for level, verdict in record.levels.items() if not verdict.passed]
    return f"{run.task}: {'; '.join(parts)}"


def main() -> int:
    """Evaluate all sets of a folder; the exit code is 1 when one is not told well enough."""
    parser = argparse.ArgumentParser(description="Compare the outcome of replayed runs with their labels.")
    parser.add_argument("data", type=Path, help="folder with one folder a set")
    parser.add_argument("--disagreements", action="store_true", help="list the runs judged against their label")
    options = parser.parse_args()
    folders = sets(options.data)
    if not folders:
        print(f"{options.data}: no folder in it holds a dags.jsonl", file=sys.stderr)
        return 2
    print(HEAD)
    judged = {folder.name: judge(folder) for folder in folders}
    for name, runs in judged.items():
        print(row(name, runs))
    if options.disagreements:
        print()
        print(*(explain(run) for runs in judged.values() for run in runs if run.predicted != run.success), sep="\n")
    return int(any(accuracy(runs) < ACCURACY_MIN for runs in judged.values()))


if __name__ == "__main__":
    sys.exit(main())

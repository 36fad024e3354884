"""Send all recordings of this repository to a Collector or a scorer, and compare what is made of them with a replay."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from reach_otel.engine.record import Record
from reach_otel.offline.replay import replay
from reach_otel.task import load
from tests.support.compare import differences
from tests.support.service import Served

ROOT: Final = Path(__file__).parents[2]
GOLDEN: Final = ROOT / "tests" / "golden"
TASKS: Final = (GOLDEN / "ticket.task.yaml", ROOT / "examples" / "ticket.task.yaml")
FILES: Final = (*sorted((GOLDEN / "spans").glob("*.jsonl.gz")), ROOT / "examples" / "ticket-runs.jsonl.gz")
TIMES: Final = ("--set", "grace=2", "--set", "parent_wait=4", "--set", "idle=8")
FLAGS: Final = (
    *(flag for task in TASKS for flag in ("--task", str(task))),
    "--set",
    "show_content=on",
    *TIMES,
)
"""Of a scorer of them: whatever has no end closes soon after the last span."""

Signal = Literal["traces", "logs"]
Send = Callable[[Signal, bytes], None]


def send_all(send: Send) -> None:
    """Send every recording: spans and log records of one together."""
    for file in FILES:
        is_logs = ".logs." in file.name
        kind = "resourceLogs" if is_logs else "resourceSpans"
        found = [json.loads(line)[kind] for line in gzip.decompress(file.read_bytes()).splitlines()]
        body = json.dumps({kind: [item for group in found for item in group]})
        send("logs" if is_logs else "traces", body.encode())


@cache
def expected() -> dict[str, dict[str, Any]]:
    """Give the record of each run as a replay of the same files has it."""
    return {record.run: built(record) for record in replay(FILES, load(list(TASKS)), steps=True)}


def built(record: Record) -> dict[str, Any]:
    """Give a record in the form in which the service shows it."""
    fields: dict[str, Any] = msgspec.to_builtins(record)
    return fields


def wait_for_all(scorers: Sequence[Served], runs: int) -> None:
    """Wait until each run has its verdict."""
    scorers[0].until(lambda: sum(len(verdicts(scorer)) for scorer in scorers) >= runs, f"{runs} verdicts")


def verdicts(served: Served) -> list[str]:
    """Give the runs that have their verdict."""
    connection = sqlite3.connect(f"file:{served.database}?mode=ro", uri=True, timeout=10)
    try:
        return [str(run) for (run,) in connection.execute("SELECT run FROM runs ORDER BY run")]
    finally:
        connection.close()


def record_of(served: Served, run: str) -> dict[str, Any]:
    """Give the record of a run."""
    found: dict[str, Any] = served.get(f"/api/runs/{run}")
    return found


def wrong(served: Served, runs: Iterable[str], wanted: dict[str, dict[str, Any]]) -> list[str]:
    """Say what is not as it should be in the records of some runs."""
    found = []
    for run in runs:
        record = record_of(served, run)
        fields = {name: record.get(name, "(absent)") for name in wanted[run]}
        found += [f"{run} {line}" for line in differences(fields, wanted[run])]
    return found

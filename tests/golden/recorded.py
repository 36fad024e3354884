"""Read the recorded spans beside this file, and what they are expected to say."""

from __future__ import annotations

import gzip
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from reach_otel.engine.events import RunClosed
from reach_otel.engine.record import Record
from reach_otel.engine.store import Engine
from reach_otel.span import Step, normalise, normalise_log, read_logs_json, read_spans_json
from reach_otel.task import load

HERE = Path(__file__).parent
ANY = "ANY"


def recordings() -> list[tuple[str, str]]:
    """List all recordings as (framework__instrumentation, run)."""
    names = sorted(file.name.removesuffix(".jsonl.gz") for file in (HERE / "spans").glob("*.jsonl.gz"))
    return [tuple(name.rsplit("__", 1)) for name in names if not name.endswith(".logs")]  # type: ignore[misc]


def read(combo: str, run: str) -> tuple[list[Step], Counter[str]]:
    """Normalise one recording, in the order in which its spans ended; also count what was wrong with them."""
    steps: list[Step] = []
    faults: Counter[str] = Counter()
    for line in _lines(f"{combo}__{run}.jsonl.gz"):
        spans, found = read_spans_json(line)
        steps.extend(step for span in spans for step in normalise(span))
        faults.update(found)
    for line in _lines(f"{combo}__{run}.logs.jsonl.gz"):
        records, found = read_logs_json(line)
        steps.extend(step for record in records for step in normalise_log(record))
        faults.update(found)
    return steps, faults


def _lines(name: str) -> list[bytes]:
    file = HERE / "spans" / name
    return gzip.decompress(file.read_bytes()).splitlines() if file.exists() else []


def score(steps: list[Step]) -> list[Record]:
    """Score steps against the ticket task; one record a run in which something was done, by start."""
    engine = Engine(load([HERE / "ticket.task.yaml"]), keep_steps=True)
    events = [event for step in steps for event in engine.feed([step], 0)]
    closed = [event.record for event in (*events, *engine.close(0)) if isinstance(event, RunClosed)]
    return sorted((record for record in closed if record.steps), key=lambda record: record.start)


@cache
def script() -> dict[str, Any]:
    """Give what every framework was driven with."""
    return _yaml(HERE / "script.yaml")


@cache
def expectations(combo: str) -> dict[str, Any]:
    """Give what is special about one framework with one instrumentation."""
    return _yaml(HERE / "expected" / f"{combo}.yaml")


def _yaml(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return found


def expectation(combo: str, run: str) -> dict[str, Any]:
    """Put together what one recording is expected to say: the script, changed by what its files say."""
    own = expectations(combo)
    base = run.partition("-")[0]
    special = (own["runs"].get(base) or {}) | (own["runs"].get(run) or {})
    found: dict[str, Any] = {"reached": "read customer stock decide update", "digestion": None, "findings": []}
    found |= script()["runs"].get(base, {})
    found |= {key: value for key, value in own.items() if key != "runs"}
    found |= {key: special[key] for key in ("hidden", "calls") if key in special}
    if "content" in found.get("hidden", ()):
        found |= _without_content(found)
    return found | special


def _without_content(found: dict[str, Any]) -> dict[str, Any]:
    """Say what is left of a script when neither arguments nor results nor texts are told: names, order, failures."""
    return {
        "reached": "|".join("" for _ in found["calls"].split("|")),
        "digestion": None if found["digestion"] is None else 0,
        "findings": [finding for finding in found["findings"] if finding == "stuck"],
        "output": None,
    }

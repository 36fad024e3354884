"""Make run records by hand, for what comes after the engine."""

from __future__ import annotations

from typing import Any

from reach_otel.engine.events import RunSummary
from reach_otel.engine.record import (
    BreakPoint,
    FindingRecord,
    LevelRecord,
    MilestoneRecord,
    ObstacleRecord,
    Record,
    Scores,
    StepRecord,
    TokenRecord,
)
from reach_otel.service.entries import rfc3339

START_US = 1_796_025_600_000_000
LEVELS = ("L0", "L1", "L2", "L3", "L4")


def milestone(
    name: str, state: str = "reached", *, kind: str = "must", layer: int = 1, **fields: Any
) -> MilestoneRecord:
    there = state != "missed"
    values: dict[str, Any] = {
        "reason": "unused" if state == "passed" else None,
        "action": 1 if there else None,
        "seconds": 0.5 if there else None,
        "span_id": "a" * 16 if there else None,
        **fields,
    }
    return MilestoneRecord(id=name, type=kind, layer=layer, state=state, **values)  # type: ignore[arg-type]


def step(n: int = 1, **fields: Any) -> StepRecord:
    values: dict[str, Any] = {
        "kind": "tool",
        "agent": "a",
        "tool": "t",
        "call_id": None,
        "args": {"secret": "s3cr3t-in"},
        "result": {"secret": "s3cr3t-out"},
        "ok": True,
        "error": "s3cr3t-error",
        "start": rfc3339(START_US),
        "seconds": 0.1,
        "span_id": f"{n:016x}",
        "derived": False,
        "klass": "effective",
        **fields,
    }
    return StepRecord(n=n, **values)


def record(run: str = "r1", **fields: Any) -> Record:
    """Make the record of a finished run; ``start_us``, ``scores``, ``failed`` (levels) and others as they are given."""
    start_us = fields.pop("start_us", START_US)
    scores = {"depth": 0.5, "purity": 0.75, "digestion": None, "composite": 0.6, "high_layer": 1.0} | fields.pop(
        "scores", {}
    )
    failed = fields.pop("failed", ())
    found = fields.pop("findings", ())
    values: dict[str, Any] = {
        "trace_id": run,
        "conversation_id": None,
        "task": "task",
        "agent": "agent",
        "variant": "v1",
        "final": True,
        "start": rfc3339(start_us),
        "duration_seconds": 1.5,
        "content": "full",
        "outcome": "partial",
        "scores": Scores(**scores, coverage=0, reach_at_k={"5": 0.5}, optional_reach=None, fallback_reach=None),
        "high_risk": False,
        "milestones": (milestone("one"), milestone("two", "passed", layer=2)),
        "traps": (),
        "obstacles": (ObstacleRecord("error", "t", "two", 1, 0, False),),
        "findings": tuple(FindingRecord(name, 1, "told", "a" * 16) for name in found),
        "levels": {
            level: LevelRecord(level not in failed, "no_output" if level in failed else None) for level in LEVELS
        },
        "break_point": BreakPoint(failed[0], "no_output") if failed else None,
        "actions": {"effective": 3, "off_task": 1, "repeat": 0, "stuck": 0, "cut_off": 0},
        "tokens": TokenRecord(),
        "utilisation": None,
        "cost_dollars": None,
        "steps": (step(1), step(2, kind="model", tool=None, klass=None)),
        **fields,
    }
    return Record(run=run, **values)


def summary(run: str, start_us: int = START_US, **fields: Any) -> RunSummary:
    """Show an open run in small."""
    values: dict[str, Any] = {
        "trace_id": run,
        "task": "one",
        "agent": "agent",
        "variant": "v1",
        "started_ns": start_us * 1_000,
        "latest_ns": start_us * 1_000 + 1_500_000_000,
        "actions": 4,
        "last_tool": "t",
        "depth": 0.5,
        "purity": 0.75,
        "digestion": None,
        "composite": 0.6,
        "high_layer": 1.0,
        "milestones": (),
        "findings": (),
        **fields,
    }
    return RunSummary(run_id=run, **values)

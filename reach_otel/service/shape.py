"""Shape what the API shows of a run: in small for lists and events, or the whole record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from reach_otel.engine.scores import HIGH_RISK_BELOW
from reach_otel.service.entries import last_tool, micros, plain, rfc3339
from reach_otel.service.listing import RUNNING, SCORES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reach_otel.engine.events import RunSummary
    from reach_otel.engine.record import Record

_MILESTONE = ("id", "type", "layer", "state", "reason", "action")


def of_open(run: RunSummary) -> dict[str, Any]:
    """Show an open run in small."""
    return {
        "run": run.run_id,
        "trace_id": run.trace_id,
        "task": run.task,
        "agent": run.agent,
        "variant": run.variant,
        "final": False,
        "outcome": RUNNING,
        "start": rfc3339(micros(run.started_ns)),
        "duration_seconds": max(0, run.latest_ns - run.started_ns) / 1e9,
        "actions": run.actions,
        "scores": {key: getattr(run, key) for key in SCORES},
        "high_risk": run.high_layer is not None and run.high_layer < HIGH_RISK_BELOW,
        "milestones": [{key: getattr(milestone, key) for key in _MILESTONE} for milestone in run.milestones],
        "findings": list(run.findings),
        "last_tool": run.last_tool,
    }


def of_record(record: Record) -> dict[str, Any]:
    """Show a run in small, by its record."""
    return of_plain(plain(replace(record, steps=None)), last_tool(record.steps))


def of_plain(record: Mapping[str, Any], tool: str | None) -> dict[str, Any]:
    """Show a run in small, by its record in plain form and the tool that it used last."""
    return {
        "run": record["run"],
        "trace_id": record["trace_id"],
        "task": record["task"],
        "agent": record["agent"],
        "variant": record["variant"],
        "final": record["final"],
        "outcome": record["outcome"],
        "start": record["start"],
        "duration_seconds": record["duration_seconds"],
        "actions": sum(record["actions"].values()),
        "scores": {key: record["scores"][key] for key in SCORES},
        "high_risk": record["high_risk"],
        "milestones": [{key: milestone[key] for key in _MILESTONE} for milestone in record["milestones"]],
        "findings": list(dict.fromkeys(finding["finding"] for finding in record["findings"])),
        "last_tool": tool,
    }

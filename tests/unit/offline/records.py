"""Make records by hand."""

from __future__ import annotations

from typing import Any

from reach_otel.engine.record import MilestoneRecord, Record, Scores, TokenRecord


def milestone(
    name: str, state: Any = "reached", *, layer: int = 1, kind: str = "must", reason: str | None = None, action: int = 1
) -> MilestoneRecord:
    """Make the record of one milestone; one that was missed has neither action nor time."""
    went_by = state != "missed"
    return MilestoneRecord(
        id=name,
        type=kind,
        layer=layer,
        state=state,
        reason=reason,
        action=action if went_by else None,
        seconds=action / 2 if went_by else None,
        span_id=None,
    )


def record(
    run: str = "r1",
    *milestones: MilestoneRecord,
    start: str = "2026-11-30T08:00:00Z",
    task: str = "shop",
    **scores: Any,
) -> Record:
    """Make the record of one run."""
    numbers: dict[str, Any] = {
        "depth": 1.0,
        "purity": 1.0,
        "digestion": None,
        "composite": 1.0,
        "high_layer": 1.0,
        "coverage": 1,
        "reach_at_k": {"15": 1.0},
        "optional_reach": None,
        "fallback_reach": None,
    }
    return Record(
        run=run,
        trace_id=run,
        conversation_id=None,
        task=task,
        agent="bot",
        variant=None,
        final=True,
        start=start,
        duration_seconds=1.0,
        content="full",
        outcome="success",
        scores=Scores(**(numbers | scores)),
        high_risk=False,
        milestones=milestones,
        traps=(),
        obstacles=(),
        findings=(),
        levels={},
        break_point=None,
        actions={"effective": 1},
        tokens=TokenRecord(),
        utilisation=None,
        cost_dollars=None,
    )

"""Make run summaries and records as the engine gives them, with the few fields that the demo's tests are about."""

from __future__ import annotations

from reach_otel.engine.events import MilestoneView, RunSummary
from reach_otel.engine.record import (
    BreakPoint,
    LevelRecord,
    MilestoneRecord,
    Outcome,
    Record,
    Scores,
    State,
    TokenRecord,
    TrapRecord,
)

GRAPH = (
    ("read", "must", 1),
    ("customer", "must", 2),
    ("stock", "must", 2),
    ("escalate", "fallback", 2),
    ("update", "must", 3),
)


def summary(trace_id: str, reached: int = 0, *, started_ns: int = 0, findings: tuple[str, ...] = ()) -> RunSummary:
    """Return an open run which has reached the first milestones."""
    milestones = tuple(
        MilestoneView(
            id=id_, type=type_, layer=layer, state="reached" if n < reached else "missed", reason=None, action=n + 1
        )
        for n, (id_, type_, layer) in enumerate(GRAPH)
    )
    return RunSummary(
        run_id=trace_id,
        trace_id=trace_id,
        task="ticket-handling",
        agent="ticket-agent",
        variant=None,
        started_ns=started_ns,
        latest_ns=started_ns,
        actions=reached,
        last_tool="read_ticket" if reached else None,
        depth=reached / len(GRAPH),
        purity=1.0,
        digestion=None,
        composite=0.5,
        high_layer=float(reached == len(GRAPH)),
        milestones=milestones,
        findings=findings,
    )


def record(
    trace_id: str,
    *,
    outcome: Outcome = "success",
    missed: str | None = None,
    reason: str | None = None,
    trap: str | None = None,
    final: bool = True,
    start: str = "2026-01-01T00:00:00Z",
) -> Record:
    """Return a run which has reached all must-milestones but ``missed`` and what lies deeper."""
    layers = {id_: layer for id_, _, layer in GRAPH}

    def state(id_: str, type_: str) -> State:
        if type_ != "must" or (missed and layers[id_] > layers[missed]):
            return "missed"
        if id_ == missed:
            return "passed" if reason else "missed"
        return "reached"

    milestones = tuple(
        MilestoneRecord(
            id=id_,
            type=type_,
            layer=layer,
            state=state(id_, type_),
            reason=reason if id_ == missed else None,
            action=n + 1 if state(id_, type_) != "missed" else None,
            seconds=None,
            span_id=None,
        )
        for n, (id_, type_, layer) in enumerate(GRAPH)
    )
    high_layer = float(milestones[-1].state == "reached")
    return Record(
        run=trace_id,
        trace_id=trace_id,
        conversation_id=None,
        task="ticket-handling",
        agent="ticket-agent",
        variant=None,
        final=final,
        start=start,
        duration_seconds=3.0,
        content="full",
        outcome=outcome,
        scores=Scores(
            depth=0.25 if missed else 1.0,
            purity=1.0,
            digestion=None,
            composite=0.0 if trap else 0.9,
            high_layer=high_layer,
            coverage=int(high_layer),
            reach_at_k={"15": 1.0},
            optional_reach=None,
            fallback_reach=0.0,
        ),
        high_risk=high_layer < 0.5,
        milestones=milestones,
        traps=(TrapRecord(id=trap, action=1, span_id=None),) if trap else (),
        obstacles=(),
        findings=(),
        levels={"L2": LevelRecord(passed=reason is None, reason=reason)},
        break_point=BreakPoint(level="L2", reason=reason) if reason else None,
        actions={"effective": 5, "off_task": 0, "repeat": 0, "stuck": 0, "cut_off": 0},
        tokens=TokenRecord(),
        utilisation=None,
        cost_dollars=None,
    )

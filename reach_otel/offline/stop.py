"""Say in a few words where a run stopped, and why."""

from __future__ import annotations

from reach_otel.engine.record import MilestoneRecord, Record


def stopped_at(record: Record) -> str | None:
    """Return the trap that was hit, else the milestone at which the first failed level broke; ``None`` for neither.

    The milestone is the first, by layer, that was missed for the reason of the break point; else the first that nobody
    went near; else the first not reached.
    """
    if record.traps:
        return f"trap {record.traps[0].id} at action {record.traps[0].action}"
    stop, milestone = record.break_point, _culprit(record)
    if stop is not None:
        return f"{milestone.id} {stop.reason} ({stop.level})" if milestone else f"{stop.reason} ({stop.level})"
    return f"{milestone.id} {milestone.reason or milestone.state}" if milestone else None


def _culprit(record: Record) -> MilestoneRecord | None:
    missing = sorted((m for m in record.milestones if m.type == "must" and m.state != "reached"), key=lambda m: m.layer)
    reason = record.break_point.reason if record.break_point else None
    told = (
        [m for m in missing if reason and m.reason == reason] or [m for m in missing if m.state == "missed"] or missing
    )
    return told[0] if told else None

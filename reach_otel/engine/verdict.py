"""Give the verdict on a run: its record, and what publishers need beside it; or find that a part of it is missing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from reach_otel.engine.events import ModelCall, Root, RunClosed
from reach_otel.engine.scope import plain_id

if TYPE_CHECKING:
    from reach_otel.engine.record import Record
    from reach_otel.engine.run import Run


def verdict(run: Run, record: Record) -> RunClosed:
    """Say that a run is over, with all that is counted about it."""
    return RunClosed(
        record,
        tuple(run.assembly.actions),
        tuple(
            ModelCall(step.agent, max(0, step.end_ns - step.start_ns) / 1e9, step.ok, step.error)
            for step in run.steps.values()
            if step.kind == "model"
        ),
        root_of(run),
        masked_of(run),
        variant_by=run.variant_by,
    )


def root_of(run: Run) -> Root | None:
    """Name the span that stands for the run: the outermost agent that ended last, else the earliest top span."""
    agents = run.tree.outer_by_end()
    if agents:
        step = agents[-1]
    else:
        tops = [step for span_id, step in run.steps.items() if span_id in run.tree.tops]
        if run.beside.top is not None:
            tops.append(run.beside.top)
        if not tops:
            return None
        step = min(tops, key=lambda s: (s.start_ns, s.span_id))
    return Root(step.trace_id, plain_id(step.span_id), step.start_ns, step.end_ns, step.ok, step.error, step.sampled)


def masked_of(run: Run) -> tuple[tuple[str, int], ...]:
    """Add up by kind of step the values that a Collector masked. Text of a model step that came apart counts with it.

    Counted are the steps that the run keeps and all its other spans; not those beyond the limits of a run.
    """
    masked: Counter[str] = Counter()
    for step in run.steps.values():
        if step.masked:
            masked["model" if step.kind == "content" else step.kind] += step.masked
    if run.beside.masked:
        masked["other"] += run.beside.masked
    return tuple(sorted(masked.items()))


def was_under_way(run: Run, at_ns: int) -> bool:
    """Say whether the run had begun before a time and went on at it or later, by what has been seen of the run."""
    beside = run.beside
    began_ns = run.started_ns if beside.top is None else min(run.started_ns, beside.top.start_ns)
    if began_ns >= at_ns or max(run.latest_ns, beside.ended_ns) < at_ns:
        return False
    if beside.top is not None and beside.top.start_ns < at_ns:
        return True
    # A log record may come without a time, so the texts of model steps prove nothing.
    return any(step.start_ns < at_ns for step in run.steps.values() if step.kind != "content")

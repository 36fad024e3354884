"""Give the verdict on a run: its record, and what publishers need beside it; or find that a part of it is missing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

from reach_otel.engine.events import ModelCall, Root, RunClosed
from reach_otel.engine.scope import plain_id
from reach_otel.engine.tokens import inner_models

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
            for step in inner_models(run.steps.values(), run.tree)
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


def missing_part(
    run: Run, since_ns: int, wait_ns: int, *, in_process: bool
) -> Literal["began_before", "no_root"] | None:
    """Say why a part of a run may be elsewhere, by what has been seen of it; ``None`` where nothing tells so.

    ``since_ns`` is the time since when all spans come here. A run that went on then is not whole if anything of it
    began before. A root that is never seen may have begun before, too, with other parts of the run beneath it: for as
    long as a run waits for one, what began after ``since_ns`` is not known to be whole without.

    ``in_process``: whatever this process does comes here. What began before is often a span around the whole program,
    a notebook or a request, in which nothing had been done yet: so only steps prove anything.
    """
    top = None if in_process else run.beside.top
    ended_ns = run.latest_ns if in_process else max(run.latest_ns, run.beside.ended_ns)
    if ended_ns < since_ns:
        return None  # a record of the past
    # A log record may come without a time, so the texts of model steps prove nothing.
    starts = [step.start_ns for step in run.steps.values() if step.kind != "content"]
    if top is not None:
        starts.append(top.start_ns)
    began_ns = min(starts, default=run.latest_ns)
    if began_ns < since_ns:
        return "began_before"
    if not in_process and began_ns < since_ns + wait_ns and not run.is_over:
        return "no_root"
    return None

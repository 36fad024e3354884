"""Score recorded runs with the live engine and a clock moved by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from reach_otel.clock import ManualClock
from reach_otel.engine import Counted, Engine, Limits, RunClosed
from reach_otel.errors import InputError
from reach_otel.offline.message import Problem
from reach_otel.offline.messages import messages
from reach_otel.offline.order import ByStart
from reach_otel.offline.sources import Source, sources
from reach_otel.span import (
    normalise,
    normalise_log,
    read_logs_json,
    read_logs_protobuf,
    read_spans_json,
    read_spans_protobuf,
    redact,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator

    from reach_otel.engine import Event, Record
    from reach_otel.offline.message import Message
    from reach_otel.span import Step
    from reach_otel.task import Tasks

PROBLEMS_KEPT_MAX: Final = 1_000

_SPANS = {"json": read_spans_json, "protobuf": read_spans_protobuf}
_LOGS = {"json": read_logs_json, "protobuf": read_logs_protobuf}


@dataclass(slots=True)
class Notes:
    """Collect what a replay met beside the records.

    ``problems`` are the first 1,000 pieces of input that could not be used, ``problems_total`` counts all of them;
    ``counts`` counts the engine's events that are no run event, by (what, reason).
    """

    problems: list[Problem] = field(default_factory=list)
    problems_total: int = 0
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    spans: int = 0

    def report(self, problem: Problem) -> None:
        """Note a piece of input that could not be used."""
        self.problems_total += 1
        if len(self.problems) < PROBLEMS_KEPT_MAX:
            self.problems.append(problem)


def replay(
    paths: Iterable[str | os.PathLike[str]],
    tasks: Tasks,
    *,
    limits: Limits | None = None,
    steps: bool = False,
    progress: Callable[[int, int | None], None] | None = None,
    notes: Notes | None = None,
) -> Iterator[Record]:
    """Yield the record of every run in recorded spans and log records, in order of the runs' start.

    ``paths`` are files, folders and ``-`` for standard input, read once and in any order; see
    :mod:`reach_otel.offline.messages` for the forms. Each run gets its verdict at the end of the input, or earlier when
    ``limits.runs_max`` runs are open and room is needed: then one whose root has ended, else it counts as evicted. So
    memory is bounded by that limit; records wait for their turn outside of memory. ``steps`` fills ``record.steps``.
    ``progress`` is told the bytes read since it was last called and the bytes there are in all (``None``: unknown).
    What cannot be read is left out and told to ``notes``.

    Raises :class:`InputError`: at the call for a path that is not there, while iterating for a file with no OTLP in it.
    """
    return _replay(sources(paths), tasks, limits or Limits(), steps, progress, notes or Notes())


def _replay(
    inputs: list[Source],
    tasks: Tasks,
    limits: Limits,
    steps: bool,
    progress: Callable[[int, int | None], None] | None,
    notes: Notes,
) -> Iterator[Record]:
    sizes = [source.size for source in inputs]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    advance = None if progress is None else lambda read: progress(read, total)
    engine = Engine(tasks, limits, keep_steps=steps)
    clock = ManualClock()  # stands still: nothing falls due before the end of the input
    with ByStart() as records:

        def take(events: list[Event]) -> None:
            for event in events:
                if isinstance(event, RunClosed):
                    records.add(event.record)
                elif isinstance(event, Counted):
                    notes.counts[event.what, event.reason] += event.n

        for source in inputs:
            for message in messages(source, notes.report, advance):
                found = read_steps(message, notes, keep_attributes=engine.needs_attributes)
                take(engine.feed(found, clock.now_ns()))
        take(engine.close(clock.now_ns()))
        yield from records


def read_steps(message: Message, notes: Notes, *, keep_attributes: bool = False) -> list[Step]:
    """Read and normalise one request; what is wrong with it, or with single spans of it, is told to ``notes``."""
    steps: list[Step] = []
    try:
        if message.signal == "traces":
            spans, faults = _SPANS[message.form](message.body)
            notes.spans += len(spans)
            for span in spans:
                steps.extend(map(redact, normalise(span, keep_attributes=keep_attributes)))
        else:
            logs, faults = _LOGS[message.form](message.body)
            for record in logs:
                steps.extend(map(redact, normalise_log(record)))
    except InputError as error:
        notes.report(Problem(message.where, str(error)))
        return []
    if faults:
        notes.report(Problem(message.where, _tell(faults)))
    return steps


def _tell(faults: Counter[str]) -> str:
    return "bad spans or records: " + ", ".join(f"{count} {reason}" for reason, count in sorted(faults.items()))

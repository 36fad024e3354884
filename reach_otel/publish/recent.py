"""Remember the records of runs that ended lately, and which runs belong to which trace."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from reach_otel.engine.events import Event, RunChanged, RunClosed, RunDropped, RunMerged

if TYPE_CHECKING:
    from reach_otel.engine.record import Record


class Recent:
    """Keep up to ``finished_max`` finished records, oldest out first; for the owner thread only."""

    __slots__ = ("_by_trace", "_finished", "_finished_max", "_open")

    def __init__(self, finished_max: int) -> None:
        self._finished_max = finished_max
        self._finished: OrderedDict[str, Record] = OrderedDict()
        self._open: dict[str, str] = {}  # run -> trace
        self._by_trace: dict[str, dict[str, None]] = {}  # trace -> runs, in order of first sight

    def publish(self, events: Sequence[Event]) -> None:
        """Take note of what happened."""
        for event in events:
            if isinstance(event, RunChanged):
                self._seen(event.summary.run_id, event.summary.trace_id)
            elif isinstance(event, RunClosed):
                self._ended(event.record)
            elif isinstance(event, RunMerged | RunDropped):
                self._forget(event.run_id, self._open.pop(event.run_id, None))

    def record(self, run_id: str) -> Record | None:
        """Return the record of a finished run."""
        return self._finished.get(run_id)

    def runs_of(self, trace_id: str) -> tuple[str, ...]:
        """Return the ids of the runs, open or finished, that were seen in a trace, earliest first."""
        return tuple(self._by_trace.get(trace_id, ()))

    def _seen(self, run_id: str, trace_id: str) -> None:
        if self._open.get(run_id) != trace_id:
            self._open[run_id] = trace_id
            self._by_trace.setdefault(trace_id, {})[run_id] = None

    def _ended(self, record: Record) -> None:
        self._seen(record.run, record.trace_id)
        self._open.pop(record.run, None)
        self._finished[record.run] = record
        while len(self._finished) > self._finished_max:
            run_id, oldest = self._finished.popitem(last=False)
            self._forget(run_id, oldest.trace_id)

    def _forget(self, run_id: str, trace_id: str | None) -> None:
        runs = self._by_trace.get(trace_id or "")
        if runs is not None and trace_id is not None:
            runs.pop(run_id, None)
            if not runs:
                del self._by_trace[trace_id]

"""Know which open runs hold steps of which trace, so that the journal forgets a trace once nobody needs it.

The journal keeps spans by trace. A run may hold several traces, and a trace several runs (SPEC 5.1); usually it is one
of one, and then nothing has to be noted. The same scope that places steps in the engine is asked again here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from reach_otel.engine.events import Event, RunClosed, RunDropped, RunMerged, RunOpened
from reach_otel.engine.scope import TraceScope, scope_of

if TYPE_CHECKING:
    from reach_otel.span import Step


class Ledger:
    """Follow steps and events, and say which traces are free. For the owner thread only.

    Traces in which no run was opened (spans of ordinary services, or steps that came after the verdict) are free after
    ``idle_seconds`` of silence, or earlier when more than ``traces_max`` of them wait.
    """

    __slots__ = ("_holders", "_idle_ns", "_open", "_scope", "_spread", "_traces_max", "_unheld")

    def __init__(self, run_scope: str, *, verdicts_max: int, traces_max: int, idle_seconds: float) -> None:
        scope = scope_of(run_scope, verdicts_max)
        self._scope = None if isinstance(scope, TraceScope) else scope
        self._idle_ns = int(idle_seconds * 1e9)
        self._traces_max = traces_max
        self._open: set[str] = set()
        self._spread: dict[str, set[str]] = {}  # run -> its traces, where they are not just the one of the same name
        self._holders: dict[str, set[str]] = {}  # trace -> such runs
        self._unheld: OrderedDict[str, int] = OrderedDict()  # trace -> when it was last seen

    def note(self, steps: Iterable[Step]) -> None:
        """Take note of where steps belong; before the engine's events about them."""
        for step in steps:
            if self._scope is None:
                if step.run_id is not None:
                    self._link(step.run_id, step.trace_id)
                continue
            placement = self._scope.place(step)
            for old, new in placement.moves:
                self._merge(old, new)
            if placement.run_id != step.trace_id:
                self._link(placement.run_id, step.trace_id)

    def follow(self, events: Sequence[Event]) -> list[str]:
        """Take note of what happened to runs; returns the traces that are free now."""
        free: list[str] = []
        for event in events:
            if isinstance(event, RunOpened):
                self._open.add(event.run_id)
            elif isinstance(event, RunMerged):
                self._merge(event.run_id, event.into)
            elif isinstance(event, RunClosed):
                free += self._release(event.record.run, event.record.trace_id)
            elif isinstance(event, RunDropped):
                free += self._release(event.run_id, event.run_id)
        return free

    def settle(self, traces: Iterable[str], now_ns: int) -> list[str]:
        """Take note of the traces of a batch once it is scored; returns those nobody has claimed for long."""
        for trace in traces:
            if not self._is_held(trace):
                self._unheld[trace] = now_ns
                self._unheld.move_to_end(trace)
        free: list[str] = []
        while self._unheld:
            trace, seen_ns = next(iter(self._unheld.items()))
            if len(self._unheld) <= self._traces_max and now_ns - seen_ns < self._idle_ns:
                break
            if self._is_held(trace):
                del self._unheld[trace]
            else:
                self._forget(trace)
                free.append(trace)
        return free

    def _is_held(self, trace: str) -> bool:
        return trace in self._open or any(run in self._open for run in self._holders.get(trace, ()))

    def _link(self, run: str, trace: str) -> None:
        self._spread.setdefault(run, set()).add(trace)
        self._holders.setdefault(trace, set()).add(run)

    def _merge(self, old: str, new: str) -> None:
        was_open = old in self._open
        self._open.discard(old)
        for trace in self._unlink(old) | ({old} if was_open else set()):
            self._link(new, trace)
        if was_open:
            self._open.add(new)

    def _unlink(self, run: str) -> set[str]:
        traces = self._spread.pop(run, set())
        for trace in traces:
            holders = self._holders.get(trace)
            if holders is not None:
                holders.discard(run)
                if not holders:
                    del self._holders[trace]
        return traces

    def _release(self, run: str, trace: str) -> list[str]:
        self._open.discard(run)
        free = [one for one in sorted(self._unlink(run) | {trace}) if not self._is_held(one)]
        for one in free:
            self._forget(one)
        return free

    def _forget(self, trace: str) -> None:
        """Drop what is noted of a trace, and its links to runs that were never opened."""
        self._unheld.pop(trace, None)
        for run in self._holders.pop(trace, ()):
            traces = self._spread.get(run)
            if traces is not None:
                traces.discard(trace)
                if not traces:
                    del self._spread[run]

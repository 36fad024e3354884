"""Tell verdicts from a bounded queue on a thread of its own, as the providers of an application may keep it waiting."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from reach_otel.engine.events import Event, RunClosed
from reach_otel.publish.emit import is_told

if TYPE_CHECKING:
    from reach_otel.publish.emit import Evaluations
    from reach_otel.publish.failures import Failures
    from reach_otel.publish.outlet import LogOutlet

QUEUE_VERDICTS: Final = 8_192  # some 3 kB each
# An agent that wakes up waits up to 5 ms for a busy thread to yield, so this one yields by itself, like the scorer's:
# no more often, as each time it may have to wait for its own turn, while verdicts come.
WORK_NS: Final = 300_000
YIELD_SECONDS: Final = 0.000_05


class Teller:
    """Take verdicts on the scorer's thread, where that is one append, and give them to ``evaluations`` on another.

    What finds no room, or is not told when the time is up, counts as failed. For one process: a forked child makes its
    own. No lock is ever held while a provider is at work.
    """

    def __init__(self, evaluations: Evaluations, failed: Failures) -> None:
        self.evaluations = evaluations
        self._failed = failed
        self._queue: deque[RunClosed] = deque()
        self._bell = threading.Lock()
        self._bell.acquire()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._closed = False
        self._cut = False
        self._ends = float("inf")
        self._outlet: LogOutlet | None = None

    def start(self) -> None:
        """Start the thread, unless it runs. An interpreter that is ending may refuse: :meth:`close` then tells."""
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="reach-otel-evaluations", daemon=True)
            with suppress(RuntimeError):
                thread.start()
                self._thread = thread

    def publish(self, events: Sequence[Event]) -> None:
        """Queue the verdicts among the events."""
        if self._thread is None:
            self.start()
        for event in events:
            if isinstance(event, RunClosed) and is_told(event):
                if self._closed or len(self._queue) >= QUEUE_VERDICTS:
                    self._failed(None, self.evaluations.parts(event))
                    continue
                # Without the actions, which may be many.
                self._queue.append(
                    RunClosed(event.record, actions=(), models=(), root=event.root, variant_by=event.variant_by)
                )
                self._ring()

    def close(self, ends: float, outlet: LogOutlet | None = None) -> None:
        """Tell what is queued, then close the outlet, until a monotonic time; what is left then counts as failed."""
        if self._closed or self._pid != os.getpid():
            return
        self._outlet, self._ends, self._closed = outlet, ends, True
        self.start()
        if self._thread is not None:
            self._ring()
            self._thread.join(max(0.0, ends - time.monotonic()))
        else:
            self._run()
        self._cut = True
        left, self._queue = self._queue, deque()
        if number := sum(self.evaluations.parts(event) for event in list(left)):
            self._failed(None, number)
        if outlet is not None:
            outlet.give_up()

    def _ring(self) -> None:
        with suppress(RuntimeError):  # it rings already
            self._bell.release()

    def _run(self) -> None:
        queue, yielded_ns = self._queue, time.perf_counter_ns()
        while True:
            while queue and time.monotonic() < self._ends:
                self.evaluations.tell(queue[0])
                if self._cut:  # it is counted as not told
                    return
                queue.popleft()  # not before: what a provider is just at is told by nobody else
                if time.perf_counter_ns() - yielded_ns > WORK_NS:
                    time.sleep(YIELD_SECONDS)
                    yielded_ns = time.perf_counter_ns()
            if self._closed:
                break
            self._bell.acquire()
            yielded_ns = time.perf_counter_ns()
        if self._outlet is not None:
            try:
                self._outlet.close(self._ends)
            except Exception as error:  # noqa: BLE001 - what it holds is counted by close()
                self._failed(error, 0)

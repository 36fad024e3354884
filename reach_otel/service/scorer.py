"""Own the engine of the service: one thread takes steps from a bounded queue and tells listeners what they meant."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct

from reach_otel.clock import Clock, Seldom, SystemClock
from reach_otel.engine.events import Counted, Event, RunClosed, RunDropped
from reach_otel.errors import InputError, StateError
from reach_otel.publish.health import Health
from reach_otel.service.faults import told
from reach_otel.service.journal_rows import steps_of
from reach_otel.service.ledger import Ledger
from reach_otel.service.limits import Room

if TYPE_CHECKING:
    from reach_otel.engine.record import Record
    from reach_otel.engine.store import Engine
    from reach_otel.service.journal import Journal
    from reach_otel.span import Step

T = TypeVar("T")
Listener = Callable[[Sequence[Event]], object]

FEED_STEPS: Final = 512  # fed at once, at least one batch
SETTLE_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 10.0
REPLAY_RETRY_SECONDS: Final = 1.0

logger = logging.getLogger(__name__)


class Batch(Struct, frozen=True, gc=False):
    """The steps of one request: ``seq`` is the number of its last row in the journal, 0 where there is none."""

    steps: Sequence[Step]
    seq: int
    size: int  # bytes of room that it takes
    received_ns: int


class Scorer:
    """Score steps on a thread of its own, which alone touches the engine.

    ``engine`` must keep steps. With a journal, :meth:`start` first replays it, and a verdict is told to listeners once
    it is safe there. Listeners are called on the owner thread, in order; what they raise is counted.
    """

    def __init__(
        self,
        engine: Engine,
        room: Room,
        ledger: Ledger,
        *,
        journal: Journal | None = None,
        health: Health | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.engine = engine
        self.room = room
        self.health = health or Health()
        self._closing: dict[str, Record] = {}
        self.closing: Mapping[str, Record] = self._closing
        """Records of runs whose verdict is on its way to the database."""
        self._ledger = ledger
        self._journal = journal
        self._clock = clock or SystemClock()
        self._listeners: list[Listener] = []
        self._batches: deque[Batch] = deque()
        self._questions: deque[tuple[Callable[[], Any], Future[Any] | None]] = deque()
        self._bell = threading.Event()
        self._stopping = False
        self._ended = False
        self._settled_ns = 0
        self._fed_seq = 0
        self._may_log = Seldom()
        self.is_replaying = journal is not None
        self._thread = threading.Thread(target=self._run, name="reach-otel-scorer", daemon=True)

    # Any thread.

    def add_listener(self, listener: Listener) -> None:
        """Tell ``listener`` the engine's events from now on; call it before :meth:`start`."""
        self._listeners.append(listener)

    def start(self) -> None:
        """Start the thread: it replays the journal, then scores what comes."""
        self._thread.start()

    def submit(self, steps: Sequence[Step]) -> bool:
        """Score steps that are in no journal; ``False`` when the queue is full."""
        if not self.room.take(len(steps), 0):
            return False
        self.enqueue(Batch(steps, 0, 0, time.monotonic_ns()))
        return True

    def enqueue(self, batch: Batch) -> None:
        """Score a batch for which room was taken before."""
        self._batches.append(batch)
        self._bell.set()

    def call(self, function: Callable[[Engine], T], timeout_seconds: float = ANSWER_SECONDS) -> T:
        """Run ``function`` on the owner thread; returns or raises what it does.

        :raises StateError: no answer within the time.
        """
        if threading.current_thread() is self._thread:
            return function(self.engine)
        future = self._ask(function)
        try:
            return future.result(timeout_seconds)
        except TimeoutError:
            if not future.done() or future.cancelled():
                future.cancel()
                raise StateError(f"the scorer gave no answer within {timeout_seconds:g} s") from None
            raise

    async def acall(self, function: Callable[[Engine], T]) -> T:
        """Do the same for a coroutine."""
        return await asyncio.wrap_future(self._ask(function))

    async def record(self, run_id: str, *, steps: bool = False) -> Record | None:
        """Give the record of a run that is open, or whose verdict is not in the database yet."""
        found = await self.acall(lambda engine: engine.record(run_id, steps=steps) or self._closing.get(run_id))
        return found

    def stop(self, timeout_seconds: float = 10.0) -> bool:
        """Score what is queued, leave open runs as they are, and end; ``False`` when time did not suffice."""
        self._stopping = True
        self._bell.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    @property
    def is_alive(self) -> bool:
        """Say whether the owner thread runs."""
        return self._thread.is_alive()

    def lag_seconds(self) -> float:
        """Tell for how long the oldest batch has been waiting."""
        try:
            return (time.monotonic_ns() - self._batches[0].received_ns) / 1e9
        except IndexError:
            return 0.0

    def _ask(self, function: Callable[[Engine], T]) -> Future[T]:
        future: Future[T] = Future()
        self._questions.append((lambda: function(self.engine), future))
        self._bell.set()
        if self._ended:
            self._answer()  # the engine has no other user any more
        return future

    # The owner thread.

    def _run(self) -> None:
        self._replay()
        while not self.is_replaying:
            try:
                self._answer()
                if self._turn():
                    continue
                if self._stopping:
                    break
                self._wait()
            except Exception as error:  # noqa: BLE001 - whatever it was, the next steps are scored
                self._fault("worker", error)
                time.sleep(0.01)
        self._ended = True
        self._answer()

    def _wait(self) -> None:
        due_ns = self.engine.due_ns()
        left = SETTLE_SECONDS
        if due_ns is not None:
            left = min(left, max(0.0, (due_ns - self._clock.now_ns()) / 1e9))
        self._bell.wait(left)
        self._bell.clear()

    def _answer(self) -> None:
        while self._questions:
            try:
                function, future = self._questions.popleft()
            except IndexError:
                return
            if future is not None and not future.set_running_or_notify_cancel():
                continue
            try:
                result = function()
            except BaseException as error:  # noqa: BLE001 - it belongs to who asked
                if future is None:
                    self._fault("publish", error)
                else:
                    future.set_exception(error)
            else:
                if future is not None:
                    future.set_result(result)

    def _turn(self) -> bool:
        """Score some batches and give the verdicts that are due; ``False`` when there was nothing to do."""
        batches: list[Batch] = []
        count = 0
        while self._batches and count < FEED_STEPS:
            batch = self._batches.popleft()
            batches.append(batch)
            count += len(batch.steps)
        now_ns = self._clock.now_ns()
        if batches:
            steps = [step for batch in batches for step in batch.steps]
            self.health.received += len(steps)
            self._fed_seq = max(self._fed_seq, batches[-1].seq)
            try:
                self._score(steps, now_ns)
            finally:
                self.room.give(count, sum(batch.size for batch in batches))
        due_ns = self.engine.due_ns()
        is_due = due_ns is not None and due_ns <= now_ns
        if is_due:
            self._tell(self.engine.tick(now_ns))
        if now_ns - self._settled_ns > SETTLE_SECONDS * 1e9:
            self._settle((), now_ns)
        return bool(batches) or is_due

    def _score(self, steps: Sequence[Step], now_ns: int, *, replayed: bool = False) -> None:
        self._ledger.note(steps)
        try:
            events = self.engine.feed(steps, now_ns)
        except Exception as error:  # noqa: BLE001 - what went in before the fault counts as a duplicate now
            self._fault("engine", error)
            events = []
            for step in steps:
                try:
                    events += self.engine.feed((step,), now_ns)
                except Exception as one:  # noqa: BLE001
                    self._fault("engine", one)
        if replayed:  # counted before the restart
            events = [e for e in events if not (isinstance(e, Counted) and e.what in {"late", "duplicate"})]
        self._tell(events)
        self._settle({step.trace_id for step in steps}, now_ns)

    def _settle(self, traces: Iterable[str], now_ns: int) -> None:
        self._settled_ns = now_ns
        free = self._ledger.settle(traces, now_ns)
        if free and self._journal is not None:
            self._journal.finish((), (), free, self._fed_seq)

    def _tell(self, events: list[Event]) -> None:
        """Tell listeners what happened; verdicts only once they are safe."""
        if not events:
            return
        free = self._ledger.follow(events)
        if self._journal is None:
            self._publish(events)
            return
        verdicts = [event for event in events if isinstance(event, RunClosed | RunDropped)]
        if not verdicts:
            self._publish(events)
            return
        self._publish([event for event in events if not isinstance(event, RunClosed | RunDropped)])
        records = [event.record for event in verdicts if isinstance(event, RunClosed)]
        runs = [event.record.run if isinstance(event, RunClosed) else event.run_id for event in verdicts]
        self._closing.update((record.run, record) for record in records)

        def are_safe() -> None:
            self._questions.append((lambda: self._close(verdicts), None))
            self._bell.set()

        self._journal.finish(records, runs, free, self._fed_seq, are_safe)

    def _close(self, verdicts: Sequence[Event]) -> None:
        self._publish(verdicts)
        for event in verdicts:
            if isinstance(event, RunClosed):
                self._closing.pop(event.record.run, None)

    def _publish(self, events: Sequence[Event]) -> None:
        if not events:
            return
        for listener in self._listeners:
            try:
                listener(events)
            except Exception as error:  # noqa: BLE001 - the others are told all the same
                self._fault("publish", error)

    def _replay(self) -> None:
        """Score what the journal holds. Until that is done nothing else is: rows are forgotten up to a number."""
        journal = self._journal
        is_told = False
        while journal is not None and not self._stopping:
            try:
                if not is_told:
                    self._remember(journal.decided())
                    is_told = True
                if self._score_rows(journal):
                    break
            except Exception as error:  # noqa: BLE001 - the database is locked, or the like: it may pass
                self._fault("journal", error)
                self._answer()
                time.sleep(REPLAY_RETRY_SECONDS)
        self.is_replaying = self.is_replaying and self._stopping

    def _remember(self, runs: Sequence[str]) -> None:
        now_ns = self._clock.now_ns()
        for run in runs:
            self.engine.remember(run, now_ns)

    def _score_rows(self, journal: Journal) -> bool:
        """Score rows beyond those scored before; ``False`` when told to stop meanwhile."""
        gathered: list[Step] = []
        for seq, row in journal.replay(self._fed_seq):
            try:
                gathered += steps_of(row)
            except InputError as error:
                journal.errors["read"] += 1
                self._fault("journal", error)
            if len(gathered) >= FEED_STEPS:
                self._fed_seq = seq
                self._score(gathered, self._clock.now_ns(), replayed=True)
                gathered = []
                self._answer()
                if self._stopping:
                    return False
        self._fed_seq = max(self._fed_seq, journal.seq_at_start)
        if gathered:
            self._score(gathered, self._clock.now_ns(), replayed=True)
        return True

    def _fault(self, stage: str, error: BaseException) -> None:
        """Count an exception, and log it unless that stage was logged lately."""
        self.health.errors[stage] += 1
        if self._may_log(stage):
            logger.warning("fault no. %d at %s: %s; scoring goes on", self.health.errors[stage], stage, told(error))

"""Run the one thread that owns the engine: it takes spans from a bounded queue and tells publishers what they meant.

Agents' threads only append to the queue. While spans keep coming, the worker looks at it every ``POLL_SECONDS`` and
nobody wakes it; after ``IDLE_SECONDS`` without one it sleeps, and the next span releases a lock to wake it. No agent's
thread ever takes a lock: not even a finaliser or signal handler that ends a span can be caught in one.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

from msgspec.structs import replace

from reach_otel.clock import Clock, Seldom, SystemClock
from reach_otel.errors import StateError
from reach_otel.publish.health import Health
from reach_otel.span import SdkReader, Step, normalise, normalise_log
from reach_otel.worker.refusals import Refusals

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import ReadWriteLogRecord
    from opentelemetry.sdk.trace import ReadableSpan

    from reach_otel.engine.events import Event
    from reach_otel.engine.store import Engine

T = TypeVar("T")
Raw: TypeAlias = "ReadableSpan | ReadWriteLogRecord"

QUEUE_SPANS: Final = 8_192
BATCH_SPANS: Final = 64
POLL_SECONDS: Final = 0.02
IDLE_SECONDS: Final = 1.0
ANSWER_SECONDS: Final = 5.0
# An agent that wakes from I/O waits up to 5 ms (the interpreter's switch interval) for a busy thread to yield; so the
# worker yields by itself, and long enough for the other to notice.
WORK_NS: Final = 300_000
YIELD_SECONDS: Final = 0.000_05

logger = logging.getLogger(__name__)


class Publisher(Protocol):
    """Take what the engine says, in order, on the worker's thread; what it raises is counted and goes no further."""

    def publish(self, events: Sequence[Event], /) -> None: ...


@dataclass(frozen=True, slots=True)
class Scoring:
    """Hold what one process scores with; made anew in a forked child."""

    engine: Engine
    publishers: Sequence[Publisher] = ()
    mask: Callable[[Step], Step] | None = None
    variant: str | None = None  # of spans that do not say


class Worker:
    """Score spans on a thread of its own, which alone touches the engine.

    ``build`` makes engine and publishers, in each process afresh; what it raises, the constructor raises. After that
    nothing raises into an agent: what fails is counted by stage in :attr:`health` and logged now and then.
    """

    def __init__(
        self,
        build: Callable[[Health], Scoring],
        *,
        queue_spans: int = QUEUE_SPANS,
        flush_seconds: float = 5.0,
        clock: Clock | None = None,
    ) -> None:
        self._build = build
        self._queue_spans = queue_spans
        self._room = queue_spans
        self.flush_seconds = flush_seconds
        self._clock = clock or SystemClock()
        self._queue: deque[Raw] = deque()
        self._closed = False
        self._since_ns: int | None = None  # Unix time since when all spans of this process come here
        self._start(at_once=True)
        if hasattr(os, "register_at_fork"):
            restart = weakref.WeakMethod(self._restart)
            os.register_at_fork(after_in_child=lambda: (again := restart()) and again())

    # The agent's side.

    def offer(self, span: Raw) -> None:
        """Take a span or log record if there is room, else count it as dropped; never wait, never raise."""
        queue = self._queue
        if len(queue) < self._room:
            queue.append(span)
            if self._asleep:
                self.wake()
        else:
            self._refused.add()

    def wake(self) -> None:
        """End the worker's sleep."""
        self._asleep = False
        with suppress(RuntimeError):  # it rings already
            self._bell.release()

    # Anybody's side.

    def attach(self) -> None:
        """Note that from now on all spans of this process are offered; what was under way by now is not scored."""
        if self._since_ns is None:
            self._since_ns = time.time_ns()
            if self._scoring is not None:
                self._scoring.engine.listen(self._since_ns)

    def call(self, function: Callable[[], T], timeout_seconds: float = ANSWER_SECONDS) -> T:
        """Run ``function`` on the owner thread and return its result or raise what it raises.

        After :meth:`shutdown` it runs on the caller's thread, as the engine has no other user then.

        :raises StateError: no answer within the time.
        """
        if threading.current_thread() is self._thread:
            return function()
        answer: Future[T] = Future()
        self._questions.append((function, answer))
        self.wake()
        if self._ended:
            self._answer()
        try:
            return answer.result(timeout_seconds)
        except TimeoutError:
            if answer.cancel() or not answer.done():
                raise StateError(
                    f"the scorer gave no answer within {timeout_seconds:g} s; it may be overloaded"
                ) from None
            raise  # the function's own

    def flush(self, timeout_seconds: float | None = None) -> bool:
        """Score all spans that have ended so far; ``False`` when time did not suffice."""
        limit = self.flush_seconds if timeout_seconds is None else timeout_seconds
        deadline = time.monotonic() + limit
        try:
            return self.call(lambda: self._drain(deadline), limit)
        except StateError:
            return False

    def shutdown(self, timeout_seconds: float | None = None) -> bool:
        """Score what is queued, give a verdict on every open run and end; ``False`` when time did not suffice."""
        limit = self.flush_seconds if timeout_seconds is None else timeout_seconds
        self._refused = self._late
        self._room = 0
        self._deadline = time.monotonic() + limit
        self._closed = True
        self.wake()
        if threading.current_thread() is not self._thread:
            self._thread.join(limit)
        return not self._thread.is_alive()

    @property
    def is_open(self) -> bool:
        """Say whether :meth:`shutdown` has not been called."""
        return not self._closed

    def fault(self, stage: str) -> None:
        """Count the exception at hand, and log it unless that stage was logged lately."""
        self.health.errors[stage] += 1
        if self._may_log(stage):
            logger.warning("fault no. %d at %s; scoring goes on", self.health.errors[stage], stage, exc_info=True)  # noqa: LOG014

    # The worker's side.

    def _start(self, *, at_once: bool) -> None:
        self._full = Refusals()
        self._late = Refusals()
        self._refused = self._full
        self._reader = SdkReader()
        self.health = Health(
            queue_spans=self._queue.__len__,
            lag_seconds=self._lag_seconds,
            refused=lambda: {"queue_full": self._full.value(), "closed": self._late.value()},
            faults=self._reader.faults,
        )
        self._questions: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._answering = threading.RLock()  # of use after the end only, when callers answer themselves
        self._bell = threading.Lock()
        self._bell.acquire()
        self._asleep = False
        self._ended = False
        self._deadline = 0.0
        self._may_log = Seldom()
        self._yielded_ns = 0
        self._scoring: Scoring | None = self._build(self.health) if at_once else None
        self._thread = threading.Thread(target=self._run, name="reach-otel", daemon=True)
        self._thread.start()

    def _restart(self) -> None:
        """Start afresh in a forked child, where the thread is gone and locks may be held by nobody."""
        self._queue.clear()
        if self._since_ns is not None:  # a run under way here left its first spans with the parent
            self._since_ns = time.time_ns()
        if self._closed:
            self._ended = True  # its thread did not come along, so that callers answer themselves
            self._answering = threading.RLock()
            return
        try:
            self._start(at_once=False)  # the thread builds: a fork should not take longer
        except Exception:  # noqa: BLE001 - fork() itself must not fail
            self._room = 0

    def _run(self) -> None:
        try:
            if self._scoring is None:
                self._scoring = self._build(self.health)
                if self._since_ns is not None:
                    self._scoring.engine.listen(self._since_ns)
            self._work(self._scoring)
        except BaseException:  # noqa: BLE001 - nothing is left to catch it
            self.fault("worker")
            self._room = 0
        finally:
            self._ended = True
            self._answer()

    def _work(self, scoring: Scoring) -> None:
        latest = time.monotonic()
        while not self._closed:
            try:
                self._answer()
                if self._turn(scoring):
                    latest = time.monotonic()
                else:
                    self._wait(scoring.engine, time.monotonic() - latest > IDLE_SECONDS)
            except Exception:  # noqa: BLE001 - whatever it was, the next spans are scored
                self.fault("worker")
                time.sleep(POLL_SECONDS)
        while self._turn(scoring) and time.monotonic() < self._deadline:
            pass
        self._publish(scoring, self._ask("engine", lambda: scoring.engine.close(self._clock.now_ns())))

    def _wait(self, engine: Engine, idle: bool) -> None:
        """Sleep until it is time to look at the queue, or, when idle, until something comes or a verdict falls due."""
        due_ns = engine.due_ns()
        left = None if due_ns is None else max(0.0, (due_ns - self._clock.now_ns()) / 1e9)
        if not idle:
            self._bell.acquire(timeout=POLL_SECONDS if left is None else min(left, POLL_SECONDS))
        else:
            self._asleep = True
            if not (self._queue or self._questions or self._closed):  # what came before the flag was up rings no bell
                self._bell.acquire(timeout=-1 if left is None else min(left, threading.TIMEOUT_MAX))
            self._asleep = False
        self._yielded_ns = time.perf_counter_ns()

    def _turn(self, scoring: Scoring) -> bool:
        """Score one batch and give the verdicts that are due; ``False`` when there was no span."""
        queue, steps = self._queue, list[Step]()
        taken = min(len(queue), BATCH_SPANS)
        for _ in range(taken):
            self.health.received += 1
            steps += self._read(queue.popleft(), scoring)
            self._yield()
        now_ns = self._clock.now_ns()
        events = self._feed(scoring.engine, steps, now_ns) if steps else []
        due_ns = scoring.engine.due_ns()
        if due_ns is not None and due_ns <= now_ns:
            events += self._ask("engine", lambda: scoring.engine.tick(now_ns))
        self._publish(scoring, events)
        return taken > 0

    def _lag_seconds(self) -> float:
        try:
            ended_ns = getattr(self._queue[0], "end_time", None)
        except IndexError:
            return 0.0
        return max(0.0, (time.time_ns() - ended_ns) / 1e9) if ended_ns else 0.0

    def _read(self, raw: Raw, scoring: Scoring) -> Sequence[Step]:
        stage = "read"
        try:
            steps: Iterable[Step]
            if hasattr(raw, "log_record"):
                record = self._reader.log(raw)
                stage = "normalise"
                steps = normalise_log(record) if record is not None else ()
            else:
                span = self._reader.span(raw)
                stage = "normalise"
                keep = scoring.engine.needs_attributes
                steps = normalise(span, keep_attributes=keep) if span is not None else ()
            if scoring.variant is not None:
                steps = [replace(step, variant=step.variant or scoring.variant) for step in steps]
            stage = "redact"
            return tuple(steps) if scoring.mask is None else [scoring.mask(step) for step in steps]
        except Exception:  # noqa: BLE001 - one bad span is one bad span
            self.fault(stage)
            return ()

    def _feed(self, engine: Engine, steps: Sequence[Step], now_ns: int) -> list[Event]:
        try:
            return engine.feed(steps, now_ns)
        except Exception:  # noqa: BLE001
            self.fault("engine")
        events: list[Event] = []
        for step in steps:  # what went in before the fault counts as a duplicate now; what came after it is not lost
            events += self._ask("engine", lambda step=step: engine.feed((step,), now_ns))  # type: ignore[misc]
        return events

    def _ask(self, stage: str, function: Callable[[], list[Event]]) -> list[Event]:
        try:
            return function()
        except Exception:  # noqa: BLE001
            self.fault(stage)
            return []

    def _publish(self, scoring: Scoring, events: Sequence[Event]) -> None:
        if not events:
            return
        for publisher in scoring.publishers:
            try:
                publisher.publish(events)
            except Exception:  # noqa: BLE001 - the others are told all the same
                self.fault("publish")
            self._yield()

    def _yield(self) -> None:
        now_ns = time.perf_counter_ns()
        if now_ns - self._yielded_ns > WORK_NS:
            time.sleep(YIELD_SECONDS)
            self._yielded_ns = time.perf_counter_ns()

    def _drain(self, deadline: float) -> bool:
        """Score what is in the queue now, on the owner thread."""
        scoring, left = self._scoring, len(self._queue)
        while left > 0 and scoring is not None and not self._ended:
            if time.monotonic() > deadline:
                return False
            left -= BATCH_SPANS
            self._turn(scoring)
        return True

    def _answer(self) -> None:
        while self._questions:
            try:
                function, answer = self._questions.popleft()
            except IndexError:  # somebody else answers it
                return
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                with self._answering:
                    answer.set_result(function())
            except BaseException as exc:  # noqa: BLE001 - it belongs to who asked
                answer.set_exception(exc)

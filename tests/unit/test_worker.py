"""Check the owner thread: it never dies, answers questions, keeps time, and lets agents go first."""

from __future__ import annotations

import gc
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

from reach_otel import StateError
from reach_otel.engine import Engine, Event, Limits, RunClosed
from reach_otel.publish.health import Health
from reach_otel.span import Step
from reach_otel.task import CallTimeout, Tasks, load
from reach_otel.worker import Publisher, Scoring, TimedCalls, Worker


class Keep:
    """Publish by keeping, with the time."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.closed_at: list[float] = []
        self.threads: set[str] = set()

    def publish(self, events: Sequence[Event], /) -> None:
        self.threads.add(threading.current_thread().name)
        self.events += events
        self.closed_at += [time.monotonic() for event in events if isinstance(event, RunClosed)]

    def closed(self) -> list[RunClosed]:
        return [event for event in self.events if isinstance(event, RunClosed)]


class BrokenPublisher:
    """Raise at everything."""

    def publish(self, events: Sequence[Event], /) -> None:
        raise RuntimeError("publisher is broken")


class StumblingEngine(Engine):
    """Break over the batch in which a certain agent's step is, after having taken it."""

    def feed(self, steps: Any, now_ns: int) -> list[Event]:
        events = []
        for step in steps:
            events += super().feed([step], now_ns)
            if step.agent == "stumble":
                raise ValueError("engine stumbled")
        return events


def make(
    *publishers: Publisher,
    engine: Callable[[], Engine] = lambda: Engine(Tasks(), Limits(grace_seconds=0)),
    mask: Callable[[Step], Step] | None = None,
    variant: str | None = None,
) -> Worker:
    return Worker(lambda _: Scoring(engine(), publishers, mask, variant), flush_seconds=10)


def span(agent: str = "a") -> ReadableSpan:
    provider = TracerProvider(shutdown_on_exit=False)
    made = provider.get_tracer("t").start_span(f"invoke_agent {agent}")
    made.set_attribute("gen_ai.operation.name", "invoke_agent")
    made.set_attribute("gen_ai.agent.name", agent)
    made.end()
    assert isinstance(made, ReadableSpan)
    return made


@pytest.fixture
def keep() -> Keep:
    return Keep()


@pytest.fixture
def worker(keep: Keep) -> Iterator[Worker]:
    made = make(keep)
    yield made
    made.shutdown()


def hold(worker: Worker) -> threading.Event:
    """Keep the worker busy until the event returned is set."""
    gate, busy = threading.Event(), threading.Event()

    def wait() -> None:
        busy.set()
        gate.wait(30)

    threading.Thread(target=lambda: worker.call(wait, 30)).start()
    assert busy.wait(10)
    return gate


def _has(found: Sequence[Any], n: int) -> bool:
    return len(found) > n


def wait_for(condition: Callable[[], Any], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.002)


def test_everything_happens_on_the_owner_thread(worker: Worker, keep: Keep) -> None:
    """Publishing and answering are done by one thread, never by an agent's."""
    worker.offer(span())
    assert worker.flush()
    assert worker.call(lambda: threading.current_thread().name) == "reach-otel"
    assert keep.threads == {"reach-otel"}
    assert threading.current_thread().name != "reach-otel"


def test_all_spans_count_when_many_threads_offer(worker: Worker, keep: Keep) -> None:
    """None is lost or scored twice."""
    made = [span(f"a{n}") for n in range(200)]
    threads = [threading.Thread(target=lambda n=n: list(map(worker.offer, made[n::4]))) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert worker.shutdown()
    assert sorted(str(closed.record.agent) for closed in keep.closed()) == sorted(f"a{n}" for n in range(200))
    assert worker.health.received == 200


def test_a_verdict_comes_within_grace_and_a_tenth_of_a_second(keep: Keep) -> None:
    """Idle or busy, a run's verdict is out 100 ms after its grace at the latest."""
    grace = 0.2
    worker = make(keep, engine=lambda: Engine(Tasks(), Limits(grace_seconds=grace)))
    time.sleep(1.3)  # long enough for the worker to have gone to sleep
    gc.collect()
    gc.disable()  # after thousands of other tests, looking through what they left takes a tenth of a second by itself
    try:
        for n in range(3):
            ended = time.monotonic()
            worker.offer(span())
            wait_for(partial(_has, keep.closed_at, n))
            assert grace - 0.01 <= keep.closed_at[n] - ended < grace + 0.1
    finally:
        gc.enable()
    worker.shutdown()


def test_a_sleeping_worker_wakes_for_a_span(worker: Worker, keep: Keep) -> None:
    """After some idle time nobody polls, and the next span is scored at once all the same."""
    wait_for(lambda: worker._asleep)
    worker.offer(span())
    wait_for(keep.closed, seconds=1)
    wait_for(lambda: worker._asleep)


def test_a_question_gets_its_answer_or_error(worker: Worker) -> None:
    """call() returns what the function returns, raises what it raises, and works from the owner thread itself."""

    def fail() -> None:
        raise KeyError("k")

    def time_out() -> None:
        raise TimeoutError("own")

    assert worker.call(lambda: 3) == 3
    with pytest.raises(KeyError):
        worker.call(fail)
    with pytest.raises(TimeoutError, match="own"):
        worker.call(time_out)
    assert worker.call(lambda: worker.call(lambda: 4)) == 4


def test_a_question_is_not_waited_for_without_end(worker: Worker) -> None:
    """An answer that does not come in time is a StateError, and the question is dropped."""
    gate = hold(worker)
    asked: list[int] = []
    with pytest.raises(StateError, match=r"no answer within 0.1 s"):
        worker.call(lambda: asked.append(1), 0.1)
    gate.set()
    worker.call(lambda: None)
    assert asked == []


def test_questions_are_answered_after_the_end(worker: Worker) -> None:
    """After shutdown the caller's own thread answers."""
    worker.shutdown()
    assert worker.call(lambda: threading.current_thread().name) == threading.current_thread().name
    assert worker.flush()


def test_shutdown_gives_every_open_run_its_verdict(keep: Keep) -> None:
    """What is queued is scored and what is open is closed, once."""
    worker = make(keep, engine=lambda: Engine(Tasks(), Limits(grace_seconds=600)))
    for _ in range(5):
        worker.offer(span())
    assert worker.shutdown()
    assert worker.shutdown()
    assert len(keep.closed()) == 5
    assert worker.health.queue_spans() == 0


def test_shutdown_is_bounded(keep: Keep) -> None:
    """A publisher that hangs holds up shutdown for no longer than the time given."""
    gate = threading.Event()

    class Hang:
        def publish(self, events: Sequence[Event], /) -> None:
            gate.wait(30)

    worker = make(Hang())
    worker.offer(span())
    start = time.monotonic()
    assert not worker.shutdown(0.2)
    assert time.monotonic() - start < 2
    gate.set()
    worker._thread.join(10)


# Faults.


def test_a_broken_publisher_keeps_nobody_from_being_told(keep: Keep, caplog: pytest.LogCaptureFixture) -> None:
    """The others hear everything; the fault is counted each time and logged once."""
    worker = make(BrokenPublisher(), keep)
    for _ in range(5):
        worker.offer(span())
        assert worker.flush()
    worker.shutdown()
    assert len(keep.closed()) == 5
    assert worker.health.errors["publish"] >= 5
    assert [record.getMessage() for record in caplog.records] == ["fault no. 1 at publish; scoring goes on"]
    assert caplog.records[0].exc_info is not None


def test_a_broken_mask_lets_nothing_through(keep: Keep) -> None:
    """A step that cannot be masked is not scored: better no score than a leak."""

    def mask(step: Step) -> Step:
        if step.agent == "bad":
            raise ValueError("cannot mask")
        return step

    worker = make(keep, mask=mask)
    worker.offer(span("bad"))
    worker.offer(span("good"))
    worker.shutdown()
    assert [closed.record.agent for closed in keep.closed()] == ["good"]
    assert worker.health.errors["redact"] == 1


def test_an_engine_fault_costs_no_other_step(keep: Keep) -> None:
    """When the engine stumbles over one step of a batch, the steps around it count."""
    worker = make(keep, engine=lambda: StumblingEngine(Tasks(), Limits(grace_seconds=0)))
    gate = hold(worker)
    for name in ("first", "stumble", "last"):
        worker.offer(span(name))
    gate.set()
    worker.shutdown()
    assert {str(closed.record.agent) for closed in keep.closed()} == {"first", "stumble", "last"}
    assert worker.health.errors["engine"] >= 1


def test_what_is_no_span_is_counted(worker: Worker, keep: Keep) -> None:
    """Something that cannot be read is dropped, with its reason, and the next span counts."""
    worker.offer(object())  # type: ignore[arg-type]
    worker.offer(span())
    worker.shutdown()
    assert worker.health.dropped()["unreadable"] + worker.health.errors["read"] + worker.health.errors["worker"] == 1
    assert len(keep.closed()) == 1


def test_the_thread_outlives_a_fault_outside_of_all_stages(
    worker: Worker, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even a fault in the worker's own loop is counted, and scoring goes on."""
    real = worker._turn
    faults = iter([RuntimeError("loop"), None])

    def turn(scoring: Scoring) -> bool:
        if fault := next(faults, None):
            raise fault
        return real(scoring)

    monkeypatch.setattr(worker, "_turn", turn)
    worker.offer(span())
    wait_for(keep.closed)
    assert worker.health.errors["worker"] == 1


def test_what_cannot_be_built_is_raised_at_once() -> None:
    """The constructor raises what engine and publishers raise when they are made."""

    def build(health: Health) -> Scoring:
        raise ValueError("no engine")

    with pytest.raises(ValueError, match="no engine"):
        Worker(build)


def test_a_variant_is_given_to_spans_that_have_none(keep: Keep) -> None:
    """The setting speaks for the whole process; a span's own variant wins."""
    worker = make(keep, variant="canary")
    worker.offer(span())
    worker.shutdown()
    assert keep.closed()[0].record.variant == "canary"


def test_lag_is_the_age_of_the_oldest_span_that_waits(worker: Worker) -> None:
    """It grows while the worker is stuck, and is 0 when nothing waits."""
    gate = hold(worker)
    worker.offer(span())
    time.sleep(0.15)
    worker.offer(span())
    assert 0.15 <= worker.health.lag_seconds() < 5
    gate.set()
    worker.flush()
    assert worker.health.lag_seconds() == 0


def test_an_agent_that_wakes_up_does_not_wait_for_the_worker(worker: Worker) -> None:
    """A busy worker yields the interpreter: an agent coming back from I/O runs within about a millisecond, not five."""
    made = span()
    stop = threading.Event()

    def load_worker() -> None:
        while not stop.is_set():
            for _ in range(200):
                worker.offer(made)
            time.sleep(0.01)

    thread = threading.Thread(target=load_worker)
    thread.start()
    late = []
    for _ in range(200):
        start = time.perf_counter()
        time.sleep(0.001)
        late.append(time.perf_counter() - start - 0.001)
    stop.set()
    thread.join()
    assert sorted(late)[len(late) // 2] < 0.003


# Python conditions.


def slow_condition(run: Any, view: Any) -> bool:
    """Take longer than any limit here."""
    time.sleep(0.5)
    return True


def spinning_condition(run: Any, view: Any) -> bool:
    """Never come back, and use the interpreter meanwhile."""
    while True:
        pass


def broken_condition(run: Any, view: Any) -> bool:
    raise LookupError("broken")


def exiting_condition(run: Any, view: Any) -> bool:
    sys.exit()


def good_condition(run: Any, view: Any) -> bool:
    return bool(view == "view")


def test_a_condition_in_time_is_answered() -> None:
    """Its result and its exceptions are its own."""
    call = TimedCalls(5)
    assert call(good_condition, "run", "view") is True
    with pytest.raises(LookupError, match="broken"):
        call(broken_condition, None, None)
    assert call(good_condition, "run", "other") is False
    call.close()


def test_a_condition_out_of_time_is_given_up_and_then_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    """Three timeouts and a function is not called again; others still are."""
    call = TimedCalls(0.02)
    for _ in range(3):
        with pytest.raises(CallTimeout, match=r"took longer than 0\.02 s"):
            call(slow_condition, None, None)
        assert call(good_condition, None, "view") is True
    start = time.monotonic()
    with pytest.raises(CallTimeout, match="no longer called"):
        call(slow_condition, None, None)
    assert time.monotonic() - start < 0.02
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    call.close()


def test_a_condition_that_spins_is_stopped() -> None:
    """A runaway loop does not go on stealing time from the agent."""
    call = TimedCalls(0.05)
    before = set(threading.enumerate())
    with pytest.raises(CallTimeout):
        call(spinning_condition, None, None)
    wait_for(lambda: set(threading.enumerate()) <= before)


def test_a_condition_that_exits_is_a_fault() -> None:
    """sys.exit() in a condition ends neither the helper nor the scoring."""
    call = TimedCalls(5)
    with pytest.raises(RuntimeError, match="raised SystemExit"):
        call(exiting_condition, None, None)
    assert call(good_condition, None, "view") is True
    call.close()


def test_no_limit_means_a_direct_call() -> None:
    """With 0 seconds functions run on the caller's thread."""
    names: list[str] = []
    TimedCalls(0)(lambda run, view: names.append(threading.current_thread().name), None, None)
    assert names == [threading.current_thread().name]


def test_timeouts_of_a_task_file_are_counted(tmp_path: Any, keep: Keep) -> None:
    """A milestone whose condition hangs is not reached, and the engine counts ``python_timeout``."""
    file = tmp_path / "slow.task.yaml"
    file.write_text(
        "task: slow\nmatch: {agent: a}\nmilestones:\n"
        "  - {id: m, verify: {tool: t, python: 'tests.unit.test_worker:slow_condition'}}\n"
    )
    tasks = load(file, call=TimedCalls(0.02))
    worker = make(keep, engine=lambda: Engine(tasks, Limits(grace_seconds=0)))
    provider = TracerProvider(shutdown_on_exit=False)
    tracer = provider.get_tracer("t")
    with tracer.start_as_current_span("invoke_agent a") as root:
        root.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"})
        with tracer.start_as_current_span("execute_tool t") as tool:
            tool.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t"})
    for made in (tool, root):
        assert isinstance(made, ReadableSpan)
        worker.offer(made)
    worker.shutdown()
    assert keep.closed()[0].record.milestones[0].state == "missed"
    faults = [event for event in keep.events if getattr(event, "what", None) == "fault"]
    assert {getattr(fault, "reason", None) for fault in faults} == {"python_timeout"}

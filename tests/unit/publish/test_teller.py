"""Check that a provider which keeps its caller waiting keeps the teller's thread waiting and nobody else."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import SpanProcessor

from reach_otel.engine import RunClosed, RunOpened
from reach_otel.publish.failures import Failures
from reach_otel.publish.outlet import LogOutlet
from reach_otel.publish.teller import QUEUE_VERDICTS, Teller
from tests.support.receiver import Receiver, hole
from tests.unit.publish.scrape import ticket_run
from tests.unit.publish.test_evaluation import Store


class Gate(SpanProcessor):
    """Let a span pass when it may, and note on which thread it came."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.threads: list[str] = []

    def on_end(self, span: Any) -> None:
        self.threads.append(threading.current_thread().name)
        self.may.wait(30)


class Bench:
    """A teller before a store whose tracer provider waits at a gate; events have no provider unless one is given."""

    def __init__(self, **options: Any) -> None:
        self.errors = Counter[str]()
        self.store = Store(**{"logger_provider": lambda: None, **options})
        self.closed = Store().score(ticket_run())
        self.gate = Gate()
        self.store.tracers.add_span_processor(self.gate)
        self.teller = Teller(self.store.evaluations, Failures(lambda: self.errors))

    @property
    def told(self) -> int:
        return len(self.store.spans)

    def publish(self, verdicts: int) -> float:
        """Publish one verdict so many times, and give the seconds that it took."""
        began = time.monotonic()
        for _ in range(verdicts):
            self.teller.publish([self.closed])
        return time.monotonic() - began

    def close(self, seconds: float, outlet: LogOutlet | None = None) -> float:
        began = time.monotonic()
        self.teller.close(began + seconds, outlet)
        return time.monotonic() - began


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.gate.may.set()


def wait_for(found: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not found():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def test_publishing_waits_for_no_provider(bench: Bench) -> None:
    """While one verdict hangs the next are queued; all are told in the end, on one thread that is not the caller's."""
    bench.teller.publish([RunOpened("a")])
    assert bench.publish(200) < 1
    wait_for(lambda: bench.told == 1)
    bench.gate.may.set()
    assert bench.close(10) < 5
    assert (bench.told, bench.errors["evaluation"]) == (200, 0)
    assert set(bench.gate.threads) == {"reach-otel-evaluations"}


def test_a_full_queue_refuses_and_counts(bench: Bench) -> None:
    """Each verdict is told or counted."""
    assert bench.publish(QUEUE_VERDICTS + 50) < 5
    assert bench.errors["evaluation"] == 50
    bench.gate.may.set()
    bench.close(20)
    assert bench.told == QUEUE_VERDICTS


def test_a_refused_verdict_counts_as_all_its_parts() -> None:
    """One for the span and one for each event, as with failures further on."""
    bench = Bench()
    bench.store.evaluations = Store().evaluations
    bench.teller.evaluations = bench.store.evaluations
    bench.close(1)
    bench.publish(3)
    assert bench.errors["evaluation"] == 3 * 5, "one span and four events each"


def test_an_end_is_bounded_and_what_is_left_is_counted(bench: Bench) -> None:
    """A provider that hangs gets the time and no more, and is given nothing when it comes back."""
    bench.publish(20)
    wait_for(lambda: bench.gate.threads)
    assert 0.3 <= bench.close(0.3) < 1.3
    assert bench.errors["evaluation"] == 20
    assert bench.close(10) < 1, "a second end has nothing to wait for"
    bench.publish(1)
    assert bench.errors["evaluation"] == 21
    bench.gate.may.set()
    time.sleep(0.1)
    assert (len(bench.gate.threads), bench.errors["evaluation"]) == (1, 21)


def test_a_run_that_no_store_has_is_not_queued(bench: Bench) -> None:
    """Without a root there is nothing to tell."""
    bench.teller.publish([RunClosed(bench.closed.record, (), ())])
    bench.gate.may.set()
    bench.close(5)
    assert (bench.told, bench.errors["evaluation"]) == (0, 0)


def test_an_interpreter_that_is_ending_starts_no_thread(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.12 and later refuse it at exit: verdicts are told by who closes then, and the outlet is closed too."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    bench.gate.may.set()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        bench.publish(3)
        assert bench.told == 0
        bench.close(5)
    assert (bench.told, bench.errors["evaluation"]) == (3, 0)
    assert set(bench.gate.threads) == {threading.current_thread().name}


# With the outlet for events.


def outlet_to(address: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Bench, LogOutlet]:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", f"{address}/v1/logs")
    outlet: list[LogOutlet] = []
    bench = Bench(logger_provider=lambda: outlet[0].logger_provider)
    outlet.append(LogOutlet("http", Failures(lambda: bench.errors)))
    bench.gate.may.set()
    return bench, outlet[0]


@pytest.mark.parametrize("wait_seconds", [0, 1.5])  # the queue is looked at each second: a batch is under way then
@pytest.mark.parametrize("is_refused", [True, False])
def test_verdicts_and_outlet_end_in_one_time(
    is_refused: bool, wait_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the exporter's own limits are: what is not sent by then is counted."""
    with hole() as address:
        bench, outlet = outlet_to("http://127.0.0.1:9" if is_refused else address, monkeypatch)
        bench.publish(3)
        time.sleep(wait_seconds)
        assert bench.close(1, outlet) < 2
        assert bench.errors["evaluation"] == 3 * 4
        assert bench.told == 3


def test_a_verdict_that_hangs_leaves_the_outlet_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is one; what the outlet had is counted all the same."""
    with hole() as address:
        bench, outlet = outlet_to(address, monkeypatch)
        bench.publish(2)
        wait_for(lambda: bench.told == 2)
        bench.gate.may.clear()
        bench.publish(1)
        assert bench.close(0.5, outlet) < 1.5
        assert bench.errors["evaluation"] == 2 * 4 + 5
        bench.gate.may.set()


def test_an_outlet_that_is_heard_sends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what was queued just before the end."""
    with Receiver() as receiver:
        bench, outlet = outlet_to(receiver.url, monkeypatch)
        bench.publish(10)
        assert bench.close(10, outlet) < 5
        assert (len(receiver.logs()), bench.errors["evaluation"]) == (40, 0)

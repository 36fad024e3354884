"""Check that exporters of the application, slow, dead or shut down before us, cost no score, no wait and no count."""

from __future__ import annotations

import logging
import os
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import reach_otel
from reach_otel import Reach
from reach_otel.api.context import hand
from tests.support.application import run_application
from tests.support.receiver import hole

SECONDS = 0.1
AGENT: dict[str, Any] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bot"}


@pytest.fixture
def instrument() -> Iterator[Callable[..., Reach]]:
    made: list[Reach] = []

    def start(provider: TracerProvider, **settings: Any) -> Reach:
        made.append(reach_otel.instrument(tracer_provider=provider, metrics_port=None, **settings))
        return made[-1]

    yield start
    for reach in made:
        reach.shutdown(0)
    hand.reset()


class SlowExporter(InMemorySpanExporter):
    """An exporter that takes its time over each verdict."""

    def export(self, spans: Any) -> SpanExportResult:
        if spans[0].name == "reach.evaluate":
            time.sleep(SECONDS)
        return super().export(spans)


def work(provider: TracerProvider, runs: int) -> None:
    for _ in range(runs):
        provider.get_tracer("app").start_span("invoke_agent bot", attributes=AGENT).end()


def verdicts(exporter: InMemorySpanExporter) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name == "reach.evaluate"]


def counted(reach: Reach) -> int:
    assert reach.health is not None
    return reach.health.errors["evaluation"]


def test_an_exporter_in_the_path_of_each_span_holds_no_score(instrument: Callable[..., Reach]) -> None:
    """Each verdict exports for a tenth of a second: all spans are scored meanwhile, and questions are answered."""
    exporter, provider = SlowExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    reach = instrument(provider, grace=0, queue_spans=1_000, flush_seconds=1)
    for _ in range(6):
        work(provider, 500)
        assert reach.flush(2)
    began = time.monotonic()
    assert reach.runs() == []
    assert time.monotonic() - began < 1
    assert reach.health is not None
    assert (reach.health.received, sum(reach.health.dropped().values())) == (3_000, 0)
    began = time.monotonic()
    assert reach.shutdown()
    assert time.monotonic() - began < 2
    told = len(verdicts(exporter))
    assert told >= 5
    # The one that is just being exported when the time is up counts as not told, and may still arrive.
    assert 3_000 <= told + counted(reach) <= 3_001
    time.sleep(2 * SECONDS)
    assert len(verdicts(exporter)) <= told + 1, "one may have been under way"


@pytest.mark.parametrize("kind", [BatchSpanProcessor, SimpleSpanProcessor])
def test_a_provider_that_ends_before_us_is_given_no_more(
    kind: Callable[[Any], Any], instrument: Callable[..., Reach], caplog: pytest.LogCaptureFixture
) -> None:
    """Its exporter stands before us and is gone: the last verdicts count as failed, and the SDK has nothing to say."""
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(kind(exporter))
    reach = instrument(provider, grace=60)
    work(provider, 20)
    provider.shutdown()
    assert (len(verdicts(exporter)), counted(reach)) == (0, 20)
    assert [entry.name.partition(".")[0] for entry in caplog.records] == ["reach_otel"]


@pytest.mark.parametrize("kind", [BatchSpanProcessor, SimpleSpanProcessor])
def test_an_exporter_that_was_added_after_us_gets_the_last_verdicts(
    kind: Callable[[Any], Any], instrument: Callable[..., Reach]
) -> None:
    """It is shut down after us, which waits until they are told."""
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    reach = instrument(provider, grace=60)
    provider.add_span_processor(kind(exporter))
    work(provider, 20)
    provider.shutdown()
    assert (len(verdicts(exporter)), counted(reach)) == (20, 0)


# Processes.

APP = """
import atexit, os, sys, time
began = time.monotonic()
atexit.register(lambda: print(f"{time.monotonic() - began:.3f}"))  # called last, as it was registered first
import logging; logging.disable()
import reach_otel
from opentelemetry import trace

@reach_otel.agent("bot")
def bot(request): return "done"
"""


def run_app(code: str, tmp_path: Path, **environ: str) -> list[str]:
    done = run_application(APP + textwrap.dedent(code), tmp_path, REACH_METRICS_PORT="none", **environ)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


ENDS = {"at-exit": "", "by-handle": "reach.shutdown()", "by-provider": "trace.get_tracer_provider().shutdown()"}


@pytest.mark.parametrize(("end", "is_refused"), [("at-exit", True), *((end, False) for end in ENDS)])
def test_a_dead_store_of_events_does_not_hold_the_exit(end: str, is_refused: bool, tmp_path: Path) -> None:
    """Verdicts, their emission and our own exporter of events share ``flush_seconds``, though it would try for ten."""
    with hole() as address:
        logs = "http://127.0.0.1:9" if is_refused else address
        left, ended = run_app(
            f"""
            reach = reach_otel.instrument(grace=0, flush_seconds=1)
            bot("go")
            reach.flush()
            time.sleep(1.5)  # the queue is looked at each second: a batch is under way then
            print(time.monotonic() - began)
            {ENDS[end]}
            """,
            tmp_path,
            OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=f"{logs}/v1/logs",
        )
        assert float(ended) - float(left) < 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_of_a_process_whose_exporter_hangs_tells_its_own(tmp_path: Path) -> None:
    """The queue of its parent and who waits in it did not come along; both end in time, also one that did nothing."""
    lines = run_app(
        """
        from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
        parent = os.getpid()

        class Hang(SpanProcessor):
            def on_end(self, span):
                if span.name != "reach.evaluate": return
                if os.getpid() == parent: time.sleep(60)
                print("child told", flush=True)

        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(Hang())
        trace.set_tracer_provider(provider)
        reach = reach_otel.instrument(grace=0, flush_seconds=1)
        for _ in range(3): bot("go")
        reach.flush()
        for runs in (2, 0):
            child = os.fork()
            if child == 0:
                began = time.monotonic()
                for _ in range(runs): bot("go")
                sys.exit()
            os.waitpid(child, 0)
        began = time.monotonic()
        reach.shutdown()
        print(reach.health.errors["evaluation"])
        """,
        tmp_path,
    )
    told, busy, idle, failed, itself = lines[:2], *lines[2:]
    assert (told, failed) == (["child told"] * 2, "3")
    assert max(map(float, (busy, idle, itself))) < 2


def test_the_log_is_quiet_while_all_is_well(instrument: Callable[..., Reach], caplog: pytest.LogCaptureFixture) -> None:
    """A second shutdown, in whatever order, says nothing either."""
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    reach = instrument(provider, grace=60)
    work(provider, 3)
    reach.shutdown()
    provider.shutdown()
    reach.shutdown()
    assert (len(verdicts(exporter)), counted(reach)) == (3, 0)
    assert [entry for entry in caplog.records if entry.levelno >= logging.WARNING] == []

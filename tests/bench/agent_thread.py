"""Compare what a span costs the agent's own thread with ReachSpanProcessor and with the SDK's BatchSpanProcessor."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from reach_otel.instrument import Reach
from reach_otel.settings import Settings
from tests.bench.timing import Timing, cpu_seconds, interleave

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opentelemetry.sdk.trace import ReadableSpan

GOAL = 1.0
ATTRIBUTES = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "check_inventory",
    "gen_ai.tool.call.id": "call_1",
    "gen_ai.tool.call.arguments": '{"sku": "SKU-1234"}',
    "gen_ai.tool.call.result": '{"sku": "SKU-1234", "stock": 3}',
}


class NullExporter(SpanExporter):
    """Throw spans away."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


@dataclass(frozen=True)
class Added:
    """Hold what the two processors add to a span on the thread that makes it, in microseconds, and their ratio."""

    batch_us: float
    reach_us: float
    ratio: float


def measure(*, spans: int = 400, rounds: int = 25) -> Added:
    """Make spans with no processor, with BatchSpanProcessor and with ReachSpanProcessor, and subtract.

    ``spans`` is below the size at which BatchSpanProcessor wakes its thread, and queues are emptied between rounds
    outside of the measured time, so that this is what enqueuing costs and not who gets the interpreter's lock.
    """
    bare = TracerProvider()
    batch = TracerProvider()
    batch.add_span_processor(BatchSpanProcessor(NullExporter(), schedule_delay_millis=600_000))
    scored = TracerProvider()
    reach = Reach(Settings(metrics_port=None), scored, None)
    try:
        cases = {
            "bare": _case(bare, spans, lambda: True),
            "batch": _case(batch, spans, batch.force_flush),
            "reach": _case(scored, spans, reach.flush),
        }
        timings = interleave(cases, rounds)
    finally:
        reach.shutdown()
        batch.shutdown()
    batch_us, reach_us = (_added(timings[name], timings["bare"]) / spans * 1e6 for name in ("batch", "reach"))
    return Added(batch_us, reach_us, reach_us / batch_us)


def _case(provider: TracerProvider, spans: int, flush: Callable[[], bool]) -> Callable[[], float]:
    tracer = provider.get_tracer("bench")

    def make() -> None:
        for _ in range(spans):
            tracer.start_span("execute_tool check_inventory", attributes=ATTRIBUTES).end()

    def work() -> float:
        taken = cpu_seconds(make)
        flush()
        time.sleep(0.01)  # let the other thread come to rest
        return taken

    return work


def _added(timing: Timing, bare: Timing) -> float:
    return median(mine - none for mine, none in zip(timing.seconds, bare.seconds, strict=True))

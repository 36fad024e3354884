"""Compare scoring with merely decoding: what is left of the rate when spans are also scored and published."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.bench.scoring import Scorer, bench_tasks
from tests.bench.timing import cpu_seconds, interleave
from tests.bench.workload import GenAiRun, captured, captured_requests, requests

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.proto.common.v1.common_pb2 import AnyValue

GOAL = 0.5


def walk(body: bytes) -> int:
    """Decode a request and turn all attributes in it into Python dicts; returns the number of spans."""
    spans = 0
    for group in ExportTraceServiceRequest.FromString(body).resource_spans:
        _attributes(group.resource.attributes)
        for scope in group.scope_spans:
            for span in scope.spans:
                _attributes(span.attributes)
                for event in span.events:
                    _attributes(event.attributes)
                spans += 1
    return spans


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {item.key: _value(item.value) for item in value.kvlist_value.values}
    return None if kind is None else getattr(value, kind)


def measure(*, runs: int = 300, rounds: int = 7) -> list[tuple[str, float, float]]:
    """Measure each workload; rows are (what, ratio of rates, microseconds a span when scored)."""
    recorded = captured()
    copies = max(1, runs * 18 // max(1, sum(len(s.spans) for group in recorded for s in group.scope_spans)))
    workloads: dict[str, Callable[[], list[bytes]]] = {
        "GenAI runs of 8 actions, full message history": lambda: requests(
            [GenAiRun(8, seed=n).spans() for n in range(runs)]
        ),
    }
    if recorded:
        workloads["spans recorded from real frameworks"] = lambda: [
            body for _ in range(copies) for body in captured_requests(recorded)
        ]
    return [_compare(what, make, rounds) for what, make in workloads.items()]


def _compare(what: str, make: Callable[[], list[bytes]], rounds: int) -> tuple[str, float, float]:
    bodies = make()
    spans = sum(walk(body) for body in bodies)

    def decode() -> None:
        for body in bodies:
            walk(body)

    def score() -> None:
        scorer = Scorer(bench_tasks())
        for body in bodies:
            scorer.take(body)
        scorer.finish()

    timings = interleave({"decode": lambda: cpu_seconds(decode), "score": lambda: cpu_seconds(score)}, rounds)
    return what, timings["decode"].ratio_to(timings["score"]), timings["score"].median / spans * 1e6

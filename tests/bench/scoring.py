"""Put the scoring path together as the service does, without its threads: read, normalise, fold, publish."""

from __future__ import annotations

import random
from functools import lru_cache
from typing import TYPE_CHECKING

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from reach_otel.engine import Engine, Limits
from reach_otel.publish.metrics import Metrics
from reach_otel.span import normalise, redact
from reach_otel.span import read_spans_protobuf as read_spans
from reach_otel.task import Tasks, load_task_text
from tests.bench.workload import TASK, GenAiRun, requests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.proto.trace.v1.trace_pb2 import Span

    from reach_otel.span import Step

FAR_NS = 10**15


class Scorer:
    """Score bodies or steps with the parts that the service uses."""

    def __init__(self, tasks: Tasks, limits: Limits | None = None) -> None:
        self.engine = Engine(tasks, limits or Limits(actions_max=10_000, steps_max=30_000))
        self.metrics = Metrics(tasks)
        self.keep_attributes = self.engine.needs_attributes
        self.now_ns = 0

    @property
    def open_runs(self) -> int:
        return len(self.engine.runs())

    def take(self, body: bytes) -> None:
        """Score one protobuf request."""
        spans, _ = read_spans(body)
        self.feed([redact(s) for span in spans for s in normalise(span, keep_attributes=self.keep_attributes)])

    def feed(self, steps: list[Step]) -> None:
        """Score steps that were read and normalised before."""
        self.now_ns += 1
        self.metrics.publish(self.engine.feed(steps, self.now_ns))

    def finish(self) -> None:
        """Let all verdicts fall due."""
        self.now_ns += FAR_NS
        self.metrics.publish(self.engine.tick(self.now_ns))


@lru_cache
def bench_tasks() -> Tasks:
    """Load the task of the plain GenAI runs."""
    return Tasks([load_task_text(TASK)])


def task_of_size(milestones: int) -> Tasks:
    """Make a task with so many must-milestones, in layers of five, one tool each."""
    lines = ["task: big", "match: {agent: bench_agent}", "k: 1000", "milestones:"]
    for n in range(milestones):
        after = [f"m{d}" for d in range(n - n % 5 - 5, n - n % 5)] if n >= 5 else []
        verify = f"{{tool: tool_{n}, result: {{ok: true}}}}"
        lines.append(f"  - {{id: m{n}, depends_on: [{', '.join(after)}], verify: {verify}}}")
    return Tasks([load_task_text("\n".join(lines))])


def normalised(spans: list[Span]) -> list[Step]:
    """Turn protobuf spans into steps, in order."""
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.extend(spans)
    found, faults = read_spans(bytes(request.SerializeToString()))
    if faults:
        raise ValueError(f"the benchmark's own spans are bad: {faults}")
    return [step for span in found for step in normalise(span)]


def bodies_of_open_runs(runs: int, actions: int) -> Iterator[bytes]:
    """Give requests with runs whose root agent span has not ended yet, 20 runs a request, contents all different."""
    chance = random.Random(1)
    for first in range(0, runs, 20):
        count = min(20, runs - first)
        made = [GenAiRun(actions, history=2, seed=chance.randrange(1 << 30)).spans()[:-1] for _ in range(count)]
        yield from requests(made, batch=10_000)

"""Score spans in tests: no thread, no waiting, no port.

``score_spans(spans, "tasks/")`` scores spans that a test has; ``with collect("tasks/") as collected:`` collects
those of its block. Both give run records as ``reach-otel replay --json`` prints them, by the start of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from reach_otel.api.context import hand
from reach_otel.engine import Engine, Limits, RunClosed
from reach_otel.processor import RunMarker
from reach_otel.span import SdkReader, normalise, redact
from reach_otel.task import Task, Tasks, load

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

AnyTasks = str | Path | Sequence[str | Path | Task]


def score_spans(
    spans: Iterable[ReadableSpan], tasks: AnyTasks = (), *, limits: Limits | None = None
) -> list[dict[str, Any]]:
    """Score ended spans against task files, folders or loaded tasks; each record has its ``steps``.

    :raises TaskError: a task file is wrong.
    """
    engine = Engine(_tasks(tasks), limits, keep_steps=True, live=False)
    reader = SdkReader()
    read = [found for span in spans if (found := reader.span(span)) is not None]
    steps = [redact(step) for span in read for step in normalise(span, keep_attributes=engine.needs_attributes)]
    events = [*engine.feed(steps, 0), *engine.close(0)]
    records = [event.record for event in events if isinstance(event, RunClosed)]
    return [msgspec.to_builtins(record) for record in sorted(records, key=lambda record: (record.start, record.run))]


class Collected:
    """Hold the spans that a block has ended so far. Libraries that take a provider are given ``tracer_provider``."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._exporter = InMemorySpanExporter()
        self.tracer_provider = TracerProvider(shutdown_on_exit=False)
        self.tracer_provider.add_span_processor(RunMarker())
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """Return the ended spans, in the order of their ends."""
        return self._exporter.get_finished_spans()

    def scores(self) -> list[dict[str, Any]]:
        """Score the runs so far as if nothing more came."""
        return score_spans(self.spans, self._tasks)

    def score(self) -> dict[str, Any]:
        """Score the one run of the block; raises ``AssertionError`` when there was none or several."""
        scores = self.scores()
        if len(scores) != 1:
            raise AssertionError(f"one run expected, found {len(scores)}: {[each['task'] for each in scores]}")
        return scores[0]


@contextmanager
def collect(tasks: AnyTasks = ()) -> Iterator[Collected]:
    """Collect the spans of a block: hand-made ones, and those of libraries given ``collected.tracer_provider``."""
    collected = Collected(_tasks(tasks))
    before = hand.tracer
    hand.tracer = collected.tracer_provider.get_tracer("reach_otel")
    try:
        yield collected
    finally:
        hand.tracer = before
        collected.tracer_provider.shutdown()


def _tasks(given: AnyTasks) -> Tasks:
    if isinstance(given, Tasks):
        return given
    if isinstance(given, str | Path):
        return load(given)
    loaded = [each for each in given if isinstance(each, Task)]
    paths = [each for each in given if not isinstance(each, Task)]
    return Tasks([*loaded, *load(paths)] if paths else loaded)

"""Hand ended spans and log records with messages from the SDK to the worker, and mark the spans of an explicit run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from opentelemetry.sdk._logs import LogRecordProcessor
from opentelemetry.sdk.trace import SpanProcessor

from reach_otel.api.context import hand, run_attributes
from reach_otel.names import EVALUATE_SPAN, EVALUATION_SCOPE, EVENT_NAME, GEN_AI_EVENTS

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk._logs import ReadWriteLogRecord
    from opentelemetry.sdk.trace import ReadableSpan, Span

    from reach_otel.worker import Worker


class RunMarker(SpanProcessor):
    """Put the attributes of an explicit run on every span started inside it, whatever library starts it."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Mark the span; costs one attribute look-up while no explicit run was ever started in this process."""
        if hand.runs_used and (attributes := run_attributes(parent_context)):
            span.set_attributes(attributes)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002 - it holds nothing
        """Say yes: older SDKs answer ``None`` here, which keeps later processors from being flushed."""
        return True


class ReachSpanProcessor(RunMarker):
    """Give every ended span to a worker.

    On the agent's thread that is one append to a bounded queue, with no lock and no look at the span; when the queue is
    full the span is dropped and counted. Spans that are recorded but not sampled are scored too. ``end`` is what the
    provider's shutdown calls instead of the worker's.
    """

    def __init__(self, worker: Worker, end: Callable[[], object] | None = None) -> None:
        self._worker = worker
        self._end = end or worker.shutdown
        worker.attach()

    def on_end(self, span: ReadableSpan) -> None:
        if span.name != EVALUATE_SPAN or not _is_own(span):
            self._worker.offer(span)

    def shutdown(self) -> None:
        """Score what is queued, give a verdict on every open run and end, within ``flush_seconds``."""
        self._end()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Wait until all spans that have ended are scored; ``False`` when the time did not suffice."""
        return self._worker.flush(timeout_millis / 1_000)


class ReachLogProcessor(LogRecordProcessor):
    """Give a worker the log records in which some instrumentations put the messages of a model call.

    Only events named ``gen_ai.*`` that belong to a span are taken; the application's own log never enters the queue.
    ``end`` is called when the provider is shut down.
    """

    def __init__(self, worker: Worker, end: Callable[[], object] | None = None) -> None:
        self._worker = worker
        self._end = end

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        record = log_record.log_record
        name = record.event_name or (record.attributes or {}).get(EVENT_NAME)
        is_message = record.span_id and isinstance(name, str) and name.startswith(GEN_AI_EVENTS)
        if is_message and not _is_own(log_record):
            self._worker.offer(log_record)

    def shutdown(self) -> None:
        """Leave the worker to the span processor, which spans still come through."""
        if self._end is not None:
            self._end()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Wait until all that was taken is scored; ``False`` when the time did not suffice."""
        return self._worker.flush(timeout_millis / 1_000)


def _is_own(telemetry: ReadableSpan | ReadWriteLogRecord) -> bool:
    """Say whether the worker itself made it, about a run that is over."""
    scope = telemetry.instrumentation_scope
    return scope is not None and scope.name == EVALUATION_SCOPE

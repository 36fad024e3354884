"""Emit each verdict as log events and one small span, through the providers that it is given (SPEC 10).

Providers are asked for at each verdict, as an application may set its own late. Their batch processors do the waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import opentelemetry.sdk._logs as sdk_logs
from opentelemetry._logs import Logger, LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    Tracer,
    set_span_in_context,
)

from reach_otel import names
from reach_otel.engine.events import Event, Root, RunClosed
from reach_otel.publish.evaluation import attributes, evaluations, identity
from reach_otel.publish.labels import LabelsByTask
from reach_otel.version import version

if TYPE_CHECKING:
    from reach_otel.engine.record import Record
    from reach_otel.publish.variants import Variants
    from reach_otel.task import Tasks

T = TypeVar("T")
ProviderOf = Callable[[], Any]

SCOPE: Final = (names.EVALUATION_SCOPE, version())
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
# Up to 1.38 the SDK takes its own kind of record only, which bears the resource.
_OldRecord: Final[Any] = getattr(sdk_logs, "LogRecord", None)


class Evaluations:
    """Publish verdicts through OpenTelemetry, in the context of each run's root span.

    A run whose root was not sampled, or was never seen, is left out. What a provider raises goes to ``failed`` with the
    number of spans and events that are lost by it, and no further. ``before`` is told of each verdict that is about to
    be emitted. All is made from the event alone, which nobody changes: any one thread may do it.
    """

    def __init__(
        self,
        tasks: Tasks,
        variants: Variants,
        *,
        tracer_provider: ProviderOf,
        logger_provider: ProviderOf,
        failed: Callable[[Exception | None, int], object],
        before: Callable[[Record], object] | None = None,
        remote: bool = False,
    ) -> None:
        self._labels = LabelsByTask(tasks)
        self._variants = variants
        self._tracers: _Latest[Tracer] = _Latest(tracer_provider, lambda made: made.get_tracer(*SCOPE))
        self._event_loggers: _Latest[Logger] = _Latest(logger_provider, lambda made: made.get_logger(*SCOPE))
        self._failed = failed
        self._before = before
        self._remote = remote
        self.takes_spans = True
        """Whether the tracer provider is still at work; else each span counts as failed."""
        self.takes_events = True
        """Whether the logger provider is."""

    def publish(self, events: Sequence[Event]) -> None:
        """Emit the verdicts among the events."""
        for event in events:
            if isinstance(event, RunClosed) and is_told(event):
                self.tell(event)

    def tell(self, event: RunClosed) -> None:
        """Emit one verdict."""
        try:
            if event.root is not None and (context := _context(event.root, remote=self._remote)) is not None:
                self._emit(event, event.root, context)
        except Exception as error:  # noqa: BLE001 - the scorer goes on, and so does the host
            self._failed(error, 1)

    def parts(self, event: RunClosed) -> int:
        """Say of how many spans and events a verdict is made, as far as there are providers for them."""
        try:
            number = int(self._tracers.get() is not None)
            if self._event_loggers.get() is not None:
                number += sum(1 for _ in evaluations(event.record, self._labels[event.record.task]))
        except Exception:  # noqa: BLE001 - a provider that cannot be had would not have taken it
            return 1
        return number

    def _emit(self, event: RunClosed, root: Root, context: Context) -> None:
        record = event.record
        labels = self._labels[record.task]
        variant = labels.variant or self._variants.label(record.variant, event.variant_by)
        if self._before is not None:
            self._before(record)
        try:
            if (tracer := self._tracers.get()) is not None:
                if self.takes_spans:
                    _emit_span(tracer, root, context, attributes(record, root.trace_id, labels, variant))
                else:
                    self._failed(None, 1)
        except Exception as error:  # noqa: BLE001 - the events are told all the same
            self._failed(error, 1)
        scores = list(evaluations(record, labels))
        try:
            if (event_logger := self._event_loggers.get()) is None:
                return
            whose = identity(record, root.trace_id, labels, variant)
            while scores and self.takes_events:
                one = scores[0]
                told = {
                    names.EVALUATION_NAME: one.name,
                    names.EVALUATION_SCORE_VALUE: one.value,
                    names.EVALUATION_SCORE_LABEL: one.label,
                    names.EVALUATION_EXPLANATION: one.explanation,
                    **whose,
                }
                _emit_event(event_logger, root.end_ns, context, told)
                del scores[0]
        except Exception as error:  # noqa: BLE001
            self._failed(error, len(scores))
        else:
            if scores:
                self._failed(None, len(scores))


def is_told(event: RunClosed) -> bool:
    """Say whether a store may have the run's spans: its root was seen, and not left out by sampling."""
    return event.root is not None and event.root.sampled is not False


class _Latest(Generic[T]):
    """Hold what was made from a provider, and make it anew when there is another one."""

    def __init__(self, provider: ProviderOf, make: Callable[[Any], T]) -> None:
        self._provider = provider
        self._make = make
        self._made: tuple[Any, T] | None = None

    def get(self) -> T | None:
        provider = self._provider()
        if provider is None:
            return None
        if self._made is None or self._made[0] is not provider:
            self._made = (provider, self._make(provider))
        return self._made[1]


def _context(root: Root, *, remote: bool) -> Context | None:
    """Make a context of nothing but the root span; ``None`` when its ids are none."""
    try:
        span = SpanContext(int(root.trace_id, 16), int(root.span_id, 16), is_remote=remote, trace_flags=_SAMPLED)
    except ValueError:
        return None
    return set_span_in_context(NonRecordingSpan(span), Context()) if span.is_valid else None


def _emit_span(tracer: Tracer, root: Root, context: Context, told: dict[str, Any]) -> None:
    """Start and end the span at the end of the root, so that it does not distort the view of the trace."""
    span = tracer.start_span(names.EVALUATE_SPAN, context=context, attributes=told, start_time=root.end_ns)
    span.end(root.end_ns)


def _emit_event(event_logger: Logger, time_ns: int, context: Context, told: dict[str, Any]) -> None:
    fields: dict[str, Any] = {
        "timestamp": time_ns,
        "context": context,
        "severity_number": SeverityNumber.INFO,
        "severity_text": "INFO",
        "event_name": names.EVALUATION_RESULT_EVENT,
        "attributes": told,
    }
    if _OldRecord is not None:
        event_logger.emit(_OldRecord(resource=getattr(event_logger, "resource", None), **fields))
    else:
        event_logger.emit(LogRecord(**fields))

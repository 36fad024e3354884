"""Emit each verdict as log events and one small span, through the providers that it is given (SPEC 10).

Providers are asked for at each verdict, as an application may set its own late. Their batch processors do the waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
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
from reach_otel.publish.labels import TaskLabels

if TYPE_CHECKING:
    from reach_otel.engine.record import Record
    from reach_otel.publish.variants import Variants
    from reach_otel.task import Tasks

T = TypeVar("T")
ProviderOf = Callable[[], Any]

_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
# Up to 1.38 the SDK takes its own kind of record only, which bears the resource.
_OldRecord: Final[Any] = getattr(sdk_logs, "LogRecord", None)


class Evaluations:
    """Publish verdicts through OpenTelemetry, on the scorer's thread, in the context of each run's root span.

    A run whose root was not sampled, or was never seen, is left out. What a provider raises goes to ``failed`` and no
    further. ``before`` is told of each verdict that is about to be emitted.
    """

    def __init__(
        self,
        tasks: Tasks,
        variants: Variants,
        *,
        tracer_provider: ProviderOf,
        logger_provider: ProviderOf,
        failed: Callable[[Exception], object],
        before: Callable[[Record], object] | None = None,
        remote: bool = False,
    ) -> None:
        self._labels = {task.name: TaskLabels(task) for task in tasks}
        self._labels[names.UNMATCHED] = TaskLabels.unmatched(tasks)
        self._variants = variants
        self._tracers: _Latest[Tracer] = _Latest(tracer_provider, lambda made: made.get_tracer(*scope()))
        self._loggers: _Latest[Logger] = _Latest(logger_provider, lambda made: made.get_logger(*scope()))
        self._failed = failed
        self._before = before
        self._remote = remote

    def publish(self, events: Sequence[Event]) -> None:
        """Emit the verdicts among the events."""
        for event in events:
            if isinstance(event, RunClosed) and event.root is not None and event.root.sampled is not False:
                try:
                    context = _context(event.root, remote=self._remote)
                    if context is not None:
                        self._emit(event, event.root, context)
                except Exception as error:  # noqa: BLE001 - the scorer goes on, and so does the host
                    self._failed(error)

    def _emit(self, event: RunClosed, root: Root, context: Context) -> None:
        record = event.record
        labels = self._labels.get(record.task) or self._labels[names.UNMATCHED]
        variant = labels.variant or self._variants.label(record.variant, event.variant_by)
        if self._before is not None:
            self._before(record)
        try:
            if (tracer := self._tracers.get()) is not None:
                _emit_span(tracer, root, context, attributes(record, labels, variant))
        except Exception as error:  # noqa: BLE001 - the events are told all the same
            self._failed(error)
        if (logger := self._loggers.get()) is not None:
            whose = identity(record, labels, variant)
            for one in evaluations(record, labels):
                told = {
                    names.EVALUATION_NAME: one.name,
                    names.EVALUATION_SCORE_VALUE: one.value,
                    names.EVALUATION_SCORE_LABEL: one.label,
                    names.EVALUATION_EXPLANATION: one.explanation,
                    **whose,
                }
                _emit_event(logger, root.end_ns, context, told)


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


def _emit_event(logger: Logger, time_ns: int, context: Context, told: dict[str, Any]) -> None:
    fields: dict[str, Any] = {
        "timestamp": time_ns,
        "context": context,
        "severity_number": SeverityNumber.INFO,
        "severity_text": "INFO",
        "event_name": names.EVALUATION_RESULT_EVENT,
        "attributes": told,
    }
    if _OldRecord is not None:
        logger.emit(_OldRecord(resource=getattr(logger, "resource", None), **fields))
    else:
        logger.emit(LogRecord(**fields))


def scope() -> tuple[str, str]:
    """Name the instrumentation scope and its version."""
    try:
        return names.EVALUATION_SCOPE, version("reach-otel")
    except PackageNotFoundError:  # run from a checkout
        return names.EVALUATION_SCOPE, "0"

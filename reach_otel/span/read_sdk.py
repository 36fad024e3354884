"""Read ended spans and log records of the OpenTelemetry SDK, in the same process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reach_otel.names import EVENT_NAME
from reach_otel.span.bounds import BadSpan, bounded, text, times
from reach_otel.span.record import (
    DEFAULT_LIMITS,
    NO_RESOURCE,
    TOO_MANY,
    UNREADABLE,
    ZERO_ID,
    Event,
    Faults,
    Limits,
    LogRecord,
    Resource,
    Span,
    resource_of,
)

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

RESOURCES_MAX = 64


class SdkReader:
    """Read SDK spans one by one; remembers the resources it has met, of which a process has one or two.

    Not safe for several threads: it is the worker's.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._resources: dict[int, tuple[Any, Resource]] = {}
        self.faults = Faults()

    def span(self, raw: ReadableSpan) -> Span | None:
        """Read one ended span; ``None`` when it is bad, which :attr:`faults` then counts."""
        try:
            return self._span(raw)
        except BadSpan as bad:
            self.faults[bad.reason] += 1
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError):
            self.faults[UNREADABLE] += 1
        return None

    def log(self, raw: Any) -> LogRecord | None:
        """Read one log record of the SDK; ``None`` when it belongs to no span or is bad."""
        try:
            return self._log(raw)
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError):
            self.faults[UNREADABLE] += 1
        return None

    def _span(self, raw: ReadableSpan) -> Span:
        limits, faults = self._limits, self.faults
        context, parent, status = raw.context, raw.parent, raw.status
        if context is None or not context.trace_id or not context.span_id:
            raise BadSpan(ZERO_ID)
        start_ns, end_ns = times(raw.start_time or 0, raw.end_time or 0, faults)
        events = raw.events
        if len(events) > limits.events_max:
            faults[TOO_MANY] += 1
            events = events[: limits.events_max]
        return Span(
            trace_id=f"{context.trace_id:032x}",
            span_id=f"{context.span_id:016x}",
            name=raw.name[: limits.name_chars_max],
            start_ns=start_ns,
            end_ns=end_ns,
            attributes=self._attributes(raw.attributes),
            parent_id=f"{parent.span_id:016x}" if parent is not None else None,
            parent_remote=parent.is_remote if parent is not None else None,
            kind=raw.kind.value + 1,  # the SDK counts from 0, OTLP from 1
            status=status.status_code.value,
            status_message=text(status.description or "", limits, faults),
            events=tuple(Event(event.name, event.timestamp, self._attributes(event.attributes)) for event in events)
            if events
            else (),
            links=tuple((f"{link.context.trace_id:032x}", f"{link.context.span_id:016x}") for link in raw.links)
            if raw.links
            else (),
            resource=self._resource(raw.resource),
            scope=raw.instrumentation_scope.name if raw.instrumentation_scope is not None else "",
            sampled=context.trace_flags.sampled,
        )

    def _log(self, raw: Any) -> LogRecord | None:
        record = getattr(raw, "log_record", raw)
        if not record.trace_id or not record.span_id:
            return None
        attributes = self._attributes(record.attributes)
        scope = getattr(raw, "instrumentation_scope", None)
        return LogRecord(
            trace_id=f"{record.trace_id:032x}",
            span_id=f"{record.span_id:016x}",
            name=getattr(record, "event_name", None) or str(attributes.get(EVENT_NAME) or ""),
            time_ns=record.timestamp or getattr(record, "observed_timestamp", None) or 0,
            attributes=attributes,
            body=bounded(_plain(record.body), self._limits, self.faults),
            resource=self._resource(getattr(raw, "resource", None) or getattr(record, "resource", None)),
            scope=scope.name if scope is not None else "",
        )

    def _resource(self, raw: Any) -> Resource:
        if raw is None:
            return NO_RESOURCE
        known = self._resources.get(id(raw))
        if known is None:
            if len(self._resources) >= RESOURCES_MAX:
                self._resources.clear()
            # the raw resource is kept with it, so that its id() cannot be taken by another
            known = self._resources[id(raw)] = (raw, resource_of(self._attributes(raw.attributes)))
        return known[1]

    def _attributes(self, raw: Mapping[str, Any] | None) -> dict[str, Any]:
        if not raw:
            return {}
        limits = self._limits
        chars_max = limits.attribute_chars_max
        attributes: dict[str, Any] = {}
        for key, value in raw.items():
            if type(value) is str and len(value) <= chars_max:
                attributes[key] = value
            else:
                attributes[key] = bounded(_plain(value), limits, self.faults)
        if len(attributes) > limits.attributes_max:
            self.faults[TOO_MANY] += 1
            attributes = dict(list(attributes.items())[: limits.attributes_max])
        return attributes


def _plain(value: Any) -> Any:
    """Turn the SDK's read-only mappings into dicts, which :func:`bounded` knows."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value

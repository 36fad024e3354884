"""Read OTLP protobuf export requests."""

from __future__ import annotations

from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as ProtoLog
from opentelemetry.proto.logs.v1.logs_pb2 import ResourceLogs, ScopeLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan

from reach_otel.errors import InputError
from reach_otel.names import EVENT_NAME
from reach_otel.span.bounds import BadSpan, bounded, parent_remote, sampled, text, times
from reach_otel.span.mend_proto import Descent, mend
from reach_otel.span.record import (
    BAD_ID,
    DEFAULT_LIMITS,
    INVALID_UTF8,
    STATUS_UNSET,
    TOO_DEEP,
    TOO_MANY,
    ZERO_ID,
    Event,
    Faults,
    Limits,
    LogRecord,
    Resource,
    Span,
    resource_of,
)

T = TypeVar("T", bound=Message)

NO_SPAN = bytes(8)

_DESCENT: Descent = {
    ExportTraceServiceRequest: {1: ResourceSpans},
    ResourceSpans: {2: ScopeSpans},
    ScopeSpans: {2: ProtoSpan},
    ExportLogsServiceRequest: {1: ResourceLogs},
    ResourceLogs: {2: ScopeLogs},
    ScopeLogs: {2: ProtoLog},
    ProtoSpan: {},
    ProtoLog: {},
}


def read_spans(body: bytes, limits: Limits = DEFAULT_LIMITS) -> tuple[list[Span], Faults]:
    """Read the spans of one serialised ``ExportTraceServiceRequest``.

    Raises:
        InputError: the bytes are no such message.
    """
    faults = Faults()
    spans: list[Span] = []
    for group in _parse(body, ExportTraceServiceRequest, faults).resource_spans:
        resource = resource_of(_attributes(group.resource.attributes, limits, faults))
        for scoped in group.scope_spans:
            scope = scoped.scope.name
            for item in scoped.spans:
                try:
                    spans.append(_span(item, resource, scope, limits, faults))
                except BadSpan as bad:
                    faults[bad.reason] += 1
    return spans, faults


def read_logs(body: bytes, limits: Limits = DEFAULT_LIMITS) -> tuple[list[LogRecord], Faults]:
    """Read the log records of one serialised ``ExportLogsServiceRequest``; those that belong to no span are left out.

    Raises:
        InputError: the bytes are no such message.
    """
    faults = Faults()
    records: list[LogRecord] = []
    for group in _parse(body, ExportLogsServiceRequest, faults).resource_logs:
        resource = resource_of(_attributes(group.resource.attributes, limits, faults))
        for scoped in group.scope_logs:
            scope = scoped.scope.name
            for item in scoped.log_records:
                if item.trace_id and item.span_id:
                    try:
                        records.append(_log(item, resource, scope, limits, faults))
                    except BadSpan as bad:
                        faults[bad.reason] += 1
    return records, faults


def _parse(body: bytes, kind: type[T], faults: Faults) -> T:
    try:
        return kind.FromString(body)
    except DecodeError as error:
        try:
            mended, lost = mend(body, kind, _DESCENT)
            request = kind.FromString(mended)
        except (ValueError, DecodeError):
            raise InputError(f"OTLP protobuf body: {error}; expected one {kind.__name__}") from None
        if not mended:
            raise InputError(f"OTLP protobuf body: nothing in it can be read as {kind.__name__}") from None
        faults[INVALID_UTF8] += lost
        return request


def _span(raw: ProtoSpan, resource: Resource, scope: str, limits: Limits, faults: Faults) -> Span:
    start_ns, end_ns = times(raw.start_time_unix_nano, raw.end_time_unix_nano, faults)
    parent, flags = raw.parent_span_id, raw.flags
    status, message = STATUS_UNSET, ""
    if raw.HasField("status"):
        status, message = raw.status.code, text(raw.status.message, limits, faults)
    return Span(  # by position, in the order of declaration, for speed
        _identifier(raw.trace_id, 16),
        _identifier(raw.span_id, 8),
        raw.name[: limits.name_chars_max],
        start_ns,
        end_ns,
        _attributes(raw.attributes, limits, faults),
        _identifier(parent, 8) if parent and parent != NO_SPAN else None,
        parent_remote(flags),
        raw.kind,
        status,
        message,
        _events(raw.events, limits, faults) if raw.events else (),
        tuple((link.trace_id.hex(), link.span_id.hex()) for link in raw.links) if raw.links else (),
        resource,
        scope,
        sampled(flags) if flags else None,
    )


def _events(raw: Any, limits: Limits, faults: Faults) -> tuple[Event, ...]:
    if len(raw) > limits.events_max:
        faults[TOO_MANY] += 1
        raw = raw[: limits.events_max]
    return tuple(
        Event(event.name, event.time_unix_nano, _attributes(event.attributes, limits, faults)) for event in raw
    )


def _log(raw: ProtoLog, resource: Resource, scope: str, limits: Limits, faults: Faults) -> LogRecord:
    attributes = _attributes(raw.attributes, limits, faults)
    return LogRecord(
        trace_id=_identifier(raw.trace_id, 16),
        span_id=_identifier(raw.span_id, 8),
        name=raw.event_name or str(attributes.get(EVENT_NAME) or ""),
        time_ns=raw.time_unix_nano or raw.observed_time_unix_nano,
        attributes=attributes,
        body=_plain(raw.body, limits, faults) if raw.HasField("body") else None,
        resource=resource,
        scope=scope,
    )


def _identifier(raw: bytes, size: int) -> str:
    if len(raw) != size:
        raise BadSpan(BAD_ID)
    digits = raw.hex()
    if digits.strip("0"):
        return digits
    raise BadSpan(ZERO_ID)


def _attributes(raw: Any, limits: Limits, faults: Faults) -> dict[str, Any]:
    if len(raw) > limits.attributes_max:
        faults[TOO_MANY] += 1
        raw = raw[: limits.attributes_max]
    chars_max = limits.attribute_chars_max
    attributes: dict[str, Any] = {}
    pair: KeyValue
    for pair in raw:
        value = pair.value
        # an absent string reads as "" and an absent number as 0: to try costs far less than to ask which kind is there
        string = value.string_value
        if string:
            attributes[pair.key] = string if len(string) <= chars_max else text(string, limits, faults)
        else:
            attributes[pair.key] = value.int_value or _plain(value, limits, faults)
    return attributes


def _plain(value: AnyValue, limits: Limits, faults: Faults) -> Any:
    kind = value.WhichOneof("value")
    if kind in _SCALARS:
        return getattr(value, kind)
    try:
        return bounded(_any(value), limits, faults)
    except RecursionError:
        faults[TOO_DEEP] += 1
        return None


_SCALARS = frozenset(("bool_value", "double_value", "int_value"))


def _any(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [item.string_value or _any(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {item.key: _any(item.value) for item in value.kvlist_value.values}
    return getattr(value, kind) if kind is not None else None

"""Read OTLP/JSON export requests, tolerant of the spellings that real senders use."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from reach_otel.errors import InputError
from reach_otel.names import EVENT_NAME
from reach_otel.span.bounds import BadSpan, bounded, identifier, parent_remote, sampled, text, times
from reach_otel.span.record import (
    DEFAULT_LIMITS,
    INVALID_UTF8,
    TOO_DEEP,
    TOO_MANY,
    UNREADABLE,
    Event,
    Faults,
    Limits,
    LogRecord,
    Resource,
    Span,
    resource_of,
)

KINDS = {"UNSPECIFIED": 0, "INTERNAL": 1, "SERVER": 2, "CLIENT": 3, "PRODUCER": 4, "CONSUMER": 5}
STATUSES = {"UNSET": 0, "OK": 1, "ERROR": 2}

T = TypeVar("T", Span, LogRecord)

_decode = msgspec.json.Decoder().decode


def read_spans(body: bytes | str, limits: Limits = DEFAULT_LIMITS) -> tuple[list[Span], Faults]:
    """Read the spans of one ``ExportTraceServiceRequest``; a request without spans gives none.

    Ids may be hex or base64, 64-bit integers strings or numbers, keys camel or snake case.

    Raises:
        InputError: the body as a whole is no JSON object of that shape.
    """
    return _read(body, limits, "resourceSpans", "scopeSpans", "spans", _span)


def read_logs(body: bytes | str, limits: Limits = DEFAULT_LIMITS) -> tuple[list[LogRecord], Faults]:
    """Read the log records of one ``ExportLogsServiceRequest``; those that belong to no span are left out uncounted.

    Raises:
        InputError: the body as a whole is no JSON object of that shape.
    """
    return _read(body, limits, "resourceLogs", "scopeLogs", "logRecords", _log)


def _read(
    body: bytes | str,
    limits: Limits,
    resources: str,
    scopes: str,
    items: str,
    build: Callable[[dict[str, Any], Resource, str, Limits, Faults], T | None],
) -> tuple[list[T], Faults]:
    faults = Faults()
    request = _request(body, faults)
    found: list[T] = []
    for group in _list(request, resources):
        scoped_groups = _list(group, scopes)
        resource = resource_of(_resource_attributes(group, limits, faults))
        for scoped in scoped_groups:
            found_items = _list(scoped, items)
            scope = scoped.get("scope")
            scope = str(scope.get("name") or "") if isinstance(scope, dict) else ""
            for item in found_items:
                try:
                    record = build(item, resource, scope, limits, faults)
                except BadSpan as bad:
                    faults[bad.reason] += 1
                except (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError):
                    faults[UNREADABLE] += 1
                else:
                    if record is not None:
                        found.append(record)
    return found, faults


def _request(body: bytes | str, faults: Faults) -> dict[str, Any]:
    try:
        request = _decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        if not isinstance(body, bytes):
            raise InputError(f"OTLP/JSON body: {error}; expected one JSON object") from None
        try:
            body.decode()
        except UnicodeDecodeError:
            faults[INVALID_UTF8] += 1
            return _request(body.decode(errors="replace"), faults)
        raise InputError(f"OTLP/JSON body: {error}; expected one JSON object") from None
    if not isinstance(request, dict):
        found = type(request).__name__
        raise InputError(f"OTLP/JSON body: found {found}, expected an object with resourceSpans or resourceLogs")
    return request


def _resource_attributes(group: dict[str, Any], limits: Limits, faults: Faults) -> dict[str, Any]:
    """Read what describes the sender; if it cannot be read, the spans are still those of someone."""
    resource = group.get("resource")
    try:
        return _attributes(resource.get("attributes"), limits, faults) if isinstance(resource, dict) else {}
    except (TypeError, ValueError, KeyError, AttributeError):
        return {}


def _get(mapping: dict[str, Any], key: str) -> Any:
    """Get a value by its camel-case key, else by its snake-case one."""
    value = mapping.get(key)
    return mapping.get(_SNAKE.get(key, key)) if value is None else value


_CAMEL = (
    "resourceSpans scopeSpans resourceLogs scopeLogs logRecords traceId spanId parentSpanId startTimeUnixNano "
    "endTimeUnixNano timeUnixNano observedTimeUnixNano eventName stringValue boolValue intValue doubleValue arrayValue "
    "kvlistValue bytesValue"
)
_SNAKE = {name: "".join("_" + c.lower() if c.isupper() else c for c in name) for name in _CAMEL.split()}


def _list(mapping: Any, key: str) -> Iterator[Any]:
    """Iterate over a list of objects; anything else in the place of the list makes the body malformed."""
    if not isinstance(mapping, dict):
        raise InputError(f"OTLP/JSON body: found {type(mapping).__name__} around {key}, expected an object")
    value = _get(mapping, key)
    if value is None:
        return iter(())
    if not isinstance(value, list):
        raise InputError(f"OTLP/JSON body: {key} is {type(value).__name__}, expected a list")
    return iter(value)


def _span(raw: dict[str, Any], resource: Resource, scope: str, limits: Limits, faults: Faults) -> Span:
    start_ns, end_ns = times(int(_get(raw, "startTimeUnixNano") or 0), int(_get(raw, "endTimeUnixNano") or 0), faults)
    parent = _get(raw, "parentSpanId")
    status = raw.get("status") or {}
    flags = int(raw.get("flags") or 0)
    events = raw.get("events") or ()
    if len(events) > limits.events_max:
        faults[TOO_MANY] += 1
        events = events[: limits.events_max]
    return Span(
        trace_id=identifier(_get(raw, "traceId"), 32),
        span_id=identifier(_get(raw, "spanId"), 16),
        name=str(raw.get("name") or "")[: limits.name_chars_max],
        start_ns=start_ns,
        end_ns=end_ns,
        attributes=_attributes(raw.get("attributes"), limits, faults),
        parent_id=identifier(parent, 16) if parent and parent.strip("0") else None,
        parent_remote=parent_remote(flags),
        kind=_enum(raw.get("kind"), KINDS, "SPAN_KIND_"),
        status=_enum(status.get("code"), STATUSES, "STATUS_CODE_"),
        status_message=text(str(status.get("message") or ""), limits, faults),
        events=tuple(
            Event(
                str(event.get("name") or ""),
                int(_get(event, "timeUnixNano") or 0),
                _attributes(event.get("attributes"), limits, faults),
            )
            for event in events
        ),
        links=tuple((str(_get(link, "traceId")), str(_get(link, "spanId"))) for link in raw.get("links") or ()),
        resource=resource,
        scope=scope,
        sampled=sampled(flags),
    )


def _log(raw: dict[str, Any], resource: Resource, scope: str, limits: Limits, faults: Faults) -> LogRecord | None:
    if not _get(raw, "traceId") or not _get(raw, "spanId"):
        return None
    attributes = _attributes(raw.get("attributes"), limits, faults)
    body = raw.get("body")
    return LogRecord(
        trace_id=identifier(_get(raw, "traceId"), 32),
        span_id=identifier(_get(raw, "spanId"), 16),
        name=str(_get(raw, "eventName") or attributes.get(EVENT_NAME) or ""),
        time_ns=int(_get(raw, "timeUnixNano") or _get(raw, "observedTimeUnixNano") or 0),
        attributes=attributes,
        body=bounded(_value(body), limits, faults) if body else None,
        resource=resource,
        scope=scope,
    )


def _enum(value: Any, names: Mapping[str, int], prefix: str) -> int:
    if isinstance(value, str):
        return names.get(value.removeprefix(prefix), 0) if not value.isdigit() else int(value)
    return value if isinstance(value, int) else 0


def _attributes(raw: Any, limits: Limits, faults: Faults) -> dict[str, Any]:
    if not raw:
        return {}
    if len(raw) > limits.attributes_max:
        faults[TOO_MANY] += 1
        raw = raw[: limits.attributes_max]
    attributes: dict[str, Any] = {}
    chars_max = limits.attribute_chars_max
    for pair in raw:
        value = pair.get("value")
        if value is None:
            continue
        string = value.get("stringValue")
        if type(string) is str and len(string) <= chars_max:
            attributes[pair["key"]] = string
            continue
        try:
            attributes[pair["key"]] = bounded(_value(value), limits, faults)
        except RecursionError:
            faults[TOO_DEEP] += 1
    return attributes


def _value(value: Any) -> Any:
    """Give the plain Python value of an OTLP ``AnyValue``."""
    if not isinstance(value, dict):
        return value
    for key, read in _VALUES:
        found = _get(value, key)
        if found is not None:
            return read(found)
    return None


_VALUES: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("stringValue", str),
    ("intValue", int),
    ("boolValue", bool),
    ("doubleValue", float),
    ("arrayValue", lambda value: [_value(item) for item in value.get("values") or ()]),
    ("kvlistValue", lambda value: {str(item["key"]): _value(item.get("value")) for item in value.get("values") or ()}),
    ("bytesValue", b64decode),
)

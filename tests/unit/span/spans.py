"""Make foreign spans and log records in one line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reach_otel.span import Event, LogRecord, Span, Step, normalise

ERROR = 2


def span(attributes: Mapping[str, Any], name: str = "span", **fields: Any) -> Span:
    """Make a span of 5 ms; every field of ``Span`` can be given by name."""
    made: dict[str, Any] = {
        "trace_id": "a" * 32,
        "span_id": "b" * 16,
        "start_ns": 1_000_000_000,
        "end_ns": 1_005_000_000,
        "parent_id": "c" * 16,
    }
    return Span(name=name, attributes=dict(attributes), **(made | fields))


def step(attributes: Mapping[str, Any], name: str = "span", **fields: Any) -> Step:
    """Normalise a span made of these attributes."""
    (made,) = normalise(span(attributes, name, **fields))
    return made


def record(name: str, body: Any = None, attributes: Mapping[str, Any] | None = None) -> LogRecord:
    """Make a log record that belongs to the span ``bbb…``."""
    return LogRecord("a" * 32, "b" * 16, name, 1_002_000_000, dict(attributes or {}), body)


def raised(kind: str, message: str) -> Event:
    """Make an exception event."""
    return Event("exception", 1_004_000_000, {"exception.type": kind, "exception.message": message})


def text(value: Any) -> str:
    """Write a value as JSON text, as instrumentations do."""
    return json.dumps(value)

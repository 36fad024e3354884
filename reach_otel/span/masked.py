"""Read from a span how many of its values a Collector masked: its ``redaction`` processor leaves a summary.

With ``summary: info`` or ``debug`` that processor adds up, on each set of attributes it looked through, how many values
it masked; those on a resource belong to no single span and are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from reach_otel.names import REDACTION_BODY_MASKED, REDACTION_MASKED

if TYPE_CHECKING:
    from reach_otel.span.record import LogRecord, Span

MASKED_MAX: Final = 10_000  # values of one span; anybody can write a summary


def masked_of(span: Span) -> int:
    """Add up the summaries on a span and its events."""
    count = _count(span.attributes, REDACTION_MASKED) if REDACTION_MASKED in span.attributes else 0
    for event in span.events:
        if REDACTION_MASKED in event.attributes:
            count += _count(event.attributes, REDACTION_MASKED)
    return min(count, MASKED_MAX)


def masked_of_log(record: LogRecord) -> int:
    """Add up the summaries on a log record, of its attributes and of its body."""
    count = sum(_count(record.attributes, key) for key in (REDACTION_MASKED, REDACTION_BODY_MASKED))
    return min(count, MASKED_MAX)


def _count(attributes: Mapping[str, Any], key: str) -> int:
    value = attributes.get(key)
    return value if type(value) is int and value > 0 else 0

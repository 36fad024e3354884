"""Check ids and times and cut values to their limits, alike for every reader."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from reach_otel.span.record import (
    BAD_ID,
    NEGATIVE_DURATION,
    NO_TIME,
    TOO_DEEP,
    TOO_LONG,
    TOO_MANY,
    ZERO_ID,
    Faults,
    Limits,
)

FLAG_SAMPLED, FLAGS_OF_TRACE = 0x01, 0xFF
FLAG_HAS_REMOTE, FLAG_REMOTE = 0x100, 0x200
TIME_NS_MAX = 2**63 - 1


class BadSpan(Exception):
    """Carry the reason why one span is left out, out of the depths of a reader; never leaves this package."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def identifier(value: object, digits: int) -> str:
    """Give an id as lower-case hex digits; it may come as hex, or as base64 from a plain protobuf-to-JSON mapping.

    Raises:
        BadSpan: the id is all zeros, has a wrong length, or is no id at all.
    """
    if not isinstance(value, str):
        raise BadSpan(BAD_ID)
    if len(value) != digits:
        try:
            value = b64decode(value, validate=True).hex()
        except ValueError:
            raise BadSpan(BAD_ID) from None
        if len(value) != digits:
            raise BadSpan(BAD_ID)
    else:
        value = value.lower()
        if value.strip("0123456789abcdef"):
            raise BadSpan(BAD_ID)
    if not value.strip("0"):
        raise BadSpan(ZERO_ID)
    return value


def times(start_ns: int, end_ns: int, faults: Faults) -> tuple[int, int]:
    """Check the times of a span; one that ends before it starts is taken to last no time, at its end.

    Raises:
        BadSpan: there is no end, or a time lies outside of what can be a time.
    """
    if not 0 < end_ns <= TIME_NS_MAX or not 0 <= start_ns <= TIME_NS_MAX:
        raise BadSpan(NO_TIME)
    if end_ns < start_ns:
        faults[NEGATIVE_DURATION] += 1
        return end_ns, end_ns
    return start_ns or end_ns, end_ns


def parent_remote(flags: int) -> bool | None:
    """Read bits 8 and 9 of the OTLP flags: whether the parent is in another process, where the sender says so."""
    return bool(flags & FLAG_REMOTE) if flags & FLAG_HAS_REMOTE else None


def sampled(flags: int) -> bool | None:
    """Read the trace flags in the low byte of the OTLP flags: whether the span was sampled, where the sender says so.

    Many exporters leave that byte at zero whatever the span was, so zero says nothing.
    """
    if flags & FLAG_SAMPLED:
        return True
    return False if flags & FLAGS_OF_TRACE else None


def text(value: str, limits: Limits, faults: Faults) -> str:
    """Cut a text to the limit and count the cut."""
    if len(value) > limits.attribute_chars_max:
        faults[TOO_LONG] += 1
        return value[: limits.attribute_chars_max]
    return value


def bounded(value: Any, limits: Limits, faults: Faults, depth: int = 0) -> Any:
    """Cut a plain Python value to the limits of text, items and depth."""
    if isinstance(value, str):
        return text(value, limits, faults)
    if isinstance(value, bytes):
        return text(value.hex(), limits, faults)
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth >= limits.attribute_depth_max:
        faults[TOO_DEEP] += 1
        return None
    if isinstance(value, dict):
        if len(value) > limits.array_items_max:
            faults[TOO_MANY] += 1
            value = dict(list(value.items())[: limits.array_items_max])
        return {str(key): bounded(item, limits, faults, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        if len(value) > limits.array_items_max:
            faults[TOO_MANY] += 1
            value = value[: limits.array_items_max]
        return [bounded(item, limits, faults, depth + 1) for item in value]
    return text(str(value), limits, faults)

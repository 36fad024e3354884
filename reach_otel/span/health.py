"""Say whether a span went well, and if not, why: status, exception, error type, flags, structure and text all count."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from reach_otel import names as n
from reach_otel.span.errors_text import (
    Steering,
    control_flow,
    failed_by_structure,
    failed_by_text,
    first_line,
    from_exception,
    from_status,
    reason_of,
)
from reach_otel.span.fields import FAILURE_FLAGS
from reach_otel.span.record import STATUS_ERROR, Span
from reach_otel.span.unwrap import Outcome

Patterns = tuple[re.Pattern[str], ...]


class Health(NamedTuple):
    """Whether a span went well, why not, and whether what looks like an error only steers the run."""

    ok: bool = True
    error: str | None = None
    steering: Steering | None = None
    by_text: bool = False  # failed, but only by the words of the result


WELL = Health()


def health_of(span: Span) -> Health:
    """Judge an agent or model: an exception it got over is no failure of its own."""
    kind = span.attributes.get(n.ERROR_TYPE)
    if span.status != STATUS_ERROR and kind is None:
        return WELL
    raised_type, raised_message = _raised(span)
    steering = control_flow((str(kind or ""), raised_type), raised_message or span.status_message)
    if steering is not None:
        return Health(steering=steering)
    return Health(False, _error(span, kind, raised_type, raised_message, None))


def health_of_call(span: Span, outcome: Outcome | None, patterns: Patterns) -> Health:
    """Judge a tool call, also by what it returned (``None``: nothing that was told)."""
    attributes = span.attributes
    kind = attributes.get(n.ERROR_TYPE)
    raised_type = raised_message = ""
    by_text = False
    value = outcome.value if outcome is not None else None
    failed = span.status == STATUS_ERROR or kind is not None
    if failed or span.events:
        raised_type, raised_message = _raised(span)
        failed = failed or bool(raised_type or raised_message)
    if failed:
        steering = control_flow((str(kind or ""), raised_type), raised_message or span.status_message)
        if steering is not None:
            return Health(steering=steering)
    elif outcome is not None:
        by_text = type(value) is str and not outcome.failed and failed_by_text(value, patterns)
        failed = outcome.failed or by_text or (type(value) is not str and failed_by_structure(value))
    flagged = _is_flagged(attributes)
    if not failed and not flagged:
        return WELL
    error = _error(span, kind, raised_type, raised_message, value)
    return Health(ok=False, error=error, by_text=by_text and not flagged)


def _raised(span: Span) -> tuple[str, str]:
    """Give type and message of the first exception event; both empty when there is none."""
    for event in span.events:
        if event.name == n.EXCEPTION_EVENT:
            held = event.attributes
            return str(held.get(n.EXCEPTION_TYPE) or "Exception"), str(held.get(n.EXCEPTION_MESSAGE) or "")
    return "", ""


def _is_flagged(attributes: Mapping[str, Any]) -> bool:
    for key, bad in FAILURE_FLAGS:
        value = attributes.get(key)
        if value is not None and type(value) in (str, bool) and value in bad:
            return True
    return False


def _error(span: Span, kind: Any, raised_type: str, raised_message: str, value: Any) -> str | None:
    """Choose the words that tell most: the exception's, the status message's, the result's, at last the bare type."""
    status = from_status(span.status_message)
    return (
        (from_exception(raised_type, raised_message) if raised_message else None)
        or (status if status is not None and status != kind and not status.isupper() else None)
        or reason_of(value)
        or status
        or (first_line(str(kind)) if kind is not None else None)
        or (from_exception(raised_type, "") if raised_type else None)
    )

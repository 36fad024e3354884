"""Hold a foreign span or log record as it came: ids, times, attributes, nothing interpreted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from reach_otel.names import REACH_TASK, REACH_VARIANT, SERVICE_NAME, SERVICE_VERSION

STATUS_UNSET, STATUS_OK, STATUS_ERROR = 0, 1, 2

ZERO_ID = "zero_id"
BAD_ID = "bad_id"
NO_TIME = "no_time"
NEGATIVE_DURATION = "negative_duration"
INVALID_UTF8 = "invalid_utf8"
TOO_LONG = "too_long"
TOO_DEEP = "too_deep"
TOO_MANY = "too_many"
UNREADABLE = "unreadable"


class Limits(Struct, frozen=True):
    """Bound what is kept of one span; what lies beyond is cut off and counted, never refused."""

    attributes_max: int = 2_000
    attribute_chars_max: int = 1_000_000
    attribute_depth_max: int = 32
    array_items_max: int = 10_000
    events_max: int = 1_000
    name_chars_max: int = 256


DEFAULT_LIMITS = Limits()


class Faults(Counter[str]):
    """Count, by reason, what was wrong with the spans of one body.

    ``zero_id``, ``bad_id``, ``no_time`` and ``unreadable`` mean a span was left out; the other reasons mean one that
    was kept, mended.
    """

    DROPPED = frozenset((ZERO_ID, BAD_ID, NO_TIME, UNREADABLE))

    @property
    def dropped(self) -> int:
        """Number of spans or records left out."""
        return sum(count for reason, count in self.items() if reason in self.DROPPED)


class Resource(Struct, frozen=True, gc=False):
    """What sent the spans; one object is shared by all spans of a batch."""

    attributes: Mapping[str, Any] = {}
    service: str | None = None
    service_version: str | None = None
    task: str | None = None
    variant: str | None = None


NO_RESOURCE = Resource()


def resource_of(attributes: Mapping[str, Any]) -> Resource:
    """Pick out once what every span of this resource will ask for."""

    def text(key: str) -> str | None:
        value = attributes.get(key)
        return value if isinstance(value, str) and value else None

    version, variant = (text(key) for key in (SERVICE_VERSION, REACH_VARIANT))
    return Resource(attributes, text(SERVICE_NAME), trimmed(version), text(REACH_TASK), trimmed(variant))


def trimmed(name: str | None) -> str | None:
    """Take off the blanks around a name, which build scripts like to leave there."""
    return (name.strip() or None) if name is not None else None


class Event(Struct, frozen=True, gc=False):
    """A span event: name, Unix nanoseconds, attributes."""

    name: str
    time_ns: int = 0
    attributes: Mapping[str, Any] = {}


class Span(Struct, gc=False):
    """A span of any library, read from OTLP or from the SDK.

    ``trace_id`` is 32 and ``span_id`` 16 lower-case hex digits; times are Unix nanoseconds, ``end_ns >= start_ns``.
    ``kind`` is OTLP's number (1 internal, 2 server, 3 client, 4 producer, 5 consumer). ``parent_remote`` is None where
    the sender did not say, as is ``sampled``.
    """

    trace_id: str
    span_id: str
    name: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Any]
    parent_id: str | None = None
    parent_remote: bool | None = None
    kind: int = 0
    status: int = STATUS_UNSET
    status_message: str = ""
    events: tuple[Event, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    resource: Resource = NO_RESOURCE
    scope: str = ""
    sampled: bool | None = None


class LogRecord(Struct, gc=False):
    """An OTLP log record that may carry the messages of a span; ``body`` keeps its structure."""

    trace_id: str
    span_id: str
    name: str
    time_ns: int
    attributes: Mapping[str, Any]
    body: Any = None
    resource: Resource = NO_RESOURCE
    scope: str = ""

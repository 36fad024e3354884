"""Read spans and log records of any library and normalise them into steps: the dialects of the world end here."""

from reach_otel.span.errors_text import DEFAULT_PATTERNS
from reach_otel.span.normalise import normalise, normalise_log
from reach_otel.span.read_json import read_logs as read_logs_json
from reach_otel.span.read_json import read_spans as read_spans_json
from reach_otel.span.read_proto import read_logs as read_logs_protobuf
from reach_otel.span.read_proto import read_spans as read_spans_protobuf
from reach_otel.span.read_sdk import SdkReader
from reach_otel.span.record import DEFAULT_LIMITS, Event, Faults, Limits, LogRecord, Resource, Span
from reach_otel.span.redact import redact
from reach_otel.span.step import ACTION_KINDS, Answer, Call, Kind, Step, Text, Tokens

__all__ = [
    "ACTION_KINDS",
    "DEFAULT_LIMITS",
    "DEFAULT_PATTERNS",
    "Answer",
    "Call",
    "Event",
    "Faults",
    "Kind",
    "Limits",
    "LogRecord",
    "Resource",
    "SdkReader",
    "Span",
    "Step",
    "Text",
    "Tokens",
    "normalise",
    "normalise_log",
    "read_logs_json",
    "read_logs_protobuf",
    "read_spans_json",
    "read_spans_protobuf",
    "redact",
]

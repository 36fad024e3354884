"""Say what a recorded input is made of: OTLP requests, and pieces that are none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

Signal = Literal["traces", "logs"]

MESSAGE_BYTES_MAX: Final = 64 << 20
"""Longest line or length-prefixed message; an exporter's batch is some hundred kilobytes."""
DOCUMENT_BYTES_MAX: Final = 512 << 20
"""Longest file that has to be held as a whole: one JSON document, or one bare protobuf request."""

EXPECTED: Final = (
    "expected OTLP traces or logs: JSON lines (one ExportTraceServiceRequest or ExportLogsServiceRequest a line), "
    "one JSON document, or protobuf (one request, or messages behind 4-byte lengths as the Collector's file exporter "
    "writes them); each may be gzipped"
)


@dataclass(frozen=True, slots=True)
class Message:
    """Hold one OTLP request as it was written; ``where`` is ``file:line`` or ``file: message n``."""

    signal: Signal
    form: Literal["json", "protobuf"]
    body: bytes
    where: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Tell what in the input could not be used, and where it stands."""

    where: str
    what: str


Report = Callable[[Problem], None]
Advance = Callable[[int], None]
"""Told the bytes read from an input since the last call."""

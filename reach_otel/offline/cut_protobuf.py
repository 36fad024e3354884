"""Cut protobuf into requests: a bare one, or many behind their lengths."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from reach_otel.offline.message import DOCUMENT_BYTES_MAX, MESSAGE_BYTES_MAX, Message, Problem, Signal
from reach_otel.span.wire import read_varint

if TYPE_CHECKING:
    from collections.abc import Iterator


def cut_request(stream: IO[bytes], name: str) -> Iterator[Message | Problem]:
    """Yield the one request that the whole input is."""
    body = stream.read(DOCUMENT_BYTES_MAX + 1)
    if len(body) > DOCUMENT_BYTES_MAX:
        yield Problem(name, f"it is one protobuf request of more than {DOCUMENT_BYTES_MAX} bytes")
        return
    item = _protobuf_message(body, name)
    if item is not None:
        yield item


def cut_prefixed(stream: IO[bytes], name: str) -> Iterator[Message | Problem]:
    """Yield requests behind 4-byte lengths; a wrong length ends it, since nothing tells where the next one starts."""
    number = 0
    while prefix := stream.read(4):
        number += 1
        where = f"{name}: message {number}"
        length = int.from_bytes(prefix, "big")
        if len(prefix) < 4 or length > MESSAGE_BYTES_MAX:
            yield Problem(where, "its length cannot be right; the rest of the file is passed over")
            return
        body = stream.read(length)
        if len(body) < length:
            yield Problem(where, f"the file ends after {len(body)} of its {length} bytes")
            return
        item = _protobuf_message(body, where)
        if item is not None:
            yield item


def _protobuf_message(body: bytes, where: str) -> Message | Problem | None:
    try:
        signal = _protobuf_signal(body)
    except (IndexError, ValueError):
        return Problem(where, "it is not OTLP protobuf")
    return Message(signal, "protobuf", body, where) if signal else None


_SPAN_STARTS = frozenset((0x0A, 0x12))  # trace_id, span_id: bytes
# time, severity, its text, body, attributes, observed time
_LOG_STARTS = frozenset((0x09, 0x10, 0x1A, 0x2A, 0x32, 0x59))


def _protobuf_signal(body: bytes) -> Signal | None:
    """Tell traces from logs by the first record: requests are alike down to it.

    A span starts with its ids, a log record with its time. ``None`` for a request without any record and for metrics;
    raises ``ValueError`` or ``IndexError`` for what is no such message.
    """
    for resource in _fields(body, 0, len(body), 1):
        for scope in _fields(body, *resource, 2):
            for start, end in _fields(body, *scope, 2):
                if start == end:
                    continue
                tag = body[start]
                if tag in _LOG_STARTS:
                    return "logs"
                if tag in _SPAN_STARTS and (tag == 0x12 or body[start + 1] in (0, 16)):
                    return "traces"
                return None
    return None


def _fields(body: bytes, at: int, end: int, number: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each length-delimited field ``number`` of the message at ``body[at:end]``."""
    while at < end:
        tag, at = read_varint(body, at)
        kind = tag & 7
        if kind == 2:
            length, at = read_varint(body, at)
            if at + length > end:
                raise ValueError("a field is longer than its message")
            if tag >> 3 == number:
                yield at, at + length
            at += length
        elif kind == 0:
            _, at = read_varint(body, at)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise ValueError(f"wire type {kind}")

"""Cut JSON into requests: one a line, or documents over many lines."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any

import msgspec

from reach_otel.offline.message import DOCUMENT_BYTES_MAX, MESSAGE_BYTES_MAX, Message, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Keys(msgspec.Struct):
    """See which signal a request carries, without building its content."""

    resourceSpans: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET  # noqa: N815 - spelled as in OTLP/JSON
    resourceLogs: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET  # noqa: N815
    resourceMetrics: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET  # noqa: N815
    resource_spans: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET  # as some senders spell it
    resource_logs: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    resource_metrics: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_decode_keys = msgspec.json.Decoder(_Keys).decode


def _json_message(body: bytes, where: str) -> Message | Problem | None:
    """Tell what one piece of JSON is; ``None`` for a request that is of no use here (metrics)."""
    try:
        keys = _decode_keys(body)
    except msgspec.ValidationError:
        return Problem(where, "it is JSON but not an object with resourceSpans or resourceLogs")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Problem(where, f"it is not JSON ({error})")
    except RecursionError:
        return Problem(where, "it is nested too deep")
    if keys.resourceSpans is not msgspec.UNSET or keys.resource_spans is not msgspec.UNSET:
        return Message("traces", "json", body, where)
    if keys.resourceLogs is not msgspec.UNSET or keys.resource_logs is not msgspec.UNSET:
        return Message("logs", "json", body, where)
    if keys.resourceMetrics is not msgspec.UNSET or keys.resource_metrics is not msgspec.UNSET:
        return None
    return Problem(where, "it is JSON with neither resourceSpans nor resourceLogs")


def cut_json(stream: IO[bytes], name: str) -> Iterator[Message | Problem]:
    """Yield the requests of JSON lines or of a JSON document, and what of it is none, with the line it stands on."""
    number = 0
    first = _line(stream)
    while first is not None and not first.strip():
        number += 1
        first = _line(stream)
    if first is None:
        return
    if _is_document(first, stream):
        yield from _read_document(first, stream, name, number + 1)
        return
    line: bytes | None = first
    while line is not None:
        number += 1
        if len(line) > MESSAGE_BYTES_MAX:
            yield Problem(f"{name}:{number}", f"the line is longer than {MESSAGE_BYTES_MAX} bytes")
        elif line.strip():
            item = _json_message(line, f"{name}:{number}")
            if item is not None:
                yield item
        line = _line(stream)


def _line(stream: IO[bytes]) -> bytes | None:
    """Read one line; of one that is too long keep only the start, one byte more than allowed; pass over the rest."""
    line = stream.readline(MESSAGE_BYTES_MAX + 1)
    if not line:
        return None
    if len(line) > MESSAGE_BYTES_MAX and not line.endswith(b"\n"):
        while (rest := stream.readline(1 << 20)) and not rest.endswith(b"\n"):
            pass
    return line


def _is_document(first: bytes, stream: Any) -> bool:
    """Say whether the first line is the start of a longer document rather than a (perhaps broken) line of its own."""
    if first.lstrip().startswith(b"["):
        return True
    try:
        _decode_keys(first)
    except msgspec.ValidationError:
        return False
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return not stream.peek(1).startswith(b'{"')
    return False


def _read_document(first: bytes, stream: IO[bytes], name: str, number: int) -> Iterator[Message | Problem]:
    body = first + stream.read(DOCUMENT_BYTES_MAX + 1)
    if len(body) > DOCUMENT_BYTES_MAX:
        yield Problem(name, f"it is one JSON document of over {DOCUMENT_BYTES_MAX} bytes; write one request a line")
        return
    text = body.decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    at = 0
    while (at := _next_token(text, at)) < len(text):
        try:
            value, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            yield Problem(f"{name}:{number + error.lineno - 1}", f"it is not JSON ({error.msg}, column {error.colno})")
            return
        except RecursionError:
            yield Problem(name, "it is nested too deep")
            return
        where = f"{name}:{number + text.count(chr(10), 0, at)}"
        parts = [msgspec.json.encode(part) for part in value] if isinstance(value, list) else [text[at:end].encode()]
        for part in parts:
            item = _json_message(part, where)
            if item is not None:
                yield item
        at = end


def _next_token(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at

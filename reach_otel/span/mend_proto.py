"""Save what can be saved of a protobuf message of which one field cannot be parsed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import DecodeError, Message

from reach_otel.span.wire import read_varint, varint

Descent = dict[type[Message], dict[int, type[Message]]]
"""For each message type, the fields (by number) into which to descend in search of the bad one."""


def mend(raw: bytes, kind: type[Message], descent: Descent) -> tuple[bytes, int]:
    """Rebuild a message without the fields that cannot be parsed; also give how many were left out.

    Raises:
        ValueError: the bytes are no sequence of protobuf fields at all.
    """
    kept: list[bytes] = []
    lost = 0
    for number, chunk, payload in _fields(raw):
        try:
            kind.FromString(chunk)
        except DecodeError:
            inner = descent.get(kind, {}).get(number)
            if inner is None or payload is None:
                lost += 1
                continue
            mended, lost_inside = mend(payload, inner, descent)
            lost += lost_inside
            kept.append(varint(number << 3 | 2) + varint(len(mended)) + mended)
        else:
            kept.append(chunk)
    return b"".join(kept), lost


def _fields(raw: bytes) -> Iterator[tuple[int, bytes, bytes | None]]:
    """Give each field as its number, its bytes with the tag, and its payload where it is length-delimited."""
    position = 0
    while position < len(raw):
        begin = position
        tag, position = read_varint(raw, position)
        payload: Any = None
        match tag & 7:
            case 0:  # a varint
                _, position = read_varint(raw, position)
            case 1:  # 64 bits
                position += 8
            case 2:  # length-delimited
                size, position = read_varint(raw, position)
                payload = raw[position : position + size]
                position += size
            case 5:  # 32 bits
                position += 4
            case wire:
                raise ValueError(f"unknown wire type {wire} at byte {begin}")
        if position > len(raw):
            raise ValueError(f"field at byte {begin} runs past the end")
        yield tag >> 3, raw[begin:position], payload

"""Write steps as bytes for the journal, and read them back as they were."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from reach_otel.errors import InputError
from reach_otel.span import Step

Row = tuple[str, bytes]
"""A trace id, and the steps of that trace in one request."""

_MSGPACK: Final = b"m"
_JSON: Final = b"j"  # for what msgpack cannot hold: whole numbers beyond 64 bits, halves of surrogate pairs

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Step]).decode


def rows_of(steps: Iterable[Step]) -> list[Row]:
    """Group steps by trace, in order of first sight, and write each group.

    :raises InputError: a step holds a value that cannot be written at all.
    """
    groups: dict[str, list[Step]] = {}
    for step in steps:
        groups.setdefault(step.trace_id, []).append(step)
    return [(trace, _write(group)) for trace, group in groups.items()]


def steps_of(row: bytes) -> list[Step]:
    """Read the steps of a row.

    :raises InputError: it is damaged.
    """
    kind, body = row[:1], memoryview(row)[1:]
    try:
        return _decode(body) if kind == _MSGPACK else msgspec.convert(json.loads(bytes(body)), list[Step])
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(f"a row of the journal cannot be read: {type(error).__name__}") from None


def _write(steps: Sequence[Step]) -> bytes:
    try:
        return _MSGPACK + _encode(steps)
    except (OverflowError, UnicodeEncodeError):
        pass
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"a step cannot be journalled: {type(error).__name__}") from None
    try:
        return _JSON + json.dumps(msgspec.to_builtins(steps)).encode()
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(f"a step cannot be journalled: {type(error).__name__}") from None

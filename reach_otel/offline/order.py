"""Put records in order of their runs' start when they come in any order and may be too many for memory."""

from __future__ import annotations

from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any, Final

import msgspec

from reach_otel.engine import Record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

MEMORY_BYTES_MAX: Final = 64 << 20
"""Encoded records above this go to a temporary file that has no name and goes away by itself."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Record)


class ByStart:
    """Collect records, then give them back by (start, run); kept as JSON, so what comes back is what JSON can hold.

    A context: leaving it frees memory and the temporary file.
    """

    __slots__ = ("_file", "_places")

    def __init__(self, memory_bytes_max: int = MEMORY_BYTES_MAX) -> None:
        self._file = SpooledTemporaryFile(memory_bytes_max)  # noqa: SIM115 - closed by __exit__
        self._places: list[tuple[str, str, int, int]] = []  # start, run, offset, length

    def __enter__(self) -> ByStart:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._places)

    def add(self, record: Record) -> None:
        """Keep one record."""
        try:
            body = _encoder.encode(record)
        except UnicodeEncodeError:  # half of a surrogate pair, in a text that a tool or model gave
            body = _encoder.encode(_encodable(msgspec.to_builtins(record)))
        self._places.append((record.start.rstrip("Z"), record.run, self._file.tell(), len(body)))
        self._file.write(body)

    def __iter__(self) -> Iterator[Record]:
        for _, _, offset, length in sorted(self._places):
            self._file.seek(offset)
            yield _decoder.decode(self._file.read(length))


def _encodable(value: Any) -> Any:
    """Put a question mark in the place of each character that is none."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return [_encodable(item) for item in value] if isinstance(value, list | tuple) else value

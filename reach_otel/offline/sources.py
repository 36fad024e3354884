"""Find the files to read, open them and tell how far reading them got."""

from __future__ import annotations

import io
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from reach_otel.errors import InputError
from reach_otel.offline.message import EXPECTED, Advance

if TYPE_CHECKING:
    from collections.abc import Iterable

STDIN: Final = "-"
_HEAD_BYTES = 512
_TELL_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Source:
    """Name one input: a file, or standard input when ``path`` is ``None``.

    ``listed`` tells a file that the user named from one that was found in a folder; ``size`` is in bytes.
    """

    name: str
    path: Path | None
    listed: bool
    size: int | None


def sources(paths: Iterable[str | os.PathLike[str]]) -> list[Source]:
    """Resolve files, folders (all files below, hidden ones left out, sorted by path) and ``-``.

    Raises :class:`InputError` for a path that does not exist or cannot be read, and for a folder with no file in it.
    """
    found: list[Source] = []
    for each in paths:
        given = os.fspath(each)
        path = Path(given)
        if given == STDIN:
            found.append(Source("<stdin>", None, True, None))
        elif path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.is_file() and not _hidden(p.relative_to(path)))
            if not inside:
                raise InputError(f"{given}: the folder holds no file; {EXPECTED}")
            found.extend(Source(str(p), p, False, p.stat().st_size) for p in inside)
        elif path.exists():
            if not os.access(path, os.R_OK):
                raise InputError(f"{given}: no permission to read it")
            found.append(Source(given, path, True, path.stat().st_size if path.is_file() else None))
        else:
            raise InputError(f"{given}: no such file or folder")
    return found


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def open_raw(source: Source) -> AbstractContextManager[IO[bytes]]:
    """Open an input for as long as the context lasts; standard input stays open after it."""
    if source.path is None:
        return nullcontext(sys.stdin.buffer)
    return source.path.open("rb", buffering=0)


class Counted(io.RawIOBase):
    """Read through to a file and tell how many bytes went by."""

    def __init__(self, raw: IO[bytes], advance: Advance | None) -> None:
        self._raw = raw
        self._advance = advance
        self._untold = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n = self._raw.readinto(buffer)  # type: ignore[attr-defined]
        if n and self._advance is not None:
            self._untold += n
            if self._untold >= _TELL_BYTES:
                self.tell_rest()
        return int(n or 0)

    def tell_rest(self) -> None:
        if self._advance is not None and self._untold:
            self._advance(self._untold)
            self._untold = 0


class _Rewound(io.RawIOBase):
    """Give back bytes that were read to look at them, then go on with the stream."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head = memoryview(head)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._head:
            return int(self._rest.readinto(buffer) or 0)  # type: ignore[attr-defined]
        n = min(len(buffer), len(self._head))
        buffer[:n] = self._head[:n]
        self._head = self._head[n:]
        return n


def look(raw: Any) -> tuple[bytes, IO[bytes]]:
    """Return the first bytes of a stream, which may come in drops, and the stream as if they were still in it."""
    head = b""
    while len(head) < _HEAD_BYTES and (more := raw.read(_HEAD_BYTES - len(head))):
        head += more
    return head, io.BufferedReader(_Rewound(head, raw), 1 << 18)

"""Bound what requests may take: bytes of bodies, room in the queue, time; and unpack bodies without trusting them."""

from __future__ import annotations

import asyncio
import sys
import threading
import zlib
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from reach_otel.errors import ReachError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

RETRY_AFTER_SECONDS: Final = 1
_PIECE: Final = 64 << 10  # bytes unpacked at a time
_GZIP_OR_ZLIB: Final = 47  # window bits; the header tells which


class Refused(ReachError):
    """Say why a request is not taken, in HTTP's terms; ``retry_after_seconds`` where another try may succeed."""

    def __init__(self, status: int, message: str, *, retry_after_seconds: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after_seconds = retry_after_seconds


def overloaded(what: str) -> Refused:
    """Refuse for want of room in the service (503)."""
    return Refused(503, f"{what}; try again later", retry_after_seconds=RETRY_AFTER_SECONDS)


class Room:
    """Count what waits to be scored, in spans and in bytes of their bodies; any thread may ask.

    What is larger than the whole room is taken when there is nothing else in it, so that it does not wait for ever.
    """

    __slots__ = ("_bytes", "_lock", "_spans", "bytes_max", "spans_max")

    def __init__(self, spans_max: int, bytes_max: int) -> None:
        self.spans_max = spans_max
        self.bytes_max = bytes_max
        self._spans = 0
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def spans(self) -> int:
        """Count the spans that wait."""
        return self._spans

    @property
    def size(self) -> int:
        """Add up the bytes that wait."""
        return self._bytes

    @property
    def is_full(self) -> bool:
        """Say whether nothing more will be taken."""
        return self._spans >= self.spans_max or self._bytes >= self.bytes_max

    def take(self, spans: int, size: int) -> bool:
        """Reserve room; ``False`` when there is not enough."""
        with self._lock:
            if self._spans and (self._spans + spans > self.spans_max or self._bytes + size > self.bytes_max):
                return False
            self._spans += spans
            self._bytes += size
            return True

    def give(self, spans: int, size: int) -> None:
        """Give room back."""
        with self._lock:
            self._spans -= spans
            self._bytes -= size


class Budget:
    """Count the bytes of all bodies held at the moment; for one thread, that of the event loop."""

    __slots__ = ("bytes_max", "held")

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.held = 0

    def share(self) -> Share:
        """Open an account for one request."""
        return Share(self)


class Share:
    """Hold what one request has taken of the budget; a context manager that gives it back."""

    __slots__ = ("_budget", "held")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.held = 0

    def __enter__(self) -> Share:
        return self

    def __exit__(self, *_: object) -> None:
        self.give(self.held)

    def take(self, size: int) -> None:
        """Take some bytes; refuses with 429 when all requests together would hold too many."""
        budget = self._budget
        if budget.held and budget.held + size > budget.bytes_max:
            raise Refused(429, "too many requests at the same time", retry_after_seconds=RETRY_AFTER_SECONDS)
        budget.held += size
        self.held += size

    def give(self, size: int) -> None:
        """Give some bytes back."""
        self._budget.held -= size
        self.held -= size


class _TooLong(Exception):
    """More came out of a body than is allowed."""


class _Plain:
    """Pass bytes through."""

    finished = True

    def feed(self, piece: bytes, room: int) -> bytes:
        if len(piece) > room:
            raise _TooLong
        return piece


class _Gzip:
    """Decompress gzip of one or more members, or zlib, never beyond the room given."""

    def __init__(self) -> None:
        self._unpack = zlib.decompressobj(wbits=_GZIP_OR_ZLIB)
        self._started = False

    @property
    def finished(self) -> bool:
        return self._unpack.eof or not self._started

    def feed(self, piece: bytes, room: int) -> bytes:
        out = bytearray()
        self._started = True
        while True:
            if self._unpack.eof:
                self._unpack = zlib.decompressobj(wbits=_GZIP_OR_ZLIB)
            limit = min(_PIECE, room - len(out) + 1)
            got = self._unpack.decompress(piece, limit)
            out += got
            if len(out) > room:
                raise _TooLong
            piece = self._unpack.unused_data if self._unpack.eof else self._unpack.unconsumed_tail
            if not piece and (self._unpack.eof or len(got) < limit):
                return bytes(out)


class _Zstd:
    """Decompress zstd of one or more frames, never beyond the room given."""

    def __init__(self) -> None:
        self._unpack = zstd.ZstdDecompressor()
        self._started = False

    @property
    def finished(self) -> bool:
        return self._unpack.eof or not self._started

    def feed(self, piece: bytes, room: int) -> bytes:
        out = bytearray()
        self._started = True
        while True:
            if self._unpack.eof:
                self._unpack = zstd.ZstdDecompressor()
            got = self._unpack.decompress(piece, min(_PIECE, room - len(out) + 1))
            out += got
            if len(out) > room:
                raise _TooLong
            piece = self._unpack.unused_data if self._unpack.eof else b""
            if not piece and (self._unpack.eof or self._unpack.needs_input):
                return bytes(out)


ENCODINGS: Final[dict[str, Callable[[], Any]]] = {
    "": _Plain,
    "identity": _Plain,
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Gzip,
    "zstd": _Zstd,
}


async def read_body(
    pieces: AsyncIterator[bytes],
    share: Share,
    *,
    encoding: str = "",
    body_max: int,
    decompressed_max: int,
    seconds: float,
) -> bytes:
    """Receive a body and unpack it as it comes; nothing is held beyond the limits.

    :raises Refused: 400 broken compression, 408 too slow, 413 too long, 415 unknown encoding, 429 no room for it.
    """
    make = ENCODINGS.get(encoding.strip().lower())
    if make is None:
        known = ", ".join(sorted(name for name in ENCODINGS if name))
        raise Refused(415, f"Content-Encoding: found {encoding[:40]!r}, want one of {known}")
    unpack = make()
    received = 0
    parts: list[bytes] = []
    try:
        async with asyncio.timeout(seconds or None):
            async for piece in pieces:
                received += len(piece)
                if received > body_max:
                    raise Refused(413, f"the body is longer than {body_max} bytes")
                for at in range(0, len(piece), _PIECE):
                    part = unpack.feed(piece[at : at + _PIECE], decompressed_max - share.held)
                    share.take(len(part))
                    parts.append(part)
    except TimeoutError:
        raise Refused(408, f"the body did not come within {seconds:g} s") from None
    except _TooLong:
        raise Refused(413, f"the body is longer than {decompressed_max} bytes once decompressed") from None
    except (zlib.error, zstd.ZstdError) as error:
        raise Refused(400, f"the body is no {encoding}: {error}") from None
    if not unpack.finished:
        raise Refused(400, f"the {encoding} body ends early")
    return b"".join(parts)

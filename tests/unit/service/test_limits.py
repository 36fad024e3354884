"""Check that bodies are unpacked as they come and never beyond the limits, and that room is counted."""

from __future__ import annotations

import asyncio
import gzip
import random
import zlib
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pytest
from backports import zstd

from reach_otel.service.limits import Budget, Refused, Room, read_body

LIMIT = 1 << 20
TEXT = b"".join(b"%d: the quick brown fox\n" % n for n in range(20_000))


async def pieces_of(pieces: Iterable[bytes], pause_seconds: float = 0.0) -> AsyncIterator[bytes]:
    for piece in pieces:
        if pause_seconds:
            await asyncio.sleep(pause_seconds)
        yield piece


def cut(body: bytes, size: int) -> list[bytes]:
    return [body[at : at + size] for at in range(0, len(body), size)] or [b""]


def read(
    pieces: Iterable[bytes], encoding: str = "", *, budget: Budget | None = None, pause: float = 0.0, **limits: Any
) -> bytes:
    budget = budget or Budget(8 * LIMIT)

    async def body() -> bytes:
        with budget.share() as share:
            options = {"body_max": LIMIT, "decompressed_max": LIMIT, "seconds": 5.0, **limits}
            found = await read_body(pieces_of(pieces, pause), share, encoding=encoding, **options)
            assert share.held == len(found)
            return found

    before = budget.held
    try:
        return asyncio.run(body())
    finally:
        assert budget.held == before


PACKED = {
    "": TEXT,
    "identity": TEXT,
    "gzip": gzip.compress(TEXT),
    "x-gzip": gzip.compress(TEXT),
    "deflate": zlib.compress(TEXT),
    "zstd": zstd.compress(TEXT),
    "GZIP ": gzip.compress(TEXT),
}


@pytest.mark.parametrize("size", [1_000, 7, 100_000])
@pytest.mark.parametrize("encoding", PACKED)
def test_a_body_comes_out_as_it_was(encoding: str, size: int) -> None:
    """However it is cut into pieces, each encoding gives the text back."""
    body = PACKED[encoding]
    assert read(cut(body, size if size > 7 or len(body) < 200_000 else 997), encoding) == TEXT


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(TEXT[:50]) + gzip.compress(b"") + gzip.compress(TEXT[50:])),
        ("zstd", zstd.compress(TEXT[:50]) + zstd.compress(TEXT[50:])),
    ],
)
def test_members_one_after_the_other_are_one_body(encoding: str, body: bytes) -> None:
    """Both formats allow several in a row."""
    assert read(cut(body, 33), encoding) == TEXT
    assert read([body], encoding) == TEXT


@pytest.mark.parametrize("encoding", ["gzip", "zstd", "deflate"])
@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, LIMIT - 1, LIMIT])
def test_sizes_around_the_pieces_come_out_whole(encoding: str, size: int) -> None:
    """Nothing is lost where a piece or the limit is filled exactly; one byte more is too long."""
    chance = random.Random(size)
    packers: dict[str, Callable[[bytes], bytes]] = {
        "gzip": gzip.compress,
        "zstd": zstd.compress,
        "deflate": zlib.compress,
    }
    pack = packers[encoding]
    for text in (b"a" * size, chance.randbytes(size)):
        assert read(cut(pack(text), 50_000), encoding, body_max=2 * LIMIT) == text
    with pytest.raises(Refused) as refused:
        read(cut(pack(b"a" * size), 50_000), encoding, decompressed_max=size - 1 if size else -1)
    assert refused.value.status == 413


def test_nothing_is_unpacked_beyond_the_limit() -> None:
    """Of a bomb only as much is unpacked as shows that it is too long."""
    budget = Budget(8 * LIMIT)
    most = 0

    bomb = gzip.compress(b"\x00" * (64 << 20))
    given = 0

    def pieces() -> Iterable[bytes]:
        nonlocal given, most
        for piece in cut(bomb, 100):
            given += len(piece)
            most = max(most, budget.held)
            yield piece

    with pytest.raises(Refused) as refused:
        read(pieces(), "gzip", budget=budget)
    assert refused.value.status == 413
    assert most <= LIMIT
    assert given < len(bomb) / 10


@pytest.mark.parametrize(
    ("pieces", "encoding", "limits", "status"),
    [
        ([b"x" * (LIMIT + 1)], "", {}, 413),
        ([b"x"] * 3, "", {"body_max": 2}, 413),
        ([b"xxx"], "", {"decompressed_max": 2}, 413),
        ([b"no gzip"], "gzip", {}, 400),
        ([b"no zstd"], "zstd", {}, 400),
        ([gzip.compress(TEXT)[:-1]], "gzip", {}, 400),
        ([zstd.compress(TEXT)[:-1]], "zstd", {}, 400),
        ([gzip.compress(b"x") + b"rest"], "gzip", {}, 400),
        ([b"x"], "br", {}, 415),
        ([b"x"], "gzip, gzip", {}, 415),
    ],
)
def test_a_bad_body_is_refused(pieces: list[bytes], encoding: str, limits: dict[str, Any], status: int) -> None:
    """Too long, broken or unknown: each has its status, and the budget is given back."""
    with pytest.raises(Refused) as refused:
        read(pieces, encoding, **limits)
    assert refused.value.status == status
    assert refused.value.retry_after_seconds is None


def test_a_slow_body_is_given_up() -> None:
    """Who sends a byte now and then does not hold the service for ever."""
    with pytest.raises(Refused) as refused:
        read([b"x"] * 50, seconds=0.1, pause=0.02)
    assert refused.value.status == 408


def test_all_bodies_together_are_bounded() -> None:
    """When the budget is spent the next body is told to come again; one alone is always let in."""
    budget = Budget(100)
    with budget.share() as first:
        first.take(90)
        with pytest.raises(Refused) as refused:
            read([b"x" * 11], budget=budget)
        assert (refused.value.status, refused.value.retry_after_seconds) == (429, 1)
        assert read([b"x" * 10], budget=budget) == b"x" * 10
    assert budget.held == 0
    assert len(read([b"x" * 200], budget=budget)) == 200


def test_room_is_bounded_in_spans_and_bytes() -> None:
    """Either bound refuses; what is given back can be taken again; what is larger than all fits into nothing."""
    room = Room(spans_max=10, bytes_max=100)
    assert room.take(6, 10)
    assert not room.take(5, 10)
    assert not room.take(1, 91)
    assert room.take(4, 10)
    assert room.is_full
    room.give(10, 20)
    assert (room.spans, room.size, room.is_full) == (0, 0, False)
    assert room.take(1_000, 5)
    assert room.is_full

"""Questions to the history are read-only, bounded in time and number, and hold up neither each other nor the writer."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reach_otel.service.reader import Reader, Unreadable

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "a file with # and ? in its name.db"
    conn = sqlite3.connect(file, isolation_level=None)
    conn.execute("PRAGMA journal_mode = WAL")
    conn.execute("CREATE TABLE t (x)")
    yield file
    conn.close()


def count(conn: sqlite3.Connection) -> int:
    (number,) = conn.execute("SELECT count(*) FROM t").fetchone()
    return int(number)


def endless(conn: sqlite3.Connection) -> None:
    conn.execute(ENDLESS).fetchone()


def test_a_question_that_takes_too_long_is_stopped_and_others_are_answered(path: Path) -> None:
    """An endless query ends at its limit; meanwhile the loop runs, another reader answers, and the writer writes."""

    async def ask() -> None:
        reader = Reader(path, seconds=0.5)
        begun = time.monotonic()
        long = asyncio.ensure_future(reader.ask(endless))
        await asyncio.sleep(0.05)
        assert await reader.ask(count) == 0
        writer = sqlite3.connect(path, isolation_level=None)
        writer.execute("INSERT INTO t VALUES (1)")
        writer.close()
        assert await reader.ask(count) == 1
        assert not long.done()
        with pytest.raises(Unreadable, match="longer than"):
            await long
        assert time.monotonic() - begun < 5
        assert await reader.ask(count) == 1
        reader.close()

    asyncio.run(ask())


def test_slow_questions_hold_up_no_others(path: Path) -> None:
    """However many of them run into their limit, a quick one is answered at once, and has its own room to wait in."""

    async def ask() -> None:
        reader = Reader(path, threads=1, seconds=1.0, waiting_max=3)
        slow = [asyncio.ensure_future(reader.ask(endless, slow=True)) for _ in range(4)]
        for _ in range(10):
            begun = time.monotonic()
            assert await reader.ask(count) == 0
            assert time.monotonic() - begun < 0.8
        results = await asyncio.gather(*slow, return_exceptions=True)
        assert [type(result) for result in results] == [Unreadable] * 4
        assert sum("too many" in str(result) for result in results) == 1
        reader.close()

    asyncio.run(ask())


def test_a_question_that_waits_too_long_is_not_even_begun(path: Path) -> None:
    """The time counts from the question on, so that a queue of slow ones drains at once."""

    async def ask() -> None:
        reader = Reader(path, threads=1, seconds=0.3)
        begun = time.monotonic()
        first = asyncio.ensure_future(reader.ask(endless))
        await asyncio.sleep(0.05)
        rest = await asyncio.gather(*(reader.ask(endless) for _ in range(20)), return_exceptions=True)
        assert isinstance(await asyncio.gather(first, return_exceptions=True), list)
        assert [type(result) for result in rest] == [Unreadable] * 20
        assert sum("waited" in str(result) for result in rest) >= 15
        assert time.monotonic() - begun < 3
        reader.close()

    asyncio.run(ask())


def test_more_questions_than_may_wait_are_refused(path: Path) -> None:
    """Beyond the limit there is an answer at once: no. When the others are done, there is room again."""

    async def ask() -> None:
        reader = Reader(path, threads=1, seconds=0.3, waiting_max=2)
        asked = [asyncio.ensure_future(reader.ask(endless)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Unreadable, match="too many"):
            await reader.ask(count)
        await asyncio.wait(asked)
        for one in asked:
            assert isinstance(one.exception(), Unreadable)
        assert await reader.ask(count) == 0
        reader.close()

    asyncio.run(ask())


def test_a_question_cannot_write(path: Path) -> None:
    """The connection is read-only, whatever is asked."""

    async def ask() -> None:
        reader = Reader(path)
        with pytest.raises(Unreadable):
            await reader.ask(lambda conn: conn.execute("INSERT INTO t VALUES (1)"))
        assert await reader.ask(count) == 0
        reader.close()

    asyncio.run(ask())


def test_all_of_a_question_is_of_one_moment(path: Path) -> None:
    """What is written while a question is answered is not seen by its second half."""

    def twice(conn: sqlite3.Connection) -> tuple[int, int]:
        first = count(conn)
        writer = sqlite3.connect(path, isolation_level=None)
        writer.execute("INSERT INTO t VALUES (1)")
        writer.close()
        return first, count(conn)

    async def ask() -> None:
        reader = Reader(path)
        assert await reader.ask(twice) == (0, 0)
        assert await reader.ask(count) == 1
        reader.close()

    asyncio.run(ask())


def test_a_file_that_comes_later_is_read_then(tmp_path: Path) -> None:
    """A database that is not there, or is none, is an error now and no longer once it is there."""
    file = tmp_path / "later.db"

    async def ask() -> None:
        reader = Reader(file)
        with pytest.raises(Unreadable, match="cannot be read"):
            await reader.ask(count)
        assert not file.exists()
        conn = sqlite3.connect(file, isolation_level=None)
        conn.execute("CREATE TABLE t (x)")
        conn.close()
        assert await reader.ask(count) == 0
        reader.close()
        with pytest.raises(Unreadable, match="stop"):
            await reader.ask(count)

    asyncio.run(ask())


def test_an_error_of_the_question_itself_comes_out(path: Path) -> None:
    """What is no trouble of the database is not dressed up as one."""

    def wrong(conn: sqlite3.Connection) -> None:
        raise KeyError("mine")

    async def ask() -> None:
        reader = Reader(path)
        with pytest.raises(KeyError):
            await reader.ask(wrong)
        assert await reader.ask(count) == 0
        reader.close()

    asyncio.run(ask())

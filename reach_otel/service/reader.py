"""Read the database on threads of its own, read-only and with a time limit, so that no query can hold up anything."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from reach_otel.errors import ReachError

T = TypeVar("T")

STEPS_BETWEEN_LOOKS: Final = 20_000  # of SQLite's machine: about a millisecond
BUSY_SECONDS: Final = 0.2
CACHE_KIB: Final = 8_192


class Unreadable(ReachError, RuntimeError):
    """Say that a question got no answer: it took too long, there are too many, or the file cannot be read."""


class Reader:
    """Answer questions to one SQLite file. Each is one transaction, so that all it sees is of one moment."""

    def __init__(self, path: Path | str, *, threads: int = 2, seconds: float = 2.0, waiting_max: int = 64) -> None:
        """``seconds`` counts from the question on, waiting included; beyond ``waiting_max`` questions are refused."""
        self._uri = f"{Path(path).resolve().as_uri()}?mode=ro"
        self._seconds = seconds
        self._waiting_max = waiting_max
        self._waiting = {False: 0, True: 0}  # slow or not
        self._lock = threading.Lock()
        self._own = threading.local()
        self._open: list[sqlite3.Connection] = []
        self._quick = ThreadPoolExecutor(threads, thread_name_prefix="reach-otel-read")
        self._slow = ThreadPoolExecutor(1, thread_name_prefix="reach-otel-sum")

    async def ask(self, question: Callable[[sqlite3.Connection], T], *, slow: bool = False) -> T:
        """Run ``question`` on a reading thread and return its answer.

        ``slow`` ones, which may read very much, have a thread of their own, so that the others never wait for them.

        :raises Unreadable: there is no answer.
        """
        with self._lock:
            if self._waiting[slow] >= self._waiting_max:
                raise Unreadable("too many questions at once")
            self._waiting[slow] += 1
        deadline = time.monotonic() + self._seconds
        try:
            answer = (self._slow if slow else self._quick).submit(self._answer, question, deadline)
        except RuntimeError:  # closed
            self._done(slow)
            raise Unreadable("the service is about to stop") from None
        answer.add_done_callback(lambda _: self._done(slow))
        return await asyncio.wrap_future(answer)

    def _done(self, slow: bool) -> None:
        with self._lock:
            self._waiting[slow] -= 1

    def _answer(self, question: Callable[[sqlite3.Connection], T], deadline: float) -> T:
        if time.monotonic() > deadline:
            raise Unreadable("the question waited too long for its turn")
        try:
            conn = self._connection()
            conn.set_progress_handler(lambda: time.monotonic() > deadline, STEPS_BETWEEN_LOOKS)
            conn.execute("BEGIN")
            try:
                return question(conn)
            finally:
                if conn.in_transaction:
                    conn.execute("ROLLBACK")
        except sqlite3.Error as error:
            self._drop()
            if time.monotonic() > deadline:
                raise Unreadable(f"the question took longer than {self._seconds:g} s; ask for less at a time") from None
            raise Unreadable(f"the history cannot be read now ({type(error).__name__})") from error

    def _connection(self) -> sqlite3.Connection:
        conn: sqlite3.Connection | None = getattr(self._own, "conn", None)
        if conn is None:
            conn = sqlite3.connect(
                self._uri, uri=True, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False
            )
            self._own.conn = conn
            with self._lock:
                self._open.append(conn)
            conn.execute("PRAGMA query_only = 1")
            conn.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        return conn

    def _drop(self) -> None:
        """Close this thread's connection, so that the next question starts afresh."""
        conn: sqlite3.Connection | None = getattr(self._own, "conn", None)
        if conn is not None:
            self._own.conn = None
            with self._lock:
                self._open.remove(conn)
            with suppress(sqlite3.Error):
                conn.close()

    def close(self) -> None:
        """Answer what is being asked, refuse what waits, and close the file."""
        for pool in (self._quick, self._slow):
            pool.shutdown(wait=True, cancel_futures=True)
        for conn in self._open:
            conn.close()
        self._open.clear()

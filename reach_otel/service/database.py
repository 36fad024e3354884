"""Open the service's database file, keep other services off it, and look after its size."""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Protocol

from reach_otel.errors import StateError

if TYPE_CHECKING:
    from reach_otel.engine.record import Record

BUSY_SECONDS: Final = 1.0  # wait for a lock that another process holds
BUSY_SICK_SECONDS: Final = 0.05  # the same while the last attempt failed
FREE_PAGES_KEPT: Final = 1_000
WAL_BYTES_KEPT: Final = 64 << 20

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS journal (seq INTEGER PRIMARY KEY, trace TEXT NOT NULL, steps BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS journal_trace ON journal (trace);
CREATE TABLE IF NOT EXISTS verdicts (run TEXT PRIMARY KEY, given INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS verdicts_given ON verdicts (given);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS probe (id INTEGER PRIMARY KEY, filler BLOB);
"""

logger = logging.getLogger(__name__)


class Keeper(Protocol):
    """Keep finished runs in the journal's database; called on its thread, inside its transaction but for the first."""

    def prepare(self, connection: sqlite3.Connection, /) -> None: ...
    def write(self, connection: sqlite3.Connection, records: Sequence[Record], /) -> object: ...
    def prune(self, connection: sqlite3.Connection, /) -> object: ...


class Database:
    """Hold the one connection that writes. The file gets mode 0600; it is made if it is not there.

    ``since_ns`` is the Unix time of the first start with this file; ``None`` where that was not noted.

    :raises StateError: it cannot be opened, is no database, or another service uses it.
    """

    def __init__(self, path: Path, *, keeper: Keeper | None, durable: bool) -> None:
        self.path = path
        self._lock = _lock(path)
        connection: sqlite3.Connection | None = None
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            path.chmod(0o600)
            connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES_KEPT}")
            connection.executescript(SCHEMA)
            self.since_ns: Final = _since(connection)
            if keeper is not None:
                keeper.prepare(connection)
        except BaseException as error:
            if connection is not None:
                connection.close()
            self._lock.close()
            if isinstance(error, sqlite3.Error | OSError):
                raise StateError(f"{path}: the database cannot be opened ({error})") from None
            raise
        self.connection: Final = connection

    def largest(self, table: str, column: str) -> int:
        """Give the largest number in a column; 0 in an empty table."""
        return _largest(self.connection, table, column)

    def begin(self, *, is_sick: bool) -> None:
        """Begin a transaction that writes; while the last one failed, wait for a lock only shortly."""
        seconds = BUSY_SICK_SECONDS if is_sick else BUSY_SECONDS
        self.connection.execute(f"PRAGMA busy_timeout = {int(seconds * 1e3)}")
        self.connection.execute("BEGIN IMMEDIATE")

    def roll_back(self) -> None:
        """Undo what was begun, if anything was."""
        try:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
        except sqlite3.Error:
            logger.warning("a transaction could not be rolled back", exc_info=True)

    def used_bytes(self) -> int | None:
        """Add up the pages in use; ``None`` while the file cannot be read."""
        try:
            pages, free, page = (
                self.connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
        except sqlite3.Error:
            return None
        return int((pages - free) * page)

    def shrink(self) -> None:
        """Give some of the freed space back to the file system."""
        (free,) = self.connection.execute("PRAGMA freelist_count").fetchone()
        if free > FREE_PAGES_KEPT:
            self.connection.execute(f"PRAGMA incremental_vacuum({FREE_PAGES_KEPT})").fetchall()

    def close(self) -> None:
        """Close the file and let others use it."""
        try:
            self.connection.close()
        except sqlite3.Error:
            logger.warning("the database %s could not be closed", self.path, exc_info=True)
        self._lock.close()


def _largest(connection: sqlite3.Connection, table: str, column: str) -> int:
    return int(connection.execute(f"SELECT coalesce(max({column}), 0) FROM {table}").fetchone()[0])


def _since(connection: sqlite3.Connection) -> int | None:
    """Look up the first start with this file; one that holds spans or verdicts but no such time is an older one."""
    found = connection.execute("SELECT value FROM facts WHERE name = 'since_ns'").fetchone()
    if found is None:
        is_new = not _largest(connection, "journal", "seq") and not _largest(connection, "verdicts", "given")
        found = (time.time_ns() if is_new else 0,)
        connection.execute("INSERT INTO facts VALUES ('since_ns', ?)", found)
    return int(found[0]) or None


def _lock(path: Path) -> IO[bytes]:
    """Keep other services off the file; the lock ends with the process, however that ends."""
    try:
        number = os.open(path.with_name(path.name + ".lock"), os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise StateError(f"{path}: the database cannot be opened ({error})") from None
    file = os.fdopen(number, "ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise StateError(f"{path}: another service uses it; end that one, or choose another --database") from None
    return file

"""Keep finished runs in SQLite: written with the verdict, in the writer's own transaction, and dropped with age.

Nothing here owns a connection or a thread. The service's one writer calls :meth:`History.write` inside the transaction
that also forgets the journal of those runs, so that a verdict and the end of its journal are one. Tables:

    runs        one narrow row a run: what lists filter by and summaries add up
    bodies      the record as compressed JSON, its steps apart, read only for what is shown
    milestones, findings, obstacles     one row each, by run
    feedback    what people said, by the run's own id
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Literal

from reach_otel.errors import StateError
from reach_otel.service.entries import INSERT_RUN, Entry, Opinion, encode, entry_of

if TYPE_CHECKING:
    from reach_otel.engine.record import Record

DAY_MS: Final = 86_400_000
PRUNE_RUNS: Final = 2_000  # runs dropped in one go, at most
FEEDBACK_A_RUN_MAX: Final = 100
Kept = Literal["created", "known", "clash", "full"]

# What SQLite raises for a value that it cannot take; all else is about the file.
_RECORDS_FAULT: Final = (
    sqlite3.DataError,
    sqlite3.IntegrityError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
    OverflowError,
    ValueError,
)

logger = logging.getLogger(__name__)

_FIRST: Final = """
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE, trace_id TEXT NOT NULL, task TEXT NOT NULL, agent TEXT,
    variant TEXT, outcome TEXT NOT NULL, start_us INTEGER NOT NULL, decided_ms INTEGER NOT NULL, duration REAL NOT NULL,
    depth REAL NOT NULL, purity REAL NOT NULL, digestion REAL, composite REAL NOT NULL, high_layer REAL,
    high_expected INTEGER NOT NULL, high_reached INTEGER NOT NULL, coverage INTEGER NOT NULL,
    levels INTEGER NOT NULL, break_level TEXT, break_reason TEXT,
    actions INTEGER NOT NULL, effective INTEGER NOT NULL, last_tool TEXT
);
-- Holds all that lists filter by, so that even a filter which nothing fits reads this index alone.
CREATE INDEX runs_by_start ON runs (
    start_us, run, task, outcome, agent, variant, depth, purity, digestion, composite, high_layer
);
CREATE INDEX runs_by_task ON runs (task, decided_ms);
CREATE INDEX runs_by_trace ON runs (trace_id);
CREATE TABLE bodies (id INTEGER PRIMARY KEY, record BLOB NOT NULL, steps BLOB);
CREATE TABLE milestones (
    run_id INTEGER NOT NULL, n INTEGER NOT NULL, milestone TEXT NOT NULL, state TEXT NOT NULL, reason TEXT,
    action INTEGER, seconds REAL, PRIMARY KEY (run_id, n)
) WITHOUT ROWID;
CREATE TABLE findings (
    run_id INTEGER NOT NULL, finding TEXT NOT NULL, times INTEGER NOT NULL, start_us INTEGER NOT NULL,
    run TEXT NOT NULL, PRIMARY KEY (run_id, finding)
) WITHOUT ROWID;
CREATE INDEX findings_by_start ON findings (finding, start_us, run);
CREATE TABLE obstacles (
    run_id INTEGER NOT NULL, n INTEGER NOT NULL, kind TEXT NOT NULL, milestone TEXT, retries INTEGER NOT NULL,
    digested INTEGER NOT NULL, PRIMARY KEY (run_id, n)
) WITHOUT ROWID;
CREATE TABLE feedback (
    id TEXT PRIMARY KEY, run TEXT NOT NULL, received_ms INTEGER NOT NULL, quality REAL, correct INTEGER,
    body TEXT NOT NULL
);
CREATE INDEX feedback_by_run ON feedback (run, received_ms);
CREATE INDEX feedback_by_time ON feedback (received_ms);
"""

MIGRATIONS: Final[tuple[str, ...]] = (_FIRST,)
"""Each brings the tables one version further; only ever appended to."""

_CHILDREN: Final = (("bodies", "id"), ("milestones", "run_id"), ("findings", "run_id"), ("obstacles", "run_id"))


class History:
    """Write finished runs and feedback, and keep both bounded by age and number."""

    def __init__(
        self,
        *,
        retention_days: float = 30.0,
        rows_max: int = 100_000,
        show_content: bool = False,
        time_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """``show_content``: keep arguments, results and error texts of steps too. ``time_ms`` gives Unix time."""
        self._retention_ms = int(retention_days * DAY_MS)
        self._rows_max = rows_max
        self._show_content = show_content
        self._time_ms = time_ms
        self.unwritten = 0  # records that could not be turned into rows

    def prepare(self, conn: sqlite3.Connection, migrations: Sequence[str] = MIGRATIONS) -> None:
        """Create the tables or bring them to this release's version, all or nothing.

        :raises StateError: a later release has written the file.
        """
        conn.execute("CREATE TABLE IF NOT EXISTS history_version (version INTEGER NOT NULL)")
        found = conn.execute("SELECT version FROM history_version").fetchone()
        version = found[0] if found else 0
        if version > len(migrations):
            raise StateError(
                f"the history has version {version}, this release knows up to {len(migrations)}: "
                "start a newer release, or give it another file"
            )
        if version == len(migrations):
            return
        conn.execute("SAVEPOINT migration")
        try:
            for script in migrations[version:]:
                for statement in script.split(";"):
                    conn.execute(statement)
            conn.execute("DELETE FROM history_version")
            conn.execute("INSERT INTO history_version VALUES (?)", (len(migrations),))
        except BaseException:
            conn.execute("ROLLBACK TO migration")
            raise
        finally:
            conn.execute("RELEASE migration")

    # Writing.

    def write(self, conn: sqlite3.Connection, records: Sequence[Record]) -> int:
        """Write verdicts in the caller's transaction; returns how many were new.

        A run that has a verdict keeps it. A record that makes no row is counted, logged and left out. What is
        too old or too many goes, up to twice as many runs as came.

        :raises sqlite3.Error: the file cannot be written; the transaction is the caller's to roll back.
        """
        now_ms, new = self._time_ms(), 0
        for record in records:
            try:
                made = entry_of(record, now_ms, show_content=self._show_content)
            except Exception as error:  # noqa: BLE001 - one odd record must not take the others along
                self._leave_out(error)
                continue
            new += self._insert(conn, made)
        if new:
            self._drop(conn, now_ms, 2 * new)
        return new

    def _insert(self, conn: sqlite3.Connection, made: Entry) -> int:
        conn.execute("SAVEPOINT verdict")
        try:
            done = conn.execute(INSERT_RUN, made.run)
            if done.rowcount == 0:
                return 0
            run_id = done.lastrowid
            conn.execute("INSERT INTO bodies VALUES (?, ?, ?)", (run_id, made.record, made.steps))
            for statement, values in (
                ("INSERT INTO milestones VALUES (?, ?, ?, ?, ?, ?, ?)", made.milestones),
                ("INSERT INTO findings VALUES (?, ?, ?, ?, ?)", made.findings),
                ("INSERT INTO obstacles VALUES (?, ?, ?, ?, ?, ?)", made.obstacles),
            ):
                conn.executemany(statement, ((run_id, *row) for row in values))
            return 1
        except _RECORDS_FAULT as error:
            conn.execute("ROLLBACK TO verdict")
            self._leave_out(error)
            return 0
        finally:
            if conn.in_transaction:  # a full disk may have ended it
                conn.execute("RELEASE verdict")

    def _leave_out(self, error: Exception) -> None:
        self.unwritten += 1
        logger.warning("record no. %d that cannot be written: %s", self.unwritten, type(error).__name__)

    def add_feedback(self, conn: sqlite3.Connection, run: str, opinion: Opinion) -> Kept:
        """Keep what a person said of a run; saying the same again under one id changes nothing."""
        body = encode(opinion).decode()
        known = conn.execute("SELECT run, body FROM feedback WHERE id = ?", (opinion.id,)).fetchone()
        if known is not None:
            return "known" if known == (run, body) else "clash"
        (there,) = conn.execute("SELECT count(*) FROM feedback WHERE run = ?", (run,)).fetchone()
        if there >= FEEDBACK_A_RUN_MAX:
            return "full"
        values = (opinion.id, run, self._time_ms(), opinion.quality, opinion.correct, body)
        conn.execute("INSERT INTO feedback VALUES (?, ?, ?, ?, ?, ?)", values)
        return "created"

    # Forgetting.

    def prune(self, conn: sqlite3.Connection) -> int:
        """Drop what is too old or too many, at most :data:`PRUNE_RUNS` runs; returns how many rows went.

        For the writer's idle time; while verdicts come, :meth:`write` itself drops what is due.
        """
        now_ms = self._time_ms()
        gone = self._drop(conn, now_ms, PRUNE_RUNS)
        orphans = conn.execute(
            "DELETE FROM feedback WHERE id IN (SELECT f.id FROM feedback f WHERE f.received_ms < ?"
            " AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.run = f.run) LIMIT ?)",
            (now_ms - self._retention_ms, PRUNE_RUNS),
        )
        return gone + orphans.rowcount

    def _drop(self, conn: sqlite3.Connection, now_ms: int, most: int) -> int:
        """Drop the oldest verdicts; ids count upwards without gaps, so that their range tells how many there are."""
        low, high = conn.execute("SELECT (SELECT min(id) FROM runs), (SELECT max(id) FROM runs)").fetchone()
        if low is None:
            return 0
        (aged,) = conn.execute(
            "SELECT max(id) FROM (SELECT id, decided_ms FROM runs ORDER BY id LIMIT ?) WHERE decided_ms < ?",
            (most, now_ms - self._retention_ms),
        ).fetchone()
        last = min(low + most - 1, max(high - self._rows_max, aged or 0))
        if last < low:
            return 0
        span = (low, last)
        conn.execute("DELETE FROM feedback WHERE run IN (SELECT run FROM runs WHERE id BETWEEN ? AND ?)", span)
        for table, key in _CHILDREN:
            conn.execute(f"DELETE FROM {table} WHERE {key} BETWEEN ? AND ?", span)
        return conn.execute("DELETE FROM runs WHERE id BETWEEN ? AND ?", span).rowcount

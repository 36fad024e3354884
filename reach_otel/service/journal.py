"""Keep acknowledged spans and verdicts in SQLite, on the one thread that writes to the database.

What comes while a transaction is under way shares the next one, so that many requests cost one commit. A commit
survives the death of the process; with ``durable`` it also waits for the disk and survives the machine's.

A run's verdict, its record and the end of its spans in the journal are one transaction: whatever happens, a run is
either still in the journal or has its verdict, never both and never neither.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from reach_otel import names
from reach_otel.clock import Seldom
from reach_otel.engine.record import Record
from reach_otel.errors import StateError
from reach_otel.publish.catalog import SERVICE_METRICS
from reach_otel.publish.series import Family, Spread
from reach_otel.service.database import Database, Keeper
from reach_otel.service.faults import told
from reach_otel.service.journal_rows import Row

T = TypeVar("T")

GROUP_BYTES: Final = 16 << 20  # most bytes of rows in one transaction
INSERT_ROWS: Final = 32  # most rows of one statement: each costs a turn at the interpreter's lock, and is kept prepared
RETRY_SECONDS: Final = 1.0  # after a fault, before the next attempt
OWED_MAX: Final = 10_000  # verdicts that wait for the database to come back
PRUNE_SECONDS: Final = 5.0
SIZE_SECONDS: Final = 1.0

_COMMIT_SECONDS: Final = next(m for m in SERVICE_METRICS if m.name == names.SERVICE_COMMIT_SECONDS)

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Append:
    rows: Sequence[Row]
    spans: int
    done: Callable[[int | None], None]  # told the last sequence number; None: not journalled
    size: int = 0


@dataclass(slots=True)
class _Finish:
    """Verdicts given, and traces that are free up to a sequence number."""

    records: Sequence[Record]
    runs: Sequence[str]
    traces: Sequence[str]
    up_to: int
    done: Callable[[], None] | None


@dataclass(slots=True)
class _Task:
    function: Callable[[sqlite3.Connection], Any]
    future: Future[Any] = field(default_factory=Future)


_Item = _Append | _Finish | _Task


class Journal:
    """Append, finish and replay; any thread may call. The constructor opens the file, or raises.

    When the database fails, nothing waits for it: what comes is acknowledged and scored, counted in :attr:`errors` and
    :attr:`unjournalled`, and :attr:`trouble` says what is wrong until it works again. Verdicts wait in memory, at most
    ``OWED_MAX`` of them.

    :raises StateError: the file cannot be opened as a database, or another process serves with it.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        keeper: Keeper | None = None,
        durable: bool = False,
        bytes_max: int = 4 << 30,
        verdicts_max: int = 200_000,
    ) -> None:
        self.path = Path(path)
        self._keeper = keeper
        self._bytes_max = bytes_max
        self._verdicts_max = verdicts_max
        self.errors: Counter[str] = Counter({"append": 0, "verdict": 0, "full": 0, "keep": 0, "read": 0, "prune": 0})
        self.unjournalled = 0  # spans that were acknowledged and are in no journal
        self.commit_seconds = Family(_COMMIT_SECONDS, budget=1)
        self._commit_seconds: Spread = self.commit_seconds.at(())
        self.size = 0  # bytes of the database that are in use
        self.trouble: str | None = None
        self._items: deque[_Item] = deque()
        self._owed: deque[_Finish] = deque()
        self._bell = threading.Event()
        self._closing = False
        self._retry_at = 0.0
        self._may_log = Seldom()
        self._pruned_at = self._sized_at = time.monotonic()
        self._database = Database(self.path, keeper=keeper, durable=durable)
        self._connection = self._database.connection
        self.since_ns: Final = self._database.since_ns
        """Unix time of the first start with this file: all spans since then came here, also those before a restart."""
        self._last_given = self._database.largest("verdicts", "given")
        self._seq = self.seq_at_start = self._database.largest("journal", "seq")
        self._thread = threading.Thread(target=self._run, name="reach-otel-journal", daemon=True)
        self._thread.start()

    # Any thread.

    def append(self, rows: Sequence[Row], spans: int, done: Callable[[int | None], None]) -> None:
        """Write rows; ``done`` is called on the journal's thread, in the order of the calls.

        It is told the sequence number of the last row once all are safe, or ``None`` when they could not be written.
        """
        self._put(_Append(rows, spans, done, sum(len(row) for _, row in rows)))

    def finish(
        self,
        records: Sequence[Record],
        runs: Sequence[str],
        traces: Sequence[str],
        up_to: int,
        done: Callable[[], None] | None = None,
    ) -> None:
        """Give verdicts: keep ``records``, note ``runs`` as decided, forget rows of ``traces`` up to a number.

        ``done`` is called on the journal's thread once that is safe; also when the database fails, as the verdicts are
        then owed.
        """
        self._put(_Finish(records, runs, traces, up_to, done))

    def run(self, function: Callable[[sqlite3.Connection], T]) -> Future[T]:
        """Run ``function`` on the journal's thread, in a transaction of its own."""
        task = _Task(function)
        self._put(task)
        return task.future

    def close(self, timeout_seconds: float = 10.0) -> bool:
        """Write what waits, and close the file; ``False`` when time did not suffice."""
        self._closing = True
        self._bell.set()
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _put(self, item: _Item) -> None:
        if self._closing and not self._thread.is_alive():
            raise StateError("the journal is closed")
        self._items.append(item)
        self._bell.set()

    # At start, before anything is written.

    def decided(self) -> list[str]:
        """Name the runs that have their verdict, oldest first."""
        return self.run(
            lambda connection: [run for (run,) in connection.execute("SELECT run FROM verdicts ORDER BY given, run")]
        ).result()

    def replay(self, after: int = 0, rows_at_once: int = 500) -> Iterator[tuple[int, bytes]]:
        """Give the rows that were there at the start, with their numbers, in the order in which they came.

        :raises sqlite3.Error: the database cannot be read now.
        """
        last = self.seq_at_start
        at = after
        query = "SELECT seq, steps FROM journal WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
        while True:
            found: list[tuple[int, bytes]] = self.run(
                lambda connection, at=at: connection.execute(query, (at, last, rows_at_once)).fetchall()  # type: ignore[misc]
            ).result()
            if not found:
                return
            yield from found
            at = found[-1][0]

    # The journal's thread.

    def _run(self) -> None:
        while True:
            group = self._next_group()
            if group:
                self._commit(group)
            elif self._closing:
                break
            elif (self._owed or self.trouble is not None) and time.monotonic() >= self._retry_at:
                self._write([], [])
            else:
                self._keep_house()
                if not self._items:
                    self._bell.wait(RETRY_SECONDS)
                self._bell.clear()
        self._database.close()

    def _next_group(self) -> list[_Item]:
        group: list[_Item] = []
        size = 0
        while self._items and size < GROUP_BYTES:
            item = self._items.popleft()
            group.append(item)
            if isinstance(item, _Append):
                size += item.size
            elif isinstance(item, _Task):
                break  # a transaction of its own
        return group

    def _commit(self, group: list[_Item]) -> None:
        task = group.pop() if group and isinstance(group[-1], _Task) else None
        appends = [item for item in group if isinstance(item, _Append)]
        finishes = [item for item in group if isinstance(item, _Finish)]
        if appends or finishes:
            numbers = self._write(appends, finishes)
            for item in group:
                if isinstance(item, _Append):
                    _tell(item.done, numbers.pop(0) if numbers is not None else None)
                elif isinstance(item, _Finish) and item.done is not None:
                    _tell(item.done)
        if isinstance(task, _Task):
            self._do(task)

    def _write(self, appends: list[_Append], finishes: list[_Finish]) -> list[int | None] | None:
        """Write one group; returns the last number of each append, or ``None`` when it failed as a whole."""
        is_full = self._is_full()
        finishes = [*self._owed, *finishes]
        if time.monotonic() >= self._retry_at:
            start = time.perf_counter()
            try:
                self._begin()
                numbers = [None if is_full else self._insert(item) for item in appends]
                self._decide(finishes)
                if self.trouble is not None:  # an empty transaction would succeed on a full disk too
                    self._connection.execute("REPLACE INTO probe VALUES (1, randomblob(4096))")
                self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                self._database.roll_back()
                self._failed(error, len(appends), len(finishes))
            except Exception as error:  # noqa: BLE001 - what went wrong is not the database: it would go wrong again
                logger.error("a group of spans and verdicts is not written: %s", told(error))
                self._database.roll_back()
                self._failed(error, len(appends), len(finishes))
                finishes = []
            else:
                self._commit_seconds.observe(time.perf_counter() - start)
                self._owed.clear()
                self.trouble = None
                if is_full and appends:
                    self.errors["full"] += len(appends)
                    self.unjournalled += sum(item.spans for item in appends)
                if is_full:
                    self.trouble = f"the database is larger than {self._bytes_max} bytes"
                return numbers
        self._owed.clear()
        self._owed.extend(finishes[-OWED_MAX:])
        self.unjournalled += sum(item.spans for item in appends)
        return None

    def _begin(self) -> None:
        self._database.begin(is_sick=self.trouble is not None)

    def _insert(self, item: _Append) -> int:
        rows = item.rows
        for at in range(0, len(rows), INSERT_ROWS):
            part = rows[at : at + INSERT_ROWS]
            values: list[object] = []
            for trace, steps in part:
                self._seq += 1
                values += (self._seq, trace, steps)
            self._connection.execute(f"INSERT INTO journal VALUES {', '.join(['(?, ?, ?)'] * len(part))}", values)
        return self._seq

    def _decide(self, finishes: list[_Finish]) -> None:
        records = [record for item in finishes for record in item.records]
        runs = [run for item in finishes for run in item.runs]
        free = [(trace, item.up_to) for item in finishes for trace in item.traces]
        if runs:
            self._last_given += 1
            given = self._last_given
            self._connection.executemany("INSERT OR IGNORE INTO verdicts VALUES (?, ?)", [(run, given) for run in runs])
        if records and self._keeper is not None:
            self._keep(self._keeper, records)
        if free:
            self._connection.executemany("DELETE FROM journal WHERE trace = ? AND seq <= ?", free)

    def _keep(self, keeper: Keeper, records: Sequence[Record]) -> None:
        """Keep finished runs; one that cannot be kept has its verdict all the same, and takes no other along."""
        try:
            self._connection.execute("SAVEPOINT keep")
            keeper.write(self._connection, records)
        except sqlite3.OperationalError:
            raise  # the database itself: all of it again later
        except Exception as error:  # noqa: BLE001
            self._connection.execute("ROLLBACK TO keep")
            if len(records) > 1:
                for record in records:
                    self._keep(keeper, (record,))
            else:
                self.errors["keep"] += 1
                logger.warning("a finished run could not be kept: %s", told(error))
        self._connection.execute("RELEASE keep")

    def _do(self, task: _Task) -> None:
        if not task.future.set_running_or_notify_cancel():
            return
        try:
            self._begin()
            result = task.function(self._connection)
            self._connection.execute("COMMIT")
        except BaseException as error:  # noqa: BLE001 - it belongs to who asked
            self._database.roll_back()
            task.future.set_exception(error)
        else:
            task.future.set_result(result)

    def _failed(self, error: Exception, appends: int, finishes: int) -> None:
        self.errors["append"] += appends
        self.errors["verdict"] += finishes
        self.trouble = str(error) if isinstance(error, sqlite3.Error) else f"internal error ({type(error).__name__})"
        self._retry_at = time.monotonic() + RETRY_SECONDS
        if self._may_log():
            logger.error("the journal %s fails: %s; scoring goes on, and spans are not kept", self.path, self.trouble)

    # House-keeping.

    def _is_full(self) -> bool:
        now = time.monotonic()
        if now - self._sized_at >= SIZE_SECONDS or not self.size:
            self._sized_at = now
            self.size = self._database.used_bytes() or self.size
        return self.size > self._bytes_max

    def _keep_house(self) -> None:
        """Let old records go, and give freed space back to the file system, while there is nothing else to do."""
        now = time.monotonic()
        if now - self._pruned_at < PRUNE_SECONDS:
            return
        self._pruned_at = now
        try:
            self._begin()
            if self._keeper is not None:
                self._keeper.prune(self._connection)
            self._connection.execute(
                "DELETE FROM verdicts WHERE run IN (SELECT run FROM verdicts ORDER BY given DESC LIMIT -1 OFFSET ?)",
                (self._verdicts_max,),
            )
            self._connection.execute("COMMIT")
            self._database.shrink()
        except sqlite3.Error as error:
            self._database.roll_back()
            self.errors["prune"] += 1
            self._failed(error, 0, 0)


def _tell(done: Callable[..., object], *args: object) -> None:
    try:
        done(*args)
    except Exception:
        logger.warning("nobody could be told of a commit", exc_info=True)

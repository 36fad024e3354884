"""Check that the journal keeps what it acknowledged, in order, one transaction a verdict, and survives faults."""

from __future__ import annotations

import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reach_otel.engine import Engine
from reach_otel.engine.events import RunClosed
from reach_otel.engine.record import Record
from reach_otel.errors import InputError, StateError
from reach_otel.service import database
from reach_otel.service import journal as module
from reach_otel.service.journal import Journal
from reach_otel.service.journal_rows import rows_of, steps_of
from reach_otel.span import Answer, Call, Step, Text, Tokens
from reach_otel.task.task import Tasks


class Keeper:
    """Keep run ids in a table; fail for runs that start with ``bad``."""

    def prepare(self, connection: sqlite3.Connection, /) -> None:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (run TEXT)")

    def write(self, connection: sqlite3.Connection, records: Sequence[Record], /) -> None:
        for record in records:
            connection.execute("INSERT INTO kept VALUES (?)", (record.run,))
            if record.run.startswith("bad"):
                raise ValueError("this one cannot be kept")

    def prune(self, connection: sqlite3.Connection, /) -> None:
        connection.execute("DELETE FROM kept WHERE run LIKE 'old%'")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
def make(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Journal]]:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(module, "SIZE_SECONDS", 0.0)
    made: list[Journal] = []

    def open_journal(**options: Any) -> Journal:
        made.append(Journal(path, keeper=Keeper(), **options))
        return made[-1]

    yield open_journal
    for one in made:
        one.close()


def append(journal: Journal, *rows: tuple[str, bytes]) -> int | None:
    """Append and wait; gives what the journal said."""
    told: list[int | None] = []
    done = threading.Event()

    def tell(seq: int | None) -> None:
        told.append(seq)
        done.set()

    journal.append(rows, len(rows), tell)
    assert done.wait(10)
    return told[0]


def finish(journal: Journal, *runs: str, traces: Sequence[str] = (), up_to: int = 1_000) -> None:
    done = threading.Event()
    journal.finish([record_of(run) for run in runs], runs, traces, up_to, done.set)
    assert done.wait(10)


def record_of(run: str) -> Record:
    engine = Engine(Tasks())
    engine.feed([Step(kind="tool", trace_id=run, span_id="a", start_ns=1, end_ns=2, tool="look")], 0)
    (event,) = [event for event in engine.close(0) if isinstance(event, RunClosed)]
    return event.record


def kept(journal: Journal, table: str, column: str) -> list[Any]:
    query = f"SELECT {column} FROM {table} ORDER BY 1"
    return [value for (value,) in journal.run(lambda connection: connection.execute(query).fetchall()).result(10)]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_was_acknowledged_is_replayed_in_order(make: Callable[..., Journal]) -> None:
    """Rows come back after a restart with their numbers, in the order in which they came."""
    journal = make()
    assert append(journal, ("t1", b"one"), ("t2", b"two")) == 2
    assert append(journal, ("t1", b"three")) == 3
    journal.close()
    again = make()
    assert list(again.replay()) == [(1, b"one"), (2, b"two"), (3, b"three")]
    assert list(again.replay(after=1, rows_at_once=1)) == [(2, b"two"), (3, b"three")]
    assert append(again, ("t3", b"four")) == 4
    assert [seq for seq, _ in again.replay()] == [1, 2, 3], "what came since the start is no part of the replay"


def test_the_first_start_with_a_file_is_remembered(make: Callable[..., Journal]) -> None:
    """Restarts do not change it: what came before them is in the file."""
    before_ns = time.time_ns()
    journal = make()
    first_ns = journal.since_ns
    assert first_ns is not None
    assert before_ns <= first_ns <= time.time_ns()
    append(journal, ("t1", b"one"))
    journal.close()
    assert make().since_ns == first_ns


@pytest.mark.parametrize("table", ["journal", "verdicts"])
def test_the_first_start_with_a_file_of_an_earlier_version_is_unknown(make: Callable[..., Journal], table: str) -> None:
    """It was used before anybody noted when; that stays so."""
    journal = make()
    if table == "journal":
        append(journal, ("t1", b"one"))
    else:
        finish(journal, "t1")
    journal.run(lambda connection: connection.execute("DROP TABLE facts")).result(10)
    for _ in range(2):
        journal.close()
        journal = make()
        assert journal.since_ns is None


def test_a_verdict_ends_the_journal_of_its_trace_only(make: Callable[..., Journal]) -> None:
    """Verdict, record and the end of the rows are one; later rows and other traces stay."""
    journal = make()
    append(journal, ("t1", b"one"), ("t2", b"two"))
    last = append(journal, ("t1", b"three"))
    append(journal, ("t1", b"four"))
    finish(journal, "t1", traces=["t1"], up_to=last or 0)
    assert kept(journal, "journal", "steps") == [b"four", b"two"]
    assert kept(journal, "kept", "run") == ["t1"]
    assert journal.decided() == ["t1"]
    journal.close()
    assert make().decided() == ["t1"]


def test_many_appends_share_commits(make: Callable[..., Journal]) -> None:
    """What waits while a transaction is under way goes into the next one, and is told in order."""
    journal = make()
    told: list[int | None] = []
    gate = threading.Event()
    journal.run(lambda _: gate.wait(10))
    for n in range(500):
        journal.append([("t", b"%d" % n)], 1, told.append)
    gate.set()
    until(lambda: len(told) == 500)
    assert told == list(range(1, 501))
    assert sum(journal.commit_seconds.at(()).counts) < 10


def test_the_file_is_for_its_owner_alone(make: Callable[..., Journal], path: Path) -> None:
    """The journal holds what agents said: nobody else may read it, also where the file was there before."""
    path.touch(mode=0o644)
    journal = make()
    append(journal, ("t1", b"one"))
    for file in path.parent.glob("journal.db*"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_a_locked_file_does_not_stop_anything(make: Callable[..., Journal], path: Path) -> None:
    """While another process holds the lock, spans are acknowledged and counted as not kept; verdicts are owed."""
    journal = make()
    append(journal, ("t1", b"one"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert append(journal, ("t2", b"two")) is None
    finish(journal, "t1", traces=["t1"])
    assert journal.trouble == "database is locked"
    assert journal.unjournalled == 1
    assert journal.errors["append"] == 1
    other.execute("ROLLBACK")
    other.close()
    until(lambda: journal.trouble is None)
    assert append(journal, ("t3", b"three")) is not None
    assert kept(journal, "kept", "run") == ["t1"]
    assert kept(journal, "journal", "trace") == ["t3"]


def test_a_full_disk_does_not_stop_anything(make: Callable[..., Journal]) -> None:
    """The same when there is no space; it is tried again by itself, with a write that needs space."""
    journal = make()
    append(journal, ("t1", b"one"))
    pages = journal.run(lambda c: c.execute("PRAGMA page_count").fetchone()[0]).result()
    journal.run(lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchall()).result()
    assert append(journal, ("t2", b"x" * 100_000)) is None
    assert journal.trouble == "database or disk is full"
    time.sleep(0.2)
    assert journal.trouble == "database or disk is full", "an empty transaction is no proof of space"
    journal.run(lambda c: c.execute("PRAGMA max_page_count = 1000000").fetchall()).result()
    until(lambda: journal.trouble is None)
    assert append(journal, ("t3", b"x" * 100_000)) is not None


def test_a_database_over_its_bound_takes_verdicts_but_no_spans(make: Callable[..., Journal]) -> None:
    """Beyond the bound spans are acknowledged, scored and counted; as verdicts free space, it goes on by itself."""
    journal = make(bytes_max=400_000)
    last = append(journal, ("t1", b"x" * 500_000))
    assert last == 1
    assert append(journal, ("t2", b"two")) is None
    assert journal.trouble == "the database is larger than 400000 bytes"
    assert (journal.errors["full"], journal.unjournalled) == (1, 1)
    finish(journal, "t1", traces=["t1"])
    until(lambda: journal.trouble is None)
    assert append(journal, ("t3", b"three")) is not None


def test_a_record_that_cannot_be_kept_takes_no_other_along(make: Callable[..., Journal]) -> None:
    """Its verdict stands all the same, so that the run is not scored again."""
    journal = make()
    finish(journal, "good", "bad", "fine")
    assert kept(journal, "kept", "run") == ["fine", "good"]
    assert sorted(journal.decided()) == ["bad", "fine", "good"]
    assert journal.errors["keep"] == 1
    assert journal.trouble is None


def test_a_fault_of_our_own_is_counted_and_ends_nothing(make: Callable[..., Journal]) -> None:
    """A group that cannot be written for a reason of its own is told as not kept, and the next one is written."""
    journal = make()
    assert append(journal, ("no \ud800 text", b"one")) is None
    finish(journal, "good")
    until(lambda: journal.trouble is None)
    assert append(journal, ("t2", b"two")) is not None
    assert kept(journal, "journal", "trace") == ["t2"]


def test_what_a_caller_runs_is_one_transaction(make: Callable[..., Journal]) -> None:
    """It is done as a whole or not at all, and what it raises is the caller's."""
    journal = make()

    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO kept VALUES ('half')")
        raise KeyError("of the caller")

    with pytest.raises(KeyError):
        journal.run(fail).result(10)
    assert kept(journal, "kept", "run") == []


def test_somebody_who_fails_to_listen_is_no_matter(make: Callable[..., Journal]) -> None:
    """The event loop of a caller may have ended."""
    journal = make()

    def fail(_: int | None) -> None:
        raise RuntimeError("the loop is closed")

    journal.append([("t1", b"one")], 1, fail)
    assert append(journal, ("t2", b"two")) == 2


def test_old_verdicts_and_records_are_forgotten(make: Callable[..., Journal], monkeypatch: pytest.MonkeyPatch) -> None:
    """While idle, the keeper prunes, and only the latest verdicts are remembered."""
    monkeypatch.setattr(module, "PRUNE_SECONDS", 0.05)
    journal = make(verdicts_max=2)
    for run in ("old-1", "new-1", "new-2", "new-3"):
        finish(journal, run)
    until(lambda: journal.decided() == ["new-2", "new-3"])
    assert kept(journal, "kept", "run") == ["new-1", "new-2", "new-3"]


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    """The message names the file and what SQLite says."""
    path.write_bytes(b"this is no database, and long enough to be read as one" * 100)
    with pytest.raises(StateError, match=r"journal\.db: the database cannot be opened \(file is not a database\)"):
        Journal(path)
    with pytest.raises(StateError, match="cannot be opened"):
        Journal(path.parent)


def test_two_services_never_share_a_file(make: Callable[..., Journal], path: Path) -> None:
    """A second one would score the same spans again; it is told who else is there, and may start after the first."""
    journal = make()
    with pytest.raises(StateError, match=r"journal\.db: another service uses it"):
        Journal(path)
    journal.close()
    make()


def test_a_closed_journal_says_so(make: Callable[..., Journal]) -> None:
    """What comes after the end is refused, what came before is written."""
    journal = make()
    journal.append([("t1", b"one")], 1, lambda _: None)
    assert journal.close()
    with pytest.raises(StateError):
        journal.append([("t2", b"two")], 1, lambda _: None)
    assert [row for _, row in make().replay()] == [b"one"]


FULL_STEP = Step(
    kind="tool",
    trace_id="t" * 32,
    span_id="s" * 16,
    start_ns=1,
    end_ns=2**63 - 1,
    parent_id="p",
    parent_remote=False,
    name="näme",
    agent="bot",
    tool="look",
    call_id="c",
    args={"a": [1, 2.5, None, True, {"b": "漢"}]},
    result=[{"x": "y"}, "z", float("inf")],
    has_args=True,
    has_result=True,
    ok=False,
    error="broken",
    calls=(Call("t", "1", {"x": 1}, "handoff"),),
    answers=(Answer("1", "t", {"ok": True}, False, "e"),),
    texts=(Text("user", "hello"),),
    output="out",
    plan=[{"tool": "t"}],
    model="m",
    tokens=Tokens(1, 2, 3, 4),
    cut=True,
    run_id="r",
    conversation_id="c",
    task="t",
    variant="v",
    workflow="w",
    service="s",
    service_version="1",
    attributes={"k": [1, "x"]},
)


@pytest.mark.parametrize(
    "step",
    [
        FULL_STEP,
        Step("model", "t", "s", 1, 2),
        Step("tool", "t", "s", 1, 2, args={"big": 2**80, "small": -(2**70)}, has_args=True),
        Step("tool", "t", "s", 1, 2, result="half \ud83d of a pair", has_result=True),
    ],
    ids=["all fields", "no fields", "numbers beyond 64 bits", "half a surrogate pair"],
)
def test_steps_come_back_as_they_were(step: Step) -> None:
    """Every field survives the journal, also values for which its usual form has no place."""
    assert set(Step.__struct_fields__) == {name for name in Step.__struct_fields__ if hasattr(step, name)}
    ((trace, row),) = rows_of([step])
    assert trace == step.trace_id
    assert steps_of(row) == [step]


@pytest.mark.parametrize("kind", [b"m", b"j"])
def test_rows_of_an_earlier_version_are_read(kind: bytes) -> None:
    """Fields that a step did not have then are as if the sender had not said."""
    step = Step("tool", "t", "a", 1, 2, tool="look", args={"x": 1}, has_args=True)
    fields = msgspec.to_builtins(step)
    for later in ("masked", "sampled", "variant_on_span"):
        del fields[later]
    body = msgspec.msgpack.encode([fields]) if kind == b"m" else msgspec.json.encode([fields])
    assert steps_of(kind + body) == [step]


def test_rows_are_by_trace_in_order() -> None:
    """Each trace has one row, with its steps in order."""
    steps = [Step("tool", trace, str(n), n, n) for n, trace in enumerate("abacb")]
    rows = rows_of(steps)
    assert [trace for trace, _ in rows] == ["a", "b", "c"]
    assert [[step.span_id for step in steps_of(row)] for _, row in rows] == [["0", "2"], ["1", "4"], ["3"]]


@pytest.mark.parametrize("row", [b"", b"m", b"m\xff\xff", b"j{", b"x", b"j[1]"])
def test_a_damaged_row_is_told_apart(row: bytes) -> None:
    """It raises what the scorer counts, and nothing else."""
    with pytest.raises(InputError):
        steps_of(row)

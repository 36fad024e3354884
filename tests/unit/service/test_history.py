"""The history keeps each verdict once, whole, without what may not be kept, and only so many."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reach_otel.errors import StateError
from reach_otel.service import queries
from reach_otel.service.entries import Opinion, clean, unpack, without_content
from reach_otel.service.history import FEEDBACK_A_RUN_MAX, MIGRATIONS, PRUNE_RUNS, History
from reach_otel.service.listing import Filter
from tests.support.records import milestone, record, step

TABLES = ("runs", "bodies", "milestones", "findings", "obstacles")
DAY_MS = 86_400_000


class Clock:
    def __init__(self) -> None:
        self.ms = 1_800_000_000_000

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def conn(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(tmp_path / "h.db", isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    yield connection
    connection.close()


def history(conn: sqlite3.Connection, **options: Any) -> History:
    made = History(**options)
    made.prepare(conn)
    return made


def counts(conn: sqlite3.Connection) -> dict[str, int]:
    return {table: conn.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}


def test_a_record_comes_back_field_by_field_but_for_the_content_of_its_steps(conn: sqlite3.Connection) -> None:
    """What is read is what the engine wrote, with arguments, results and error texts left out."""
    written = record(findings=("loop", "stuck", "loop"), failed=("L2", "L4"))
    assert history(conn).write(conn, [written]) == 1
    stored = queries.run(conn, "r1")
    assert stored is not None
    want = msgspec.json.decode(msgspec.json.encode(written))
    steps = want.pop("steps")
    assert stored.record == want
    assert stored.steps == [without_content(one) for one in steps]
    assert stored.last_tool == "t"


@pytest.mark.parametrize("show_content", [False, True])
def test_content_of_steps_is_kept_only_when_it_is_asked_for(conn: sqlite3.Connection, show_content: bool) -> None:
    """No argument, result or error text gets into any column of any table unless the setting says so."""
    history(conn, show_content=show_content).write(conn, [record()])
    kept = ""
    for table in TABLES:
        for row in conn.execute(f"SELECT * FROM {table}"):
            kept += str([unpack(value) if isinstance(value, bytes) else value for value in row])
    for secret in ("s3cr3t-in", "s3cr3t-out", "s3cr3t-error"):
        assert (secret in kept) is show_content


def test_a_run_keeps_its_first_verdict(conn: sqlite3.Connection) -> None:
    """A second verdict on a run changes nothing, in no table."""
    kept = history(conn)
    assert kept.write(conn, [record(outcome="success"), record("r2")]) == 2
    before = counts(conn)
    assert kept.write(conn, [record(outcome="failed"), record("r3")]) == 1
    stored = queries.run(conn, "r1")
    assert stored is not None
    assert stored.record["outcome"] == "success"
    assert counts(conn) == {table: number + number // 2 for table, number in before.items()}


def test_a_verdict_is_part_of_the_callers_transaction(conn: sqlite3.Connection) -> None:
    """What the caller rolls back leaves no trace: verdict and journal are one."""
    kept = history(conn)
    conn.execute("BEGIN IMMEDIATE")
    kept.write(conn, [record()])
    assert conn.in_transaction
    conn.execute("ROLLBACK")
    assert counts(conn) == dict.fromkeys(TABLES, 0)


def test_one_odd_record_does_not_take_the_others_along(conn: sqlite3.Connection) -> None:
    """A record that makes no row, or that the database refuses, is counted and left out."""
    kept = history(conn)
    odd = [record("r2", start="yesterday"), record("r4", milestones=(milestone("x", action=1 << 70),))]
    assert kept.write(conn, [record("r1"), odd[0], record("r3"), odd[1], record("r5")]) == 3
    assert kept.unwritten == 2
    assert counts(conn)["runs"] == counts(conn)["bodies"] == 3


def test_text_that_is_none_is_mended(conn: sqlite3.Connection) -> None:
    """Half a surrogate pair in a name is kept as a question mark, and the run is found."""
    name = "agent \ud800"
    assert (
        history(conn, show_content=True).write(conn, [record("r\udfff", agent=name, steps=(step(args={"\ud800": 1}),))])
        == 1
    )
    stored = queries.run(conn, clean("r\udfff"))
    assert stored is not None
    assert stored.record["agent"] == "agent ?"
    assert queries.page(conn, Filter(agent="agent ?"), limit=5, before=None).runs[0]["agent"] == "agent ?"


def test_a_full_disk_is_the_callers_to_see_and_leaves_nothing_half_written(conn: sqlite3.Connection) -> None:
    """When the database is full, the error comes out, and the rollback takes all of the group."""
    kept = history(conn)
    kept.write(conn, [record("r0")])
    (pages,) = conn.execute("PRAGMA page_count").fetchone()
    conn.execute(f"PRAGMA max_page_count = {pages + 3}")
    conn.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.Error, match="full"):
        kept.write(conn, [record(f"r{n}", agent=f"{n}" * 200) for n in range(1, 500)])
    if conn.in_transaction:
        conn.execute("ROLLBACK")
    assert counts(conn)["runs"] == counts(conn)["bodies"] == 1
    assert kept.unwritten == 0


# Retention.


def test_rows_over_the_limit_go_with_the_writing(conn: sqlite3.Connection) -> None:
    """There are never more runs than allowed plus one batch; the oldest verdicts go, from every table."""
    kept = history(conn, rows_max=10)
    for batch in range(8):
        kept.write(conn, [record(f"r{batch * 5 + n}", findings=("loop",)) for n in range(5)])
        assert counts(conn)["runs"] <= 10
    left = [run for (run,) in conn.execute("SELECT run FROM runs ORDER BY id")]
    assert left == [f"r{n}" for n in range(30, 40)]
    assert counts(conn) == {"runs": 10, "bodies": 10, "milestones": 20, "findings": 10, "obstacles": 10}


def test_a_smaller_limit_is_reached_in_bounded_steps(conn: sqlite3.Connection) -> None:
    """A history that is far too large shrinks by at most twice what comes, or by one idle step at a time."""
    history(conn).write(conn, [record(f"r{n}") for n in range(60)])
    kept = History(rows_max=10)
    kept.write(conn, [record("new")])
    assert counts(conn)["runs"] == 59
    assert kept.prune(conn) == 49
    assert counts(conn)["runs"] == 10
    assert kept.prune(conn) == 0


def test_what_is_too_old_goes(conn: sqlite3.Connection, clock: Clock) -> None:
    """Age counts from the verdict, whatever times the spans bear; an idle step drops at most so many."""
    kept = history(conn, retention_days=2, time_ms=clock)
    kept.write(conn, [record(f"old{n}", start_us=2**53) for n in range(PRUNE_RUNS + 5)])
    clock.ms += DAY_MS
    kept.write(conn, [record("middle", start_us=0)])
    clock.ms += DAY_MS + 1
    assert kept.prune(conn) == PRUNE_RUNS
    assert kept.prune(conn) == 5
    assert kept.prune(conn) == 0
    assert [run for (run,) in conn.execute("SELECT run FROM runs")] == ["middle"]


def test_a_clock_that_goes_back_drops_nothing_young(conn: sqlite3.Connection, clock: Clock) -> None:
    """A verdict from a moment when the clock was wrong neither stays for ever nor takes others along."""
    kept = history(conn, retention_days=2, time_ms=clock)
    clock.ms += 1_000 * DAY_MS
    kept.write(conn, [record("future")])
    clock.ms -= 1_000 * DAY_MS
    kept.write(conn, [record("now")])
    assert kept.prune(conn) == 0
    assert counts(conn)["runs"] == 2


# Feedback.


def test_feedback_counts_once_under_one_id(conn: sqlite3.Connection) -> None:
    """The same again is known, other words under the same id clash, and nothing is overwritten."""
    kept = history(conn)
    said = Opinion("a", quality=7.0, milestones={"one": "reached"})
    assert kept.add_feedback(conn, "r1", said) == "created"
    assert kept.add_feedback(conn, "r1", said) == "known"
    assert kept.add_feedback(conn, "r2", said) == "clash"
    assert kept.add_feedback(conn, "r1", Opinion("a", quality=8.0)) == "clash"
    (only,) = queries.feedback(conn, "r1")
    assert (only["quality"], only["milestones"]) == (7.0, {"one": "reached"})


def test_feedback_on_one_run_has_an_end(conn: sqlite3.Connection) -> None:
    """Beyond the limit nothing more is kept of a run, and of others it is."""
    kept = history(conn)
    results = {kept.add_feedback(conn, "r1", Opinion(f"{n}", quality=1.0)) for n in range(FEEDBACK_A_RUN_MAX)}
    assert results == {"created"}
    assert kept.add_feedback(conn, "r1", Opinion("more", quality=1.0)) == "full"
    assert kept.add_feedback(conn, "r2", Opinion("more", quality=1.0)) == "created"


def test_feedback_goes_with_its_run(conn: sqlite3.Connection, clock: Clock) -> None:
    """It is dropped with the run, or by age where its run never came."""
    kept = history(conn, rows_max=1, retention_days=1, time_ms=clock)
    kept.write(conn, [record("r1")])
    for run in ("r1", "r2", "never"):
        kept.add_feedback(conn, run, Opinion(run, quality=1.0))
    kept.write(conn, [record("r2")])
    assert [run for (run,) in conn.execute("SELECT run FROM feedback ORDER BY run")] == ["never", "r2"]
    clock.ms += DAY_MS - 1
    kept.write(conn, [record("r3"), record("r4")])
    clock.ms += 2
    kept.prune(conn)
    assert conn.execute("SELECT count(*) FROM feedback").fetchone() == (0,)


# Versions.


def test_tables_are_made_once(conn: sqlite3.Connection) -> None:
    """A second start finds the tables of its version and leaves everything as it is."""
    history(conn).write(conn, [record()])
    history(conn)
    assert counts(conn)["runs"] == 1


def test_an_older_history_is_brought_forward(conn: sqlite3.Connection) -> None:
    """Only the steps that are missing run, and what was written before is there after."""
    history(conn).write(conn, [record()])
    later = (*MIGRATIONS, "ALTER TABLE runs ADD COLUMN colour TEXT; UPDATE runs SET colour = 'red'")
    History().prepare(conn, later)
    History().prepare(conn, later)
    assert conn.execute("SELECT run, colour FROM runs").fetchall() == [("r1", "red")]
    assert conn.execute("SELECT version FROM history_version").fetchall() == [(len(later),)]


def test_a_migration_that_fails_changes_nothing(conn: sqlite3.Connection) -> None:
    """All steps or none: the next start tries again from where it was."""
    history(conn).write(conn, [record()])
    with pytest.raises(sqlite3.OperationalError):
        History().prepare(conn, (*MIGRATIONS, "ALTER TABLE runs ADD COLUMN colour TEXT; UPDATE nothing SET x = 1"))
    assert conn.execute("SELECT version FROM history_version").fetchall() == [(len(MIGRATIONS),)]
    assert "colour" not in [row[1] for row in conn.execute("PRAGMA table_info(runs)")]
    history(conn)


def test_a_history_of_a_later_release_is_refused(conn: sqlite3.Connection) -> None:
    """It is left alone, and the message says what to do."""
    history(conn)
    conn.execute("UPDATE history_version SET version = 99")
    with pytest.raises(StateError, match="newer release"):
        History().prepare(conn)

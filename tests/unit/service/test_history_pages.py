"""Lists show each run once, in one order, whatever is asked for and whatever happens between two pages."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reach_otel.engine.conclude import _time
from reach_otel.engine.events import RunSummary
from reach_otel.engine.record import Record
from reach_otel.service import queries
from reach_otel.service.entries import micros, micros_of, rfc3339
from reach_otel.service.history import History
from reach_otel.service.listing import BadCursor, Filter, cursor_of, place_of
from tests.support.records import START_US, record, summary

FINDINGS = ("loop", "stuck", "unused")
TASKS = ("one", "two")


def database(records: Sequence[Record] = ()) -> tuple[sqlite3.Connection, History]:
    conn = sqlite3.connect(":memory:", isolation_level=None)
    history = History()
    history.prepare(conn)
    history.write(conn, records)
    return conn, history


def walk(conn: sqlite3.Connection | None, asked: Filter, limit: int, **sources: Any) -> list[dict[str, Any]]:
    """Page through all that is asked for."""
    runs: list[dict[str, Any]] = []
    before = None
    while True:
        page = queries.page(conn, asked, limit=limit, before=before, **sources)
        assert len(page.runs) <= limit
        runs += page.runs
        if page.next is None:
            return runs
        assert len(page.runs) == limit
        before = place_of(page.next)


scores = st.sampled_from([0.0, 0.25, 0.5, 1.0])
maybe = st.sampled_from([None, 0.0, 0.25, 0.5, 1.0])
names = st.sampled_from([None, "a", "b", "x" * 300, "x" * 301])


@st.composite
def histories(draw: st.DrawFn) -> list[Record]:
    return [
        record(
            f"run {n}",
            start_us=START_US + draw(st.integers(0, 5)),
            task=draw(st.sampled_from(TASKS)),
            agent=draw(names),
            variant=draw(names),
            outcome=draw(st.sampled_from(["success", "failed", "abandoned"])),
            trace_id=draw(st.sampled_from(["t1", "t2"])),
            scores={"depth": draw(scores), "purity": draw(scores), "digestion": draw(maybe), "high_layer": draw(maybe)},
            findings=draw(st.lists(st.sampled_from(FINDINGS), max_size=3)),
        )
        for n in range(draw(st.integers(0, 12)))
    ]


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    return Filter(
        task=draw(st.sampled_from([None, *TASKS, "none"])),
        agent=draw(names),
        variant=draw(names),
        outcome=draw(st.sampled_from([None, "success", "abandoned"])),
        finding=draw(st.sampled_from([None, *FINDINGS])),
        trace=draw(st.sampled_from([None, None, "t1"])),
        score=draw(st.sampled_from(["depth", "purity", "digestion", "composite", "high_layer"])),
        min=draw(maybe),
        max=draw(maybe),
        since_us=draw(st.sampled_from([None, START_US + 2])),
        until_us=draw(st.sampled_from([None, START_US + 4])),
        live=draw(st.sampled_from([None, False])),
    )


@given(histories(), filters(), st.integers(1, 5))
def test_a_filter_says_the_same_in_sql_and_in_memory(records: list[Record], asked: Filter, limit: int) -> None:
    """The database finds exactly what a look at each record finds, in the same order, on pages of any size."""
    conn, _ = database(records)
    found = walk(conn, asked, limit)
    empty, _ = database()
    assert found == walk(empty, asked, 200, lately=records)
    starts = [(run["start"], run["run"]) for run in found]
    assert starts == sorted(starts, reverse=True)
    conn.close()
    empty.close()


@given(st.data())
def test_pages_stay_right_while_runs_come_in_and_end(data: st.DataObject) -> None:
    """Every run that was there at the first page, open or finished, is shown on exactly one page."""
    conn, history = database()
    live: dict[str, RunSummary] = {}
    closing: dict[str, Record] = {}
    starts = st.integers(START_US, START_US + 20)
    made = 0

    def happen() -> None:
        nonlocal made
        for _ in range(data.draw(st.integers(0, 4))):
            what = data.draw(st.sampled_from(["start", "start", "end", "commit"]))
            if what == "start":
                made += 1
                live[f"run {made}"] = summary(f"run {made}", data.draw(starts))
            elif what == "end" and live:
                run = data.draw(st.sampled_from(sorted(live)))
                closing[run] = record(run, start_us=micros(live.pop(run).started_ns))
            elif what == "commit" and closing:
                run = data.draw(st.sampled_from(sorted(closing)))
                history.write(conn, [closing.pop(run)])

    for _ in range(5):
        happen()
    there = {*live, *closing, *(run for (run,) in conn.execute("SELECT run FROM runs"))}
    seen: list[str] = []
    before = None
    while True:
        # the order in which a request reads: open runs, those that are closing, the database
        open_runs, lately = list(live.values()), list(closing.values())
        if data.draw(st.booleans()) and closing:
            history.write(conn, [closing.pop(next(iter(closing)))])
        page = queries.page(conn, Filter(), limit=2, before=before, open_runs=open_runs, lately=lately)
        seen += [run["run"] for run in page.runs]
        if page.next is None:
            break
        before = place_of(page.next)
        happen()
    assert len(seen) == len(set(seen))
    assert there <= set(seen)
    conn.close()


def test_a_run_that_has_ended_is_shown_with_its_verdict() -> None:
    """Where an open run's picture is older than its verdict, the verdict is shown, and once."""
    conn, history = database()
    ended = record("r", outcome="success")
    assert walk(None, Filter(live=True), 5, open_runs=[summary("r")], lately=[ended]) == []
    for write in (False, True):
        if write:
            history.write(conn, [ended])
        page = queries.page(conn, Filter(), limit=5, before=None, open_runs=[summary("r")], lately=[ended])
        assert [run["outcome"] for run in page.runs] == ["success"]
    conn.close()


@given(st.lists(st.integers(0, 4_000), max_size=30), st.integers(1, 6))
def test_open_runs_that_start_in_one_moment_are_all_shown(starts: list[int], limit: int) -> None:
    """Whatever lies within one microsecond or across two, each open run is on one page, in order."""
    runs = [summary(f"r{n:02}", started_ns=START_US * 1_000 + ns) for n, ns in enumerate(starts)]
    shown = [run["run"] for run in walk(None, Filter(), limit, open_runs=runs)]
    assert shown == [run.run_id for run in sorted(runs, key=lambda r: (micros(r.started_ns), r.run_id), reverse=True)]


def test_open_and_finished_can_be_asked_for_apart() -> None:
    """``live`` and the outcome ``running`` choose the side; without a database open runs are still shown."""
    conn, _ = database([record("done")])
    sources: dict[str, Any] = {"open_runs": [summary("open")], "lately": [record("just")]}

    def runs(connection: sqlite3.Connection | None, **asked: Any) -> set[str]:
        return {run["run"] for run in walk(connection, Filter(**asked), 1, **sources)}

    assert runs(conn) == {"done", "open", "just"}
    assert runs(conn, live=True) == runs(conn, outcome="running") == runs(None, live=True) == {"open"}
    assert runs(conn, live=False) == {"done", "just"}
    assert runs(conn, live=False, outcome="running") == set()
    conn.close()


def test_a_name_that_is_very_long_is_found_by_its_whole_and_by_its_start() -> None:
    """Rows hold names cut to a length, and what is asked for is cut alike, in the database and in memory."""
    name = "n" * 300
    conn, _ = database([record("r", agent=name, variant=name)])
    for asked in (name, name[:256], name + "more"):
        for wanted in (Filter(agent=asked), Filter(variant=asked)):
            assert len(walk(conn, wanted, 5)) == 1
            assert len(walk(None, wanted, 5, open_runs=[summary("r", agent=name, variant=name)])) == 1
    conn.close()


def test_an_open_run_is_filtered_by_what_it_shows() -> None:
    """All filters apply to open runs as they do to finished ones."""
    run = summary("r", findings=("loop",), depth=0.5, agent="a")
    for asked, fits in (
        (Filter(finding="loop"), True),
        (Filter(finding="stuck"), False),
        (Filter(min=0.5, max=0.5), True),
        (Filter(min=0.51), False),
        (Filter(score="digestion", min=0.0), False),
        (Filter(task="one", agent="a", variant="v1", trace="r"), True),
        (Filter(agent="b"), False),
        (Filter(since_us=START_US, until_us=START_US + 1), True),
        (Filter(until_us=START_US), False),
    ):
        assert len(walk(None, asked, 5, open_runs=[run])) == fits, asked


@given(st.integers(0, 2**63 - 1))
def test_an_open_run_stands_where_its_record_will(ns: int) -> None:
    """The place of an open run equals that of its record to the microsecond, for any time that a span can have."""
    assert micros(ns) == micros_of(_time(ns))
    assert rfc3339(micros(ns)) == _time(ns)


@given(st.tuples(st.integers(-(2**63), 2**63 - 1), st.text(max_size=40)))
def test_a_cursor_is_read_back(place: tuple[int, str]) -> None:
    """Any place comes back from its cursor, which is fit for an address."""
    cursor = cursor_of(place)
    assert place_of(cursor) == place
    assert cursor.replace("-", "").replace("_", "").isalnum()


def test_a_cursor_of_a_huge_id_is_bounded() -> None:
    """An id that fills a page does not make an address that no server takes."""
    place = place_of(cursor_of((1, "x" * 100_000)))
    assert len(cursor_of((1, "x" * 100_000))) < 1_000
    assert place < (1, "x" * 100_000)


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "=", "!!", "WzEsMl0", "W10", "é", "A" * 4_096, cursor_of((5, "r"))[:-2], cursor_of((5, "r")) + "="],
)
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    """Anything that was not made by a page before is an error, and only that."""
    with pytest.raises(BadCursor):
        place_of(cursor)


@given(st.text(max_size=60))
def test_no_text_breaks_the_reading_of_cursors(text: str) -> None:
    """Any text is a cursor or is refused."""
    with suppress(BadCursor):
        place_of(text)

"""Ask the history: pages of runs, one run, one task over a window. Each function takes a read-only connection."""

from __future__ import annotations

import heapq
import sqlite3
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from reach_otel.engine.events import RunSummary
from reach_otel.service import shape
from reach_otel.service.entries import micros, micros_of, unpack
from reach_otel.service.listing import RUNNING, Filter, Place, cursor_of

if TYPE_CHECKING:
    from reach_otel.engine.record import Record


_STARTED = attrgetter("started_ns")
_ROUNDING_NS = 1_000_000  # more than a time in nanoseconds is off when it is rounded to microseconds


class Stored(Struct, frozen=True):
    """One run of the history: its record and steps in plain form."""

    record: dict[str, Any]
    steps: list[dict[str, Any]] | None
    last_tool: str | None


class Page(Struct, frozen=True):
    """One page of runs in small; ``next`` is the cursor of the page after it."""

    runs: list[dict[str, Any]]
    next: str | None


# Lists.


def page(
    conn: sqlite3.Connection | None,
    asked: Filter,
    *,
    limit: int,
    before: Place | None,
    open_runs: Sequence[RunSummary] = (),
    lately: Sequence[Record] = (),
) -> Page:
    """Give the ``limit`` latest runs before a place, open and finished ones in one order.

    A run keeps its place when it ends, and those that start while somebody pages stand before the first page: so no run
    is left out or shown twice. ``open_runs`` must have been read before ``lately``, and this before the database.
    Without a connection only open runs are shown.
    """
    ended = {record.run for record in lately}
    found: dict[str, tuple[Place, RunSummary | Record | int]] = {}
    if asked.wants_live:
        found.update(_open(open_runs, ended, asked, before, limit))
    if asked.wants_finished and conn is not None:
        ended_lately = _lately(lately, asked, before)
        found.update((item[0][1], item) for item in heapq.nlargest(limit + 1, ended_lately, key=_place_of))
        found.update(_finished(conn, asked, before, limit))
    chosen = heapq.nlargest(limit + 1, found.values(), key=_place_of)
    more, chosen = len(chosen) > limit, chosen[:limit]
    runs = [_shown(conn, source) for _, source in chosen]
    return Page([run for run in runs if run is not None], cursor_of(chosen[-1][0]) if more else None)


def _place_of(item: tuple[Place, object]) -> Place:
    return item[0]


def _open(
    runs: Sequence[RunSummary], ended: set[str], asked: Filter, before: Place | None, limit: int
) -> Iterator[tuple[str, tuple[Place, RunSummary]]]:
    """Give the latest open runs that fit, and those that start in the same microsecond as the last of them.

    There may be very many: they come nearly sorted, and are looked at from the latest on, until there are enough.
    """
    ordered = sorted(runs, key=_STARTED)
    count, last_us = 0, 0
    for index in range(len(ordered) if before is None else _behind(ordered, before), 0, -1):
        run = ordered[index - 1]
        place = (micros(run.started_ns), run.run_id)
        if count > limit and place[0] < last_us:
            return
        if (
            (before is None or place < before)
            and run.run_id not in ended
            and asked.fits(
                place[0],
                task=run.task,
                agent=run.agent,
                variant=run.variant,
                outcome=RUNNING,
                trace_id=run.trace_id,
                findings=run.findings,
                score=getattr(run, asked.score),
            )
        ):
            count, last_us = count + 1, place[0]
            yield run.run_id, (place, run)


def _behind(ordered: Sequence[RunSummary], before: Place) -> int:
    """Count the runs that can stand behind a place, by their start alone, roughly and never too few."""
    return bisect_right(ordered, before[0] * 1_000 + _ROUNDING_NS, key=_STARTED)


def _lately(records: Iterable[Record], asked: Filter, before: Place | None) -> Iterator[tuple[Place, Record]]:
    for record in records:
        place = (micros_of(record.start), record.run)
        if (before is None or place < before) and asked.fits(
            place[0],
            task=record.task,
            agent=record.agent,
            variant=record.variant,
            outcome=record.outcome,
            trace_id=record.trace_id,
            findings=[finding.finding for finding in record.findings],
            score=getattr(record.scores, asked.score),
        ):
            yield place, record


def _finished(
    conn: sqlite3.Connection, asked: Filter, before: Place | None, limit: int
) -> Iterator[tuple[str, tuple[Place, int]]]:
    tables, values = asked.where(before)
    for run_id, start_us, run in conn.execute(
        f"SELECT r.id, r.start_us, r.run FROM {tables} LIMIT ?", (*values, limit + 1)
    ):
        yield run, ((start_us, run), run_id)


def _shown(conn: sqlite3.Connection | None, source: RunSummary | Record | int) -> dict[str, Any] | None:
    if isinstance(source, int):
        if conn is None:
            return None
        row = conn.execute(
            "SELECT b.record, r.last_tool FROM bodies AS b JOIN runs AS r ON r.id = b.id WHERE b.id = ?", (source,)
        ).fetchone()
        return shape.of_plain(unpack(row[0]), row[1]) if row else None
    return shape.of_open(source) if isinstance(source, RunSummary) else shape.of_record(source)


# One run.


def run(conn: sqlite3.Connection, run_id: str) -> Stored | None:
    """Give one run, ``None`` where the history has none of this id."""
    row = conn.execute(
        "SELECT b.record, b.steps, r.last_tool FROM runs AS r JOIN bodies AS b ON b.id = r.id WHERE r.run = ?",
        (run_id,),
    ).fetchone()
    if row is None:
        return None
    return Stored(unpack(row[0]), unpack(row[1]) if row[1] is not None else None, row[2])


def tasks_of(conn: sqlite3.Connection, run_id: str | None, trace_id: str | None, limit: int) -> dict[str, str]:
    """Give the finished runs of an id or a trace, at most ``limit`` of them, with their tasks."""
    found = conn.execute(
        "SELECT run, task FROM runs WHERE run = ? UNION SELECT run, task FROM runs WHERE trace_id = ? LIMIT ?",
        (run_id, trace_id, limit),
    )
    return dict(found.fetchall())


def feedback(conn: sqlite3.Connection, run_id: str) -> list[dict[str, Any]]:
    """Give what people said of a run, earliest first."""
    found = conn.execute("SELECT received_ms, body FROM feedback WHERE run = ? ORDER BY received_ms, id", (run_id,))
    return [{"received_ms": at, **msgspec.json.decode(body)} for at, body in found]


def kept(conn: sqlite3.Connection) -> tuple[int, int | None]:
    """Count the finished runs, and give the Unix milliseconds of the oldest verdict; reads two rows only."""
    low, high = conn.execute("SELECT (SELECT min(id) FROM runs), (SELECT max(id) FROM runs)").fetchone()
    if low is None:
        return 0, None
    (oldest,) = conn.execute("SELECT decided_ms FROM runs WHERE id = ?", (low,)).fetchone()
    return high - low + 1, oldest

"""Put together what the API answers: from the scorer, from what ended lately, and from the history."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from reach_otel.service import queries, why, window
from reach_otel.service.entries import CONTENT, last_tool, plain, rfc3339, without_content
from reach_otel.service.reader import Unreadable

if TYPE_CHECKING:
    from reach_otel.engine.record import Record
    from reach_otel.service.desk import Desk
    from reach_otel.service.listing import Filter, Place
    from reach_otel.service.shared import Shared
    from reach_otel.task import Task

# Runs.


async def page(desk: Desk, asked: Filter, limit: int, before: Place | None) -> queries.Page:
    """Give one page of runs.

    The open ones are read first, the database last, so that a run that ends meanwhile is seen on one of both sides.

    :raises Unreadable: the database gives no answer.
    """
    shown = desk.live.snapshot()
    lately = [*desk.lately.records(), *shown.closing]

    def read(conn: sqlite3.Connection | None) -> queries.Page:
        return queries.page(conn, asked, limit=limit, before=before, open_runs=shown.open, lately=lately)

    return await (desk.reader.ask(read) if asked.wants_finished else asyncio.to_thread(read, None))


async def run(desk: Desk, run_id: str) -> dict[str, Any] | None:
    """Give one run with its steps and sentences that say why, ``None`` where it is neither open nor kept.

    :raises StateError: the scorer gives no answer.
    :raises Unreadable: the database gives none, and the run is not an open one.
    """
    record = await desk.live.record(run_id) or desk.lately.record(run_id)
    if record is not None:
        shown = _told(desk, *_parts(record))
        try:
            shown["feedback"] = _opinions(await desk.reader.ask(lambda conn: queries.feedback(conn, run_id)))
        except Unreadable:
            shown["feedback"] = None
        return shown
    stored, said = await desk.reader.ask(lambda conn: (queries.run(conn, run_id), queries.feedback(conn, run_id)))
    if stored is None:
        return None
    return {**_told(desk, stored.record, stored.steps, stored.last_tool), "feedback": _opinions(said)}


def _parts(record: Record) -> tuple[dict[str, Any], list[dict[str, Any]] | None, str | None]:
    body = plain(record)
    return body, body.pop("steps", None), last_tool(record.steps)


def _told(
    desk: Desk, record: dict[str, Any], steps: list[dict[str, Any]] | None, last_tool: str | None
) -> dict[str, Any]:
    """Add to a record what explains it, and leave out what may not be shown."""
    task = desk.tasks.by_name.get(record["task"])
    if steps is not None and not desk.show_content:
        steps = [without_content(step) for step in steps]
    return {
        **record,
        "steps": steps,
        "last_tool": last_tool,
        "content_shown": desk.show_content and any(step[key] is not None for step in steps or () for key in CONTENT),
        "why": why.milestones(record, steps, task),
        "why_levels": why.levels(record),
        "why_obstacles": why.obstacles(record, task),
        "why_outcome": why.outcome(record),
        "trace_url": desk.trace_url.replace("{trace_id}", quote(record["trace_id"], safe=""))
        if desk.trace_url
        else None,
    }


def _opinions(said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    empty = dict.fromkeys(("quality", "correct", "outcome", "milestones", "comment", "author"))
    return [{"received": rfc3339(one.pop("received_ms") * 1_000), **empty, **one} for one in said]


# Tasks.


def tasks(desk: Desk) -> dict[str, Any]:
    """Give all tasks as they were declared."""
    return {"tasks": [_task(task) for task in desk.tasks]}


def _task(task: Task) -> dict[str, Any]:
    ids = [milestone.id for milestone in task.milestones]
    return {
        "name": task.name,
        "description": task.description,
        "k": task.k,
        "retry_cap": task.retry_cap,
        "layer_weights": list(task.layer_weights),
        "milestones": [
            {
                "id": milestone.id,
                "description": milestone.description,
                "type": milestone.type,
                "layer": milestone.layer,
                "depends_on": [[ids[index] for index in group] for group in milestone.depends_on],
                "covers": ids[milestone.covers] if milestone.covers is not None else None,
                "tools": list(milestone.tools),
                "used": milestone.used,
                "required": [path.text for path in milestone.required],
            }
            for milestone in task.milestones
        ],
        "traps": [
            {
                "id": trap.id,
                "description": trap.description,
                "when_not_reached": [ids[index] for index in trap.when_not_reached],
            }
            for trap in task.traps
        ],
        "critical_edges": [[ids[a] if a is not None else None, ids[b]] for a, b in task.critical_edges],
    }


class Asked(NamedTuple):
    """Which runs of which task are summed up: those with a verdict in the last ``seconds``."""

    task: str
    seconds: int
    variant: str | None
    agent: str | None


async def summed(desk: Desk, sums: Shared[Asked, dict[str, Any]], asked: Asked) -> dict[str, Any]:
    """Sum up runs of a task; those who ask for the same share an answer, which says of what time it is.

    :raises Unreadable: the database gives none.
    """
    return await sums.get(asked, lambda: desk.reader.ask(lambda conn: _timed_sums(conn, desk, asked), slow=True))


def _timed_sums(conn: sqlite3.Connection, desk: Desk, asked: Asked) -> tuple[float, dict[str, Any]]:
    begun, until_ms = time.perf_counter(), time.time_ns() // 1_000_000
    since_ms = until_ms - asked.seconds * 1_000
    found = window.summary(
        conn,
        window.Window(asked.task, since_ms, until_ms, asked.variant, asked.agent),
        desk.tasks.by_name.get(asked.task),
    )
    found |= {"since": rfc3339(since_ms * 1_000), "until": rfc3339(until_ms * 1_000), "window_seconds": asked.seconds}
    return time.perf_counter() - begun, found


# The service itself.


async def system(desk: Desk) -> dict[str, Any]:
    """Show how the service does; what the database gives no answer to is null."""
    finished: int | None = None
    oldest_ms: int | None = None
    with suppress(Unreadable):
        finished, oldest_ms = await desk.reader.ask(queries.kept)
    oldest = rfc3339(oldest_ms * 1_000) if oldest_ms is not None else None
    return {
        **desk.vitals.shown(),
        "runs": {"active": desk.live.count, "finished": finished, "oldest": oldest},
        "watchers": desk.hub.clients,
        "journal": desk.journal() if desk.journal is not None else None,
    }

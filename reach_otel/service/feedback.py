"""Take what people say of runs: how good one was, and what is wrong with its verdict."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Body, HTTPException
from starlette.responses import Response

from reach_otel.errors import StateError
from reach_otel.service import api_models as models
from reach_otel.service import queries
from reach_otel.service.entries import Opinion, encode
from reach_otel.service.problems import JSON, NO_STORE, allow, answered, documented, missing, unavailable, wrong

if TYPE_CHECKING:
    from reach_otel.service.desk import Desk

WRITE_SECONDS: Final = 5.0
TRACE_RUNS_MAX: Final = 20  # looked at when feedback names a trace


def router_of(desk: Desk) -> APIRouter:
    """Make the route that takes feedback."""
    router = APIRouter()

    @router.post(
        "/v1/feedback",
        status_code=201,
        response_model=models.Received,
        responses={
            200: {"description": "It was there already.", "model": models.Received},
            **documented(400, 401, 404, 409, 422, 503),
        },
        dependencies=[allow("")],
        tags=["feedback"],
        summary="Say how good a run was, or correct its verdict",
    )
    async def give_feedback(said: Annotated[models.Feedback, Body()]) -> Response:
        """Keep it with the run. What is sent again under one `id` changes nothing: send it until it is answered."""
        run_id, task = await answered(_find(desk, said))
        declared = desk.tasks.by_name.get(task)
        unknown = set(said.milestones or ()) - {milestone.id for milestone in (declared.milestones if declared else ())}
        if unknown and declared is not None:
            known = ", ".join(milestone.id for milestone in declared.milestones)
            raise wrong("body.milestones", f"no milestone of {task}; allowed are {known}")
        opinion = Opinion(
            said.id or secrets.token_hex(16),
            said.quality,
            said.correct,
            said.outcome,
            dict(said.milestones) if said.milestones else None,
            said.comment,
            said.author,
        )
        kept = await _write(desk, run_id, opinion)
        if kept == "clash":
            raise HTTPException(409, "this id stands for other feedback; choose another one", headers=NO_STORE)
        if kept == "full":
            raise HTTPException(409, "there is too much feedback on this run already", headers=NO_STORE)
        new = kept == "created"
        body = encode({"id": opinion.id, "run": run_id, "new": new})
        return Response(body, 201 if new else 200, NO_STORE, JSON)

    return router


async def _find(desk: Desk, said: models.Feedback) -> tuple[str, str]:
    """Find the run that feedback is about, and its task."""
    shown = desk.live.snapshot()
    trace_id = said.trace_id.lower() if said.trace_id is not None else None
    found = {run.run_id: run.task for run in shown.open if said.run == run.run_id or run.trace_id == trace_id}
    for record in (*shown.closing, *desk.lately.records()):
        if record.run == said.run or record.trace_id == trace_id:
            found[record.run] = record.task
    if said.run not in found:
        found.update(await desk.reader.ask(lambda conn: queries.tasks_of(conn, said.run, trace_id, TRACE_RUNS_MAX)))
    if not found:
        raise missing("no run of this id is open or kept; see /api/runs")
    if len(found) > 1:
        raise HTTPException(409, "several runs are in this trace; name one by run, see /api/runs?trace=", NO_STORE)
    return next(iter(found.items()))


async def _write(desk: Desk, run_id: str, opinion: Opinion) -> str:
    try:
        writing = desk.writer.run(lambda conn: desk.history.add_feedback(conn, run_id, opinion))
        return await asyncio.wait_for(asyncio.wrap_future(writing), WRITE_SECONDS)
    except (StateError, sqlite3.Error, TimeoutError) as error:
        raise unavailable(f"feedback cannot be written now ({type(error).__name__})") from None

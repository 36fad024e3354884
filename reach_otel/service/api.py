"""Serve the API: runs, tasks, the service itself, feedback and events."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from fastapi import APIRouter, Header, Path, Query, Request, params
from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator, BeforeValidator, WithJsonSchema
from starlette.responses import Response

from reach_otel import names
from reach_otel.errors import StateError
from reach_otel.service import answers, feedback, task_models
from reach_otel.service import api_models as models
from reach_otel.service.answers import Asked
from reach_otel.service.entries import encode, micros_of
from reach_otel.service.events import EventStream
from reach_otel.service.listing import BadCursor, Filter, place_of
from reach_otel.service.problems import (
    JSON,
    NO_STORE,
    allow,
    answered,
    documented,
    invalid,
    missing,
    unavailable,
    wrong,
)
from reach_otel.service.shared import Shared

if TYPE_CHECKING:
    from fastapi import FastAPI

    from reach_otel.service.desk import Desk

PAGE_RUNS: Final = 50
PAGE_RUNS_MAX: Final = 200
WINDOW_SECONDS: Final = 900
WINDOW_SECONDS_MAX: Final = 366 * 86_400
SECONDS_MAX: Final = 1e12  # Unix time of the far end; later ones mean no other


def _finding(value: str) -> str:
    if value not in names.FINDINGS:
        raise ValueError(f"no such finding; allowed are {', '.join(names.FINDINGS)}")
    return value


def _moment(text: str) -> int:
    """Read a time as Unix microseconds."""
    try:
        if _NUMBER.fullmatch(text):
            return round(min(float(text), SECONDS_MAX) * 1e6)
        at = datetime.fromisoformat(text.upper())
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise ValueError("a time is written 2026-11-30T08:00:00Z, or in seconds since 1970")
    return micros_of(at)


_NUMBER: Final = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)
_UNIX_SECONDS: Final = {"type": "number", "minimum": 0}

Text = Annotated[str | None, Query(min_length=1, max_length=1_000)]
Share = Annotated[float | None, Query(ge=0, le=1, allow_inf_nan=False)]
Finding = Annotated[
    Annotated[str, AfterValidator(_finding)] | None, Query(json_schema_extra={"enum": list(names.FINDINGS)})
]
Moment = Annotated[
    Annotated[
        int,
        BeforeValidator(_moment),
        WithJsonSchema({"anyOf": [{"type": "string", "format": "date-time"}, _UNIX_SECONDS]}),
    ]
    | None,
    Query(description="RFC 3339, or Unix seconds."),
]
ScoreName = Literal["depth", "purity", "digestion", "composite", "high_layer"]


def install(
    app: FastAPI, desk: Desk, *, reading: Sequence[params.Depends] = (), writing: Sequence[params.Depends] = ()
) -> None:
    """Add all routes to an app: ``reading`` guards what shows something, ``writing`` what takes feedback."""
    app.include_router(router_of(desk), dependencies=list(reading))
    app.include_router(feedback.router_of(desk), dependencies=list(writing))
    app.add_exception_handler(RequestValidationError, invalid)


def answer(request: Request, value: Any) -> Response:
    """Answer with JSON and its ``ETag``, or with 304 where the client has just that."""
    body = encode(value)
    tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    headers = {**NO_STORE, "ETag": tag}
    known = [part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")]
    if tag in known or known == ["*"]:
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=JSON)


def router_of(desk: Desk) -> APIRouter:
    """Make the routes that show something."""
    router = APIRouter(prefix="/api")
    tasks = answers.tasks(desk)
    sums: Shared[Asked, dict[str, Any]] = Shared()

    @router.get(
        "/runs",
        response_model=models.RunsPage,
        responses=documented(304, 401, 422, 503),
        dependencies=[allow("task agent variant outcome finding trace score min max since until live limit cursor")],
        tags=["runs"],
        summary="List runs, latest start first",
    )
    async def list_runs(
        request: Request,
        task: Text = None,
        agent: Text = None,
        variant: Text = None,
        outcome: models.Outcome | None = None,
        finding: Finding = None,
        trace: Annotated[str | None, Query(min_length=1, max_length=100, description="Trace id.")] = None,
        score: Annotated[ScoreName, Query(description="Which score `min` and `max` are about.")] = "depth",
        min: Share = None,  # noqa: A002 - the name in the address
        max: Share = None,  # noqa: A002
        since: Moment = None,
        until: Moment = None,
        live: Annotated[bool | None, Query(description="true: open runs only; false: finished ones only.")] = None,
        limit: Annotated[int, Query(ge=1, le=PAGE_RUNS_MAX)] = PAGE_RUNS,
        cursor: Annotated[str | None, Query(max_length=4_096, description="`next` of the page before.")] = None,
    ) -> Response:
        """Open and finished runs in one order, which stays as it is while runs come in.

        A run keeps its place when it ends; those that start meanwhile stand before the first page.
        """
        if min is not None and max is not None and min > max:
            raise wrong("query.min", "is more than max")
        asked = Filter(task, agent, variant, outcome, finding, trace, score, min, max, since, until, live)
        try:
            before = place_of(cursor) if cursor is not None else None
        except BadCursor as error:
            raise wrong("query.cursor", str(error)) from None
        return answer(request, await answered(answers.page(desk, asked, limit, before)))

    @router.get(
        "/runs/{run_id:path}",
        response_model=models.Run,
        responses=documented(304, 401, 404, 422, 503),
        dependencies=[allow("")],
        tags=["runs"],
        summary="Show one run, and why it is as it is",
    )
    async def show_run(request: Request, run_id: Annotated[str, Path(examples=[models.RUN])]) -> Response:
        """Show the run record, its steps, and a sentence for each milestone, level and obstacle."""
        found = await answered(answers.run(desk, run_id))
        if found is None:
            raise missing("no run of this id is open or kept; see /api/runs, also by ?trace=")
        return answer(request, found)

    @router.get(
        "/tasks",
        response_model=task_models.Tasks,
        responses=documented(304, 401, 422),
        dependencies=[allow("")],
        tags=["tasks"],
        summary="List the tasks as they were declared",
    )
    async def list_tasks(request: Request) -> Response:
        return answer(request, tasks)

    @router.get(
        "/tasks/{name:path}/summary",
        response_model=task_models.TaskSummary,
        responses=documented(304, 401, 404, 422, 503),
        dependencies=[allow("window variant agent")],
        tags=["tasks"],
        summary="Sum up the runs of a task over a window",
    )
    async def show_task(
        request: Request,
        name: Annotated[str, Path(examples=["ticket-handling"])],
        window: Annotated[
            int, Query(ge=1, le=WINDOW_SECONDS_MAX, description="Seconds up to now in which the verdict fell.")
        ] = WINDOW_SECONDS,
        variant: Text = None,
        agent: Text = None,
    ) -> Response:
        """Every ratio is a sum over a sum; `unmatched` stands for the runs of no task."""
        found = await answered(answers.summed(desk, sums, Asked(name, window, variant, agent)))
        if not found["runs"] and name != names.UNMATCHED and name not in desk.tasks.by_name:
            raise missing("no task of this name is loaded, and no run of one is kept; see /api/tasks")
        return answer(request, found)

    @router.get(
        "/system",
        response_model=task_models.System,
        responses=documented(304, 401, 422),
        dependencies=[allow("")],
        tags=["service"],
        summary="Show how the service itself is doing",
    )
    async def show_system(request: Request) -> Response:
        return answer(request, await answers.system(desk))

    @router.get(
        "/events",
        response_class=Response,
        responses={
            **documented(401, 422, 503),
            200: {"description": _EVENTS, "content": {EventStream.media_type: {"schema": {"type": "string"}}}},
        },
        dependencies=[allow("")],
        tags=["runs"],
        summary="Hear what happens to runs",
    )
    async def listen(last_event_id: Annotated[str | None, Header(max_length=100)] = None) -> Response:
        """Server-sent events; a client that comes back with `Last-Event-ID` gets what it missed, or `reset`."""
        try:
            return EventStream(desk.hub, desk.hub.join(last_event_id))
        except StateError as error:
            raise unavailable(str(error)) from None

    return router


_EVENTS: Final = (
    "Events `run` (a run in small, as it changes), `closed` (the same, with its verdict), `merged` ({run, into}: "
    "`run` turned out to be a part of `into`), `dropped` ({run}: it cannot be scored) and `reset` (look anew at what "
    "is shown: something was missed)."
)

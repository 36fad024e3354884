"""Serve the live page: plain HTML made from the service's own JSON API, kept up to date by one small script."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import parse_qs, quote, urlencode

import jinja2
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from markupsafe import Markup

from reach_otel import names
from reach_otel.service import graph, render, runbook
from reach_otel.service.asking import Api, NoAnswer
from reach_otel.service.run_view import run_view

if TYPE_CHECKING:
    from reach_otel.service.auth import Access

FORM_BYTES_MAX: Final = 4_096
CARDS_MAX: Final = 24
ROWS_MAX: Final = 50
TILES_MAX: Final = 8
VARIANTS_MAX: Final = 5
LATELY_RUNS: Final = 200  # looked through for variants
TEMPLATES_MAX: Final = 40  # tasks whose graph is laid into the overview for new runs
WINDOWS: Final = {"15 min": 900, "1 h": 3_600, "24 h": 86_400, "7 d": 604_800}
FILTERS: Final = ("task", "agent", "variant", "outcome", "finding")
OUTCOMES: Final = ("success", "partial", "failed", "abandoned", "evicted")
WRONG_TOKEN_SECONDS: Final = 0.5

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_FILES: Final = {"page.css": "text/css", "live.js": "text/javascript", "icon.svg": "image/svg+xml"}


class Guarded(Protocol):
    """What is asked of the service: who may read."""

    @property
    def access(self) -> Access: ...


def router_of(service: Guarded) -> APIRouter:
    """Make the routes of the page; the application that takes them serves the API under ``/api`` too."""
    pages = Pages(service.access)
    routes = APIRouter(include_in_schema=False)
    for path, page in (
        ("/", pages.overview),
        ("/runs/{run_id:path}", pages.run),
        ("/tasks", pages.tasks),
        ("/tasks/{name:path}", pages.task),
        ("/system", pages.system),
        ("/runbook", pages.runbook),
    ):
        routes.add_api_route(path, _guarded(pages, page), methods=["GET"], response_class=HTMLResponse)
    routes.add_api_route("/login", pages.login, methods=["GET"], response_class=HTMLResponse)
    routes.add_api_route("/login", pages.log_in, methods=["POST"], response_class=HTMLResponse)
    routes.add_api_route("/logout", pages.log_out, methods=["POST"], response_class=RedirectResponse)
    routes.add_api_route("/static/{name}", pages.static, methods=["GET"], response_class=Response)
    return routes


def _guarded(pages: Pages, page: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Answer what the API refuses with a page that says so; who has to show a token is led to the form for it."""

    async def answer(request: Request) -> Response:
        try:
            return await page(request)
        except NoAnswer as error:
            if error.status == 401:
                wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
                return RedirectResponse(f"/login?next={quote(wanted, safe='')}", 303, headers=HEADERS)
            return pages.trouble(error.status)

    return answer


class Pages:
    """Hold the templates and the static files, both read once."""

    def __init__(self, access: Access) -> None:
        self._access = access
        here = files("reach_otel.service")
        self._static = {name: (here / "static" / name).read_bytes() for name in _FILES}
        self._tags = {name: hashlib.sha256(body).hexdigest()[:16] for name, body in self._static.items()}
        self._templates = _environment()
        self._runbook = runbook.read(runbook.source())
        self._templates.globals["needs_login"] = access.needs_login
        self._templates.globals["asset"] = lambda name: f"/static/{name}?v={self._tags[name]}"

    async def overview(self, request: Request) -> Response:
        """Show running runs as graphs, finished ones as rows, and how the tasks stand."""
        api = Api(request)
        chosen = {name: request.query_params.get(name, "") for name in FILTERS}
        cursor = request.query_params.get("cursor")
        tasks, running, finished, system = await asyncio.gather(
            api.get("tasks"),
            api.get("runs", live="true", limit=CARDS_MAX, **{**chosen, "outcome": None}),
            api.get("runs", live="false", limit=ROWS_MAX, cursor=cursor, **chosen),
            api.get("system"),
        )
        by_name = {task["name"]: task for task in tasks["tasks"]}
        shown = [task for name, task in by_name.items() if chosen["task"] in ("", name)]
        tiles = await asyncio.gather(*(self._tile(api, task) for task in shown[:TILES_MAX]))
        return self._page(
            "overview.html",
            tasks=by_name,
            tiles=tiles,
            drawings={task["name"]: graph.dots(task) for task in shown[:TEMPLATES_MAX]},
            running=running["runs"][::-1],  # the earliest first, as the script adds new ones at the end
            finished=finished["runs"],
            next=self._link(request, cursor=finished["next"]) if finished.get("next") else None,
            first=self._link(request, cursor=None) if cursor else None,
            system=system,
            chosen=chosen,
            outcomes=OUTCOMES,
            findings=names.FINDINGS,
        )

    async def run(self, request: Request) -> Response:
        """Show one run: its graph, why each milestone is where it is, and its story."""
        api = Api(request)
        run_id = request.path_params["run_id"]
        record, tasks = await asyncio.gather(api.get(f"runs/{quote(run_id, safe='')}"), api.get("tasks"))
        task = next((task for task in tasks["tasks"] if task["name"] == record["task"]), None)
        known = task is not None and {m["id"] for m in task["milestones"]} == {m["id"] for m in record["milestones"]}
        return self._page(
            "run.html",
            record=record,
            view=run_view(record),
            task=task,
            graphs=_both(task) if task is not None and known and task["milestones"] else None,
        )

    async def tasks(self, request: Request) -> Response:
        """List the tasks and how they stand."""
        api = Api(request)
        tasks = (await api.get("tasks"))["tasks"]
        tiles = await asyncio.gather(*(self._tile(api, task) for task in tasks[: TILES_MAX * 4]))
        return self._page("tasks.html", tiles=tiles, total=len(tasks))

    async def task(self, request: Request) -> Response:
        """Show where the runs of a task stop: its graph as a heat map, its levels, what breaks them."""
        api = Api(request)
        name = request.path_params["name"]
        window = _window(request)
        tasks, summary = await asyncio.gather(
            api.get("tasks"), api.get(f"tasks/{quote(name, safe='')}/summary", window=window)
        )
        task = next((task for task in tasks["tasks"] if task["name"] == name), None) or _undeclared(name)
        return self._page(
            "task.html",
            task=task,
            summary=summary,
            rates={m["id"]: m for m in summary["milestones"]},
            variants=await self._variants(api, name, window),
            graphs=_both(task) if task["milestones"] else None,
            window=window,
            windows=WINDOWS,
        )

    async def system(self, request: Request) -> Response:
        """Show how the scorer itself is doing."""
        return self._page("system.html", system=await Api(request).get("system"))

    async def runbook(self, request: Request) -> Response:
        """Say what to do about each alert."""
        if not self._access.may_read(request):
            raise NoAnswer(401)
        return self._page("runbook.html", runbook=self._runbook)

    async def login(self, request: Request) -> Response:
        """Ask for the token for reading."""
        return self._page("login.html", next=_own_path(request.query_params.get("next", "/")), wrong=False)

    async def log_in(self, request: Request) -> Response:
        """Take a token from the form; the right one is answered with a cookie which scripts cannot read."""
        form = parse_qs((await _bounded_body(request)).decode("utf-8", "replace"), keep_blank_values=True)
        token, wanted = form.get("token", [""])[0].strip(), _own_path(form.get("next", ["/"])[0])
        if not self._access.is_reading_token(token):
            await asyncio.sleep(WRONG_TOKEN_SECONDS)
            return self._page("login.html", status=403, next=wanted, wrong=True)
        answer = RedirectResponse(wanted, 303, headers=HEADERS)
        self._access.sign_in(answer, secure=request.url.scheme == "https")
        return answer

    async def log_out(self, request: Request) -> Response:
        """Forget the token."""
        del request
        answer = RedirectResponse("/login", 303, headers=HEADERS)
        self._access.sign_out(answer)
        return answer

    async def static(self, request: Request) -> Response:
        """Serve one of the page's own files; an address with its tag may be kept for ever."""
        name = request.path_params["name"]
        if name not in self._static:
            return self.trouble(404)
        fresh = request.query_params.get("v") == self._tags[name]
        caching = "public, max-age=31536000, immutable" if fresh else "no-cache"
        return Response(self._static[name], media_type=_FILES[name], headers={**HEADERS, "Cache-Control": caching})

    def trouble(self, status: int) -> Response:
        """Say what went wrong, and what to do."""
        return self._page("trouble.html", status=status if status in (404, 422, 503) else 502, code=status)

    async def _tile(self, api: Api, task: Mapping[str, Any]) -> dict[str, Any]:
        summary = await api.get(f"tasks/{quote(task['name'], safe='')}/summary", window=WINDOWS["15 min"])
        return {"task": task, "summary": summary}

    async def _variants(self, api: Api, name: str, window: int) -> list[dict[str, Any]]:
        """Sum up each of the variants seen lately, where there is more than one to compare."""
        lately = await api.get("runs", task=name, live="false", limit=LATELY_RUNS)
        found = list(dict.fromkeys(run["variant"] for run in lately["runs"] if run["variant"]))[:VARIANTS_MAX]
        if len(found) < 2:
            return []
        path = f"tasks/{quote(name, safe='')}/summary"
        sums = await asyncio.gather(*(api.get(path, window=window, variant=variant) for variant in found))
        return [{"variant": variant, "summary": summed} for variant, summed in zip(found, sums, strict=True)]

    def _link(self, request: Request, **changes: str | None) -> str:
        query = {**request.query_params, **changes}
        asked = urlencode({name: value for name, value in query.items() if value})
        return request.url.path + (f"?{asked}" if asked else "")

    def _page(self, template: str, status: int = 200, **values: Any) -> Response:
        html = self._templates.get_template(template).render(values)
        return HTMLResponse(html.encode("utf-8", "replace"), status, headers=HEADERS)


def _environment() -> jinja2.Environment:
    """Set the templates up: everything escaped, bounded and visible, and a name that is missing is an error."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("reach_otel.service"),
        autoescape=True,
        finalize=_seen,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        {
            filter_.__name__: filter_
            for filter_ in (
                render.bytes,
                render.clock,
                render.in_layers,
                render.moment,
                render.number,
                render.percent,
                render.ratio,
                render.run_path,
                render.seconds,
                render.task_path,
                render.visible,
                render.width,
                render.words,
            )
        }
    )
    environment.globals["summary_view"] = render.summary_view
    environment.globals["edge_state"] = render.edge_state
    environment.globals["MARKS"] = render.MARKS
    environment.globals["HIGH_RISK_BELOW"] = render.HIGH_RISK_BELOW
    return environment


def _seen(value: Any) -> Any:
    """Let no text into a page which is endless or holds what cannot be seen; what a template wrote itself may."""
    return render.visible(value, render.TEXT_MAX) if isinstance(value, str) and not isinstance(value, Markup) else value


def _undeclared(name: str) -> dict[str, Any]:
    """Stand in for a task that has runs and no file: none matched, or it is no longer loaded."""
    return {"name": name, "description": "", "milestones": [], "traps": []}


def _both(task: Mapping[str, Any]) -> tuple[graph.Drawing, graph.Drawing]:
    return graph.boxes(task, down=False), graph.boxes(task, down=True)


def _window(request: Request) -> int:
    """Read the window in seconds; one that is not offered counts as the shortest."""
    asked = request.query_params.get("window", "")
    return int(asked) if asked in map(str, WINDOWS.values()) else WINDOWS["15 min"]


def _own_path(path: str) -> str:
    """Let a form lead back to a page of our own only."""
    harmless = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() and path.isascii()
    return path if harmless else "/"


async def _bounded_body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > FORM_BYTES_MAX:
            return b""
    return body

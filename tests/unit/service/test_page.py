"""The page is whole without a script, safe whatever spans hold, and shows what the API shows."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from fastapi import Depends, FastAPI

from reach_otel.service import api, page
from reach_otel.service.auth import Access
from tests.support.asgi import Answer, Client
from tests.support.stand import Stand, full_run, standing, ticket_run
from tests.support.steps import Steps, trace_id

RUN = f"/runs/{trace_id(1)}"
SCRIPT = "<script>alert(1)</script>"
OVERRIDE = "abc\u202egpj.exe"
CONTROL = "a\x00b\x1b[31m\x08"
VOID = frozenset(("input", "link", "meta", "br", "img"))
PATHS = ("/", RUN, "/tasks", "/tasks/ticket-handling", "/tasks/unmatched", "/system", "/runbook", "/login")


class Service:
    """What the page asks of the service."""

    def __init__(self, read_token: str | None = None) -> None:
        self.access = Access(ingest_token=None, read_token=read_token)


class Words(HTMLParser):
    """Collect the text of a page that shows, and the elements outside of templates."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._unseen: list[str] = []  # open elements below one that does not show
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        in_template = "template" in self._unseen
        if tag not in VOID and (self._unseen or tag == "template" or "hidden" in dict(attrs)):
            self._unseen.append(tag)
        if not in_template:
            self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if self._unseen:
            assert self._unseen.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 60))


def paged(stand: Stand, read_token: str | None = None, **desk: Any) -> Client:
    """Put the page beside the API of a stand."""
    service = Service(read_token)
    app = FastAPI(docs_url=None, redoc_url=None)
    api.install(app, stand.desk, reading=[Depends(service.access.reader)])
    app.include_router(page.router_of(service))
    return Client(app)


async def html(client: Client, path: str, **query: Any) -> Words:
    answer = await client.get(path, **query)
    assert answer.status == 200, (answer.status, answer.body[:300])
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return Words(answer.body.decode())


def test_running_and_finished_runs_are_there_without_a_script(tmp_path: Path) -> None:
    """The overview holds a graph for each open run, a row for each finished one, and how the tasks stand."""

    async def test() -> None:
        async with standing(tmp_path) as stand:
            client = paged(stand)
            stand.finish(full_run(1))
            stand.feed(ticket_run(2, ended=False))
            words = await html(client, "/")
            cards = [a for tag, a in words.tags if tag == "article" and a.get("class") == "card" and a["data-run"]]
            rows = [a for tag, a in words.tags if tag == "tr" and a.get("data-run")]
            assert [card["data-run"] for card in cards] == [trace_id(2)]
            assert [row["data-run"] for row in rows] == [trace_id(1)]
            assert "customer: unused" in words.text
            assert "1.00 high-layer reach" in words.text

    run(test())


def test_a_run_tells_its_story_and_says_why(tmp_path: Path) -> None:
    """Milestones have the API's sentence, actions are numbered, and the break point is named."""

    async def test() -> None:
        async with standing(tmp_path) as stand:
            stand.finish(ticket_run(1))
            client = paged(stand)
            told = await client.json(f"/api{RUN}")
            words = await html(client, RUN)
            for sentence in (*told["why"].values(), *told["why_levels"].values(), told["why_outcome"]):
                assert " ".join(sentence.split()) in words.text
            assert re.search(r"1 tool read_ticket effective .*?● read reached ✓ ok", words.text)
            assert re.search(r"3 tool check_inventory .*?◆ obstacle: error, not digested ✕ error", words.text)
            assert "break point: L1 resource: never tried" in words.text
            assert "boom" not in words.text  # content is not shown unless it is asked for

    run(test())


def test_content_shows_only_where_the_service_lets_it_out(tmp_path: Path) -> None:
    """With content switched on, arguments, results and errors stand with their step."""

    async def test() -> None:
        async with standing(tmp_path, show_content=True) as stand:
            stand.finish(ticket_run(1))
            words = await html(paged(stand), RUN)
            assert '{"customer_id": "C-9"}' in words.text
            assert "boom" in words.text

    run(test())


def test_a_trace_has_its_link(tmp_path: Path) -> None:
    """The template of the settings leads from a run to its trace."""

    async def test() -> None:
        async with standing(tmp_path, trace_url="http://localhost:3000/t/{trace_id}") as stand:
            stand.finish(ticket_run(1))
            words = await html(paged(stand), RUN)
            links = [attributes.get("href") for tag, attributes in words.tags if tag == "a"]
            assert f"http://localhost:3000/t/{trace_id(1)}" in links

    run(test())


def test_a_task_shows_rates_levels_and_break_points(tmp_path: Path) -> None:
    """The heat map has a rate for each milestone; the lowest level is what to fix next."""

    async def test() -> None:
        async with standing(tmp_path) as stand:
            client = paged(stand)
            empty = await html(client, "/tasks/ticket-handling")
            assert "No run has finished in this window." in empty.text
            stand.finish(full_run(1))
            stand.finish(ticket_run(2))
            words = await html(client, "/tasks/ticket-handling")
            assert "0.50 ▲ high risk" not in words.text  # one half is not below one half
            assert re.search(r"stock 2 must 50 % 1 of 2", words.text)
            assert "fix this next" in words.text
            assert "L1 never tried 1" in words.text
            heat = {a["data-node"]: a.get("data-heat") for tag, a in words.tags if tag == "g"}
            assert heat["read"] == "4"
            assert heat["stock"] == "2"
            assert heat["escalate"] == "none"

    run(test())


def test_variants_stand_side_by_side(tmp_path: Path) -> None:
    """With more than one variant seen lately, each has its own sums; with one there is nothing to compare."""

    async def test() -> None:
        async with standing(tmp_path) as stand:
            client = paged(stand)
            stand.finish(full_run(1, variant="v1"))
            assert "Variants" not in (await html(client, "/tasks/ticket-handling")).text
            stand.finish(ticket_run(2, variant="v2"))
            words = await html(client, "/tasks/ticket-handling")
            assert "v1 1 100 % 1.00 1.00 1.00 – 1.00" in words.text
            assert "v2 1 0 % ▲ high risk 0.00" in words.text

    run(test())


def test_filters_stay_in_the_address_and_pages_follow_each_other(tmp_path: Path) -> None:
    """A filter holds for the list and for the way to older runs."""

    async def test() -> None:
        async with standing(tmp_path) as stand:
            for number in range(1, page.ROWS_MAX + 3):
                stand.feed(ticket_run(number, start=number))
            stand.finish(
                full_run(
                    page.ROWS_MAX + 3,
                )
            )
            client = paged(stand)
            only = await html(client, "/", outcome="success")
            assert [a["data-run"] for tag, a in only.tags if tag == "tr" and a.get("data-run")] == [
                trace_id(page.ROWS_MAX + 3)
            ]
            first = await html(client, "/", outcome="partial")
            (older,) = [a["href"] for tag, a in first.tags if tag == "a" and a.get("rel") == "next"]
            assert older is not None
            assert "outcome=partial" in older
            second = await html(client, older)
            shown = [
                [a["data-run"] for tag, a in words.tags if tag == "tr" and a.get("data-run")]
                for words in (first, second)
            ]
            assert len(shown[0]) == page.ROWS_MAX
            assert len(shown[1]) == 2
            assert not set(shown[0]) & set(shown[1])

    run(test())


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    """Unknown runs and tasks are 404, filters that mean nothing 422, each with a page that helps."""

    async def test() -> None:
        async with standing(tmp_path) as stand:
            client = paged(stand)
            for path, status in (
                ("/runs/none", 404),
                ("/runs/..%2F..%2Fetc", 404),
                ("/tasks/none", 404),
                ("/static/none", 404),
                ("/static/..%2Fpage.py", 404),
                ("/?finding=none", 422),
                ("/?cursor=none", 422),
            ):
                answer = await client.get(path)
                assert (path, answer.status) == (path, status)
                assert b"All runs" in answer.body or status == 404

    run(test())


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    """Markup, overrides of direction, control characters and a megabyte of name cannot do anything."""

    async def test() -> None:
        async with standing(tmp_path) as stand:
            for number, name in enumerate((SCRIPT, OVERRIDE, CONTROL, "x" * 1_000_000, '"><img src=x onerror=a()>'), 1):
                steps = Steps(number)
                root = steps.agent(name, 0, 100, user="ticket", output=name)
                steps.tool(name, 1, 2, parent=root.span_id, args={name: name}, error=name, agent=name)
                steps.tool("read_ticket", 3, 4, parent=root.span_id, args={}, result={"status": "ok"})
                stand.finish(steps.made)
                steps = Steps(100 + number)
                steps.tool(name, 1, 2, parent="f" * 16, args={name: name}, error=name, agent=name)
                stand.feed(steps.made)
            client = paged(stand)
            for path in (*PATHS, *(f"/runs/{trace_id(n)}" for n in range(1, 6))):
                answer = await client.get(path)
                text = answer.body.decode()
                assert len(text) < 250_000, path
                assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text), path
                words = Words(text)
                assert [a for tag, a in words.tags if tag == "script"] == [
                    {"type": "module", "src": a["src"]} for tag, a in words.tags if tag == "script"
                ]
                assert not [tag for tag, _ in words.tags if tag == "img"]
            overview = await html(client, "/")
            assert SCRIPT in overview.text
            assert "abc‹U+202E›gpj.exe" in overview.text
            assert "a␀b␛[31m␈" in overview.text

    run(test())


@pytest.mark.parametrize("path", PATHS)
def test_no_style_or_code_stands_in_the_markup(tmp_path: Path, path: str) -> None:
    """All that the policy forbids is not there either: inline scripts, handlers, styles, anything from elsewhere."""

    async def test() -> None:
        async with standing(tmp_path) as stand:
            stand.finish(ticket_run(1))
            stand.feed(ticket_run(2, ended=False))
            answer = await paged(stand).get(path)
            policy = answer.headers["content-security-policy"]
            for rule in (
                "default-src 'none'",
                "script-src 'self'",
                "style-src 'self'",
                "img-src 'self' data:",
                "connect-src 'self'",
                "form-action 'self'",
                "frame-ancestors 'none'",
                "base-uri 'none'",
                "require-trusted-types-for 'script'",
            ):
                assert rule in policy
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "same-origin"
            assert answer.headers["cache-control"] == "no-store"
            ids = []
            for tag, attributes in Words(answer.body.decode()).tags:
                assert tag != "style"
                assert not [name for name in attributes if name == "style" or name.startswith("on")]
                ids.append(attributes.get("id"))
                for name in ("src", "href", "action"):
                    address = attributes.get(name) or "/"
                    assert address.startswith(("/", "#", "?")) or tag == "a", (tag, address)
            named = [name for name in ids if name]
            assert len(named) == len(set(named))

    run(test())


def test_static_files_are_kept_by_their_content(tmp_path: Path) -> None:
    """An address with the tag of the content may be kept for ever; without it the browser asks again."""

    async def test() -> None:
        async with standing(tmp_path) as stand:
            client = paged(stand)
            words = await html(client, "/login")
            (source,) = [a["src"] for tag, a in words.tags if tag == "script"]
            assert source is not None
            tagged = await client.get(source)
            assert tagged.headers["content-type"].startswith("text/javascript")
            assert "immutable" in tagged.headers["cache-control"]
            assert (await client.get("/static/live.js")).headers["cache-control"] == "no-cache"
            assert tagged.headers["x-content-type-options"] == "nosniff"

    run(test())


def test_the_script_never_makes_markup_of_data() -> None:
    """None of the ways by which text becomes elements or code is in the script."""
    script = (Path(page.__file__).parent / "static" / "live.js").read_text(encoding="utf-8")
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|eval\(|Function\(|srcdoc|\.style\b"
    assert not re.search(forbidden, script)


# Logging in.

TOKEN = "read-me-7"


async def log_in(client: Client, token: str, wanted: str = "/") -> Answer:
    body = f"token={token}&next={wanted}".encode()
    return await client.ask("POST", "/login", body, {"Content-Type": "application/x-www-form-urlencoded"})


def test_a_token_is_asked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it every page leads to the form; with it a cookie opens all, and logging out closes them again."""
    monkeypatch.setattr(page, "WRONG_TOKEN_SECONDS", 0.0)

    async def test() -> None:
        async with standing(tmp_path) as stand:
            stand.finish(ticket_run(1))
            client = paged(stand, TOKEN)
            answer = await client.get(f"{RUN}?a=b")
            assert answer.status == 303
            assert answer.headers["location"] == f"/login?next=%2Fruns%2F{trace_id(1)}%3Fa%3Db"
            assert trace_id(2) not in answer.body.decode()
            wrong = await log_in(client, "guess")
            assert wrong.status == 403
            assert "This token is not accepted" in Words(wrong.body.decode()).text
            assert "set-cookie" not in wrong.headers
            right = await log_in(client, TOKEN, RUN)
            assert (right.status, right.headers["location"]) == (303, RUN)
            cookie = right.headers["set-cookie"]
            assert "HttpOnly" in cookie
            assert "samesite=strict" in cookie.lower()
            assert TOKEN not in cookie
            shown = {"Cookie": cookie.split(";")[0]}
            assert (await client.get(RUN, shown)).status == 200
            assert (await client.get("/", {"Authorization": f"Bearer {TOKEN}"})).status == 200
            out = await client.ask("POST", "/logout", headers=shown)
            assert out.headers["location"] == "/login"
            assert "reach-otel-session=" in out.headers["set-cookie"]

    run(test())


@pytest.mark.parametrize(
    "wanted", ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", "/a%0d%0ab", ""]
)
def test_the_form_leads_back_to_pages_of_ours_only(tmp_path: Path, wanted: str) -> None:
    """Whatever address a link to the form has in it, the way on from there stays here."""

    async def test() -> None:
        async with standing(tmp_path) as stand:
            answer = await log_in(paged(stand, TOKEN), TOKEN, wanted)
            assert answer.headers["location"] == "/"

    run(test())


def test_a_form_without_end_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body larger than any form is refused like a wrong token."""
    monkeypatch.setattr(page, "WRONG_TOKEN_SECONDS", 0.0)

    async def test() -> None:
        async with standing(tmp_path) as stand:
            answer = await log_in(paged(stand, TOKEN), TOKEN + "&x=" + "y" * 10_000)
            assert answer.status == 403

    run(test())

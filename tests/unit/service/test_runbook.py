"""The runbook is a page like the others, says the same in the README, and every alert finds its section."""

from __future__ import annotations

import asyncio
import re
from html.parser import HTMLParser

import pytest
from fastapi import FastAPI

from reach_otel.service import page, runbook
from reach_otel.service.auth import Access
from tests.support.asgi import Answer, Client

TOKEN = "read-me-7"


class Service:
    """What the page asks of the service."""

    def __init__(self, read_token: str | None = None) -> None:
        self.access = Access(ingest_token=None, read_token=read_token)


class Page(HTMLParser):
    """Collect the anchors of a page, the links to them, and its elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.anchors: list[str] = []
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.append(value)
            if name == "href" and value and value.startswith("#"):
                self.links.append(value.removeprefix("#"))


def get(path: str = "/runbook", *, read_token: str | None = None, headers: dict[str, str] | None = None) -> Answer:
    app = FastAPI(docs_url=None, redoc_url=None)
    app.include_router(page.router_of(Service(read_token)))
    return asyncio.run(asyncio.wait_for(Client(app).get(path, headers or {}), 60))


def test_every_section_can_be_linked_to() -> None:
    """Anchors are there once each, and every link within the page leads to one."""
    shown = Page(get().body.decode())
    assert len(shown.anchors) == len(set(shown.anchors))
    assert shown.links
    assert set(shown.links) <= set(shown.anchors)
    assert {"first-look", "reachhighlayerlow", "reachnoruns"} <= set(shown.links)


def test_it_comes_under_the_policy_of_all_pages() -> None:
    """No script or style from elsewhere may run in it, and none stands in it."""
    answer = get()
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert {name.lower(): value for name, value in page.HEADERS.items()}.items() <= answer.headers.items()
    assert not {"style", "iframe", "img", "form"} & set(Page(answer.body.decode()).tags)


def test_every_page_links_to_it() -> None:
    """It is one click away, and marked as the page one is on."""
    assert b'<a href="/runbook" aria-current="page">Runbook</a>' in get().body
    assert b'<a href="/runbook">Runbook</a>' in get("/static/none").body


def test_it_is_for_readers_only() -> None:
    """Where reading needs a token, so does the runbook: it names what runs here."""
    answer = get(read_token=TOKEN)
    assert (answer.status, answer.headers["location"]) == (303, "/login?next=%2Frunbook")
    assert b"ReachHighLayerLow" not in answer.body
    assert get(read_token=TOKEN, headers={"Authorization": f"Bearer {TOKEN}"}).status == 200


def test_markup_in_the_text_stays_text() -> None:
    """Nothing becomes an element that Markdown does not make, nor a link that is code."""
    text = "# T\n\n## A <b>x</b>\n\n<script>alert(1)</script>\n\n[x](javascript:alert(1)) ![](http://e.example/i.png)"
    html = runbook.read(text).html
    assert "<script" not in html
    assert "<b>" not in html
    assert 'href="javascript:' not in html


def test_the_title_comes_first() -> None:
    """A runbook that begins with anything else is refused when the service starts, not when somebody needs it."""
    with pytest.raises(ValueError, match="want the title first"):
        runbook.read("## ReachNoRuns\n\nText.\n")


@pytest.mark.parametrize(
    ("title", "anchor"),
    [("ReachHighLayerLow", "reachhighlayerlow"), ("First look", "first-look"), ("What's `up`?", "whats-up")],
)
def test_anchors_are_those_of_a_readme(title: str, anchor: str) -> None:
    """A link to a section works in the page and in the README as it is shown on GitHub."""
    assert runbook.anchor_of(title) == anchor


def test_the_readme_has_the_same_text() -> None:
    """The title is left out and headings go one level down, to be below a section; nothing else differs."""
    text = runbook.markdown()
    assert "\n### ReachHighLayerLow\n" in text
    assert not re.search(r"^#{1,2} ", text, re.MULTILINE)
    assert "# Runbook\n\n" + re.sub(r"^#(?=#)", "", text, flags=re.MULTILINE) == runbook.source()


@pytest.mark.parametrize("section", [s for s in runbook.read(runbook.source()).sections if s.title.startswith("Reach")])
def test_every_section_tells_the_same_things(section: runbook.Section) -> None:
    """Who was just woken up finds meaning, causes, where to look and what helps, in this order, in each section."""
    body = runbook.source().split(f"\n## {section.title}\n")[1].split("\n## ")[0]
    found = [body.find(f"**{word}") for word in ("Means:", "Causes", "Look:", "Cure:")]
    assert -1 not in found
    assert found == sorted(found)
    assert re.search(r"\*(critical|warning)\*", body)

"""Give what to do about each alert: as a page of the service, and as a part of the README."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from itertools import pairwise
from typing import Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

_FILE: Final = "runbook.md"

_NO_ANCHOR: Final = re.compile(r"[^\w\- ]")


class Section(NamedTuple):
    """One heading below the title, and the anchor that links to it."""

    anchor: str
    title: str


class Runbook(NamedTuple):
    """The runbook, ready for the page."""

    title: str
    sections: tuple[Section, ...]
    html: Markup
    """All below the title."""


def source() -> str:
    """Return the runbook as it is written."""
    return (files("reach_otel.service") / _FILE).read_text(encoding="utf-8")


def markdown() -> str:
    """Return the runbook for the README, which has a section for it: without its title, all headings one level down."""
    _, _, below = source().partition("\n\n")
    return "\n".join(f"#{line}" if line.startswith("#") else line for line in below.splitlines()) + "\n"


def read(text: str) -> Runbook:
    """Turn Markdown into a page, with an anchor for every section; markup in the text stays text."""
    reader = MarkdownIt("commonmark", {"html": False})
    title, tokens = _cut_title(reader.parse(text))
    sections = tuple(_sections(tokens))
    return Runbook(title, sections, Markup(reader.renderer.render(tokens, reader.options, {})))


def anchor_of(title: str) -> str:
    """Return the anchor of a heading, by the rule that GitHub has for a README: one link works in both."""
    return _NO_ANCHOR.sub("", title.strip().lower()).replace(" ", "-")


def _cut_title(tokens: list[Token]) -> tuple[str, list[Token]]:
    opening, inline, _, *rest = tokens
    if opening.tag != "h1":
        raise ValueError(f"found {opening.tag}, want the title first")
    return inline.content, rest


def _sections(tokens: Sequence[Token]) -> Iterator[Section]:
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.tag == "h2":
            section = Section(anchor_of(inline.content), inline.content)
            token.attrSet("id", section.anchor)
            yield section

"""Say which runs a list shows and where its next page goes on; the rule is one for open and finished runs."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from reach_otel.service.entries import NAME_CHARS_MAX

SCORES: Final = ("depth", "purity", "digestion", "composite", "high_layer")
RUNNING: Final = "running"
_VERSION: Final = 1
_CURSOR_CHARS_MAX: Final = 512  # of a run's id; no two that start in one microsecond share more

Place = tuple[int, str]
"""Where a run stands in a list: its start in Unix microseconds, then its id. Lists go from late to early."""


class BadCursor(ValueError):
    """Say that a cursor is none of ours."""


class Filter(Struct, frozen=True):
    """Which runs are asked for; ``None`` where all are. Times are Unix microseconds, ``until`` is not included."""

    task: str | None = None
    agent: str | None = None
    variant: str | None = None
    outcome: str | None = None
    finding: str | None = None
    trace: str | None = None
    score: str = "depth"
    min: float | None = None
    max: float | None = None
    since_us: int | None = None
    until_us: int | None = None
    live: bool | None = None

    @property
    def wants_live(self) -> bool:
        """Say whether open runs can be among those asked for."""
        return self.live is not False and self.outcome in (None, RUNNING)

    @property
    def wants_finished(self) -> bool:
        """Say whether finished runs can be among those asked for."""
        return self.live is not True and self.outcome != RUNNING

    def fits(
        self,
        start_us: int,
        *,
        task: str,
        agent: str | None,
        variant: str | None,
        outcome: str,
        trace_id: str,
        findings: Sequence[str],
        score: float | None,
    ) -> bool:
        """Say whether a run is among those asked for; :meth:`where` says the same in SQL. ``score``: the one asked."""
        return (
            (self.task is None or task == self.task)
            and (self.agent is None or _cut(agent) == _cut(self.agent))
            and (self.variant is None or _cut(variant) == _cut(self.variant))
            and (self.outcome is None or outcome == self.outcome)
            and (self.finding is None or self.finding in findings)
            and (self.trace is None or trace_id == self.trace)
            and (self.since_us is None or start_us >= self.since_us)
            and (self.until_us is None or start_us < self.until_us)
            and (self.min is None or (score is not None and score >= self.min))
            and (self.max is None or (score is not None and score <= self.max))
        )

    def where(self, before: Place | None) -> tuple[str, list[Any]]:
        """Give the tables with the SQL conditions on them, and their values.

        Rows come from ``runs`` as ``r``; ``at`` holds ``start_us`` and ``run``, in order of an index.
        """
        tables = "runs AS r INDEXED BY runs_by_start" if self.trace is None else "runs AS r"
        at = "r"
        if self.finding is not None:
            tables, at = "findings AS f CROSS JOIN runs AS r ON r.id = f.run_id", "f"
        asked: list[tuple[str, Any]] = [
            ("f.finding = ?", self.finding),
            ("r.task = ?", self.task),
            ("r.agent = ?", _cut(self.agent)),
            ("r.variant = ?", _cut(self.variant)),
            ("r.outcome = ?", self.outcome),
            ("r.trace_id = ?", self.trace),
            (f"r.{self.score} >= ?", self.min),
            (f"r.{self.score} <= ?", self.max),
            (f"{at}.start_us >= ?", self.since_us),
            (f"{at}.start_us < ?", self.until_us),
        ]
        conditions = [condition for condition, value in asked if value is not None]
        values = [value for _, value in asked if value is not None]
        if before is not None:
            conditions.append(f"({at}.start_us, {at}.run) < (?, ?)")
            values += before
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"{tables}{where} ORDER BY {at}.start_us DESC, {at}.run DESC", values


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:NAME_CHARS_MAX]


# Cursors.


class _Cursor(Struct, frozen=True, array_like=True):
    version: int
    start_us: int
    run: str


_decode: Callable[[bytes], _Cursor] = msgspec.json.Decoder(_Cursor).decode


def cursor_of(place: Place) -> str:
    """Spell the place after which the next page goes on; opaque to clients."""
    start_us, run = place
    text = msgspec.json.encode(_Cursor(_VERSION, start_us, run[:_CURSOR_CHARS_MAX]))
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def place_of(cursor: str) -> Place:
    """Read a cursor back.

    :raises BadCursor: it is not one that :func:`cursor_of` made.
    """
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        read = _decode(text)
        place = (read.start_us, read.run)
        if read.version != _VERSION or cursor_of(place) != cursor:
            raise BadCursor(cursor)
    except (binascii.Error, ValueError, msgspec.MsgspecError, UnicodeError) as error:
        raise BadCursor("a cursor is what `next` of the page before said, unchanged") from error
    if not -(2**63) <= read.start_us < 2**63:
        raise BadCursor("a cursor holds a time that cannot be one")
    return place

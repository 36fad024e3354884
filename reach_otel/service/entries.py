"""Turn a run record into what the history keeps of it."""

from __future__ import annotations

import zlib
from collections import Counter
from datetime import UTC, datetime
from math import modf
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from reach_otel.span import ACTION_KINDS

if TYPE_CHECKING:
    from reach_otel.engine.record import MilestoneRecord, Record, StepRecord

NAME_CHARS_MAX: Final = 256  # of a name that runs are filtered by; the record keeps the whole of it
LEVELS: Final = ("L0", "L1", "L2", "L3", "L4")
CONTENT: Final = ("args", "result", "error")  # of a step: what may hold anything
_COMPRESSION: Final = 1

_RUN_COLUMNS: Final = (
    "run trace_id task agent variant outcome start_us decided_ms duration depth purity digestion composite high_layer"
    " high_expected high_reached coverage levels break_level break_reason actions effective last_tool"
).split()
INSERT_RUN: Final = (
    f"INSERT OR IGNORE INTO runs ({', '.join(_RUN_COLUMNS)}) VALUES ({', '.join('?' * len(_RUN_COLUMNS))})"
)

_encoder = msgspec.json.Encoder(enc_hook=str)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Entry(Struct, frozen=True):
    """The rows of one run, without the id that they share."""

    run: tuple[Any, ...]
    record: bytes
    steps: bytes | None
    milestones: list[tuple[Any, ...]]
    findings: list[tuple[Any, ...]]
    obstacles: list[tuple[Any, ...]]


class Opinion(Struct, frozen=True, omit_defaults=True):
    """What a person says of a run: how good it was (0-10), whether the verdict is right, and what would be right."""

    id: str
    quality: float | None = None
    correct: bool | None = None
    outcome: str | None = None
    milestones: dict[str, str] | None = None
    comment: str | None = None
    author: str | None = None


def entry_of(record: Record, decided_ms: int, *, show_content: bool = False) -> Entry:
    """Make the rows of a finished run; ``decided_ms`` is the Unix time of the verdict."""
    run, start_us, scores = clean(record.run), micros_of(record.start), record.scores
    deepest = deepest_must(record.milestones)
    broken = record.break_point
    body = plain(record)
    steps = body.pop("steps", None)
    if steps is not None and not show_content:
        steps = [without_content(step) for step in steps]
    values = (
        run,
        clean(record.trace_id),
        record.task,
        name(record.agent),
        name(record.variant),
        record.outcome,
        start_us,
        decided_ms,
        record.duration_seconds,
        scores.depth,
        scores.purity,
        scores.digestion,
        scores.composite,
        scores.high_layer,
        len(deepest),
        sum(milestone.state == "reached" for milestone in deepest),
        scores.coverage,
        sum(1 << n for n, level in enumerate(LEVELS) if level in record.levels and record.levels[level].passed),
        broken.level if broken else None,
        broken.reason if broken else None,
        sum(record.actions.values()),
        record.actions.get("effective", 0),
        name(last_tool(record.steps)),
    )
    times = Counter(finding.finding for finding in record.findings)
    return Entry(
        run=values,
        record=pack(body),
        steps=pack(steps) if steps is not None else None,
        milestones=[(n, m.id, m.state, m.reason, m.action, m.seconds) for n, m in enumerate(record.milestones)],
        findings=[(finding, number, start_us, run) for finding, number in times.items()],
        obstacles=[(n, o.kind, o.milestone, o.retries, o.digested) for n, o in enumerate(record.obstacles)],
    )


def deepest_must(milestones: tuple[MilestoneRecord, ...]) -> list[MilestoneRecord]:
    """Give the must-milestones of the deepest layer, by which high-layer reach is counted (SPEC 6.5)."""
    must = [milestone for milestone in milestones if milestone.type == "must"]
    deepest = max((milestone.layer for milestone in must), default=0)
    return [milestone for milestone in must if milestone.layer == deepest]


def last_tool(steps: tuple[StepRecord, ...] | None) -> str | None:
    """Name the tool of the latest action."""
    return next((step.tool for step in reversed(steps or ()) if step.kind in ACTION_KINDS), None)


def without_content(step: dict[str, Any]) -> dict[str, Any]:
    """Leave out of a step whatever may hold a value: arguments, result and error text."""
    return {**step, **dict.fromkeys(CONTENT)}


# Texts and times.


def plain(record: Record) -> dict[str, Any]:
    """Turn a record into dicts, lists and scalars."""
    built: dict[str, Any] = msgspec.to_builtins(record, enc_hook=str)
    return built


def encode(value: Any) -> bytes:
    """Write JSON; half of a surrogate pair, which is no text, becomes a question mark."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_mended(msgspec.to_builtins(value, enc_hook=str)))


def pack(value: Any) -> bytes:
    """Write compressed JSON."""
    return zlib.compress(encode(value), _COMPRESSION)


def unpack(blob: bytes) -> Any:
    """Read what :func:`pack` wrote."""
    return msgspec.json.decode(zlib.decompress(blob))


def clean(text: str) -> str:
    """Give a text that can be written as UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def name(text: str | None) -> str | None:
    """Give a name in the form by which runs are filtered: bounded."""
    return None if text is None else clean(text[:NAME_CHARS_MAX])


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {_mended(key): _mended(item) for key, item in value.items()}
    return [_mended(item) for item in value] if isinstance(value, list | tuple) else value


def micros_of(at: datetime | str) -> int:
    """Give a time, or the text of one in a record, as Unix microseconds."""
    delta = (datetime.fromisoformat(at) if isinstance(at, str) else at) - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def micros(ns: int) -> int:
    """Round Unix nanoseconds to microseconds exactly as a record's ``start`` is, at a fraction of the cost."""
    part, whole = modf(ns / 1e9)
    return int(whole) * 1_000_000 + round(part * 1e6)


def rfc3339(us: int) -> str:
    """Spell Unix microseconds, up to the year 9999, as the record's ``start`` is spelt."""
    at = datetime.fromtimestamp(us // 1_000_000, UTC).replace(microsecond=us % 1_000_000)
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")

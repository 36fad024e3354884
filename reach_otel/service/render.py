"""Say numbers, times, names and states in the words of the page: each function turns one value into text."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

Json = Mapping[str, Any]

NAME_MAX: Final = 80
TEXT_MAX: Final = 2_000
NOTHING: Final = "–"
HIGH_RISK_BELOW: Final = 0.5

MARKS: Final = {"reached": "●", "passed": "◐", "missed": "○"}
OUTCOME_MARKS: Final = {"success": "✓", "partial": "◐", "failed": "✕", "running": "▸"}
_OTHER_OUTCOME: Final = "◌"

_JOINERS: Final = "\u200c\u200d"  # letters of some scripts need them, and they turn nothing round
_HIDDEN: Final = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp", "Cn", "Co"))
_CONTROL_PICTURES: Final = 0x2400
_DELETE: Final = 0x7F
_DELETE_PICTURE: Final = "\u2421"


def visible(value: object, length_max: int = NAME_MAX) -> str:
    """Cut a text to its first characters, with each one that shows nothing or turns others round spelled out."""
    text = value if isinstance(value, str) else str(value)
    cut = text if len(text) <= length_max else text[: max(0, length_max - 1)] + "…"
    if cut.isascii() and cut.isprintable():
        return cut
    return "".join(_seen(character) for character in cut)


def _seen(character: str) -> str:
    if character in _JOINERS or unicodedata.category(character) not in _HIDDEN:
        return character
    code = ord(character)
    if code < 0x20:
        return chr(_CONTROL_PICTURES + code)
    return _DELETE_PICTURE if code == _DELETE else f"‹U+{code:04X}›"


def ratio(value: float | None) -> str:
    """Say a ratio with two digits; nothing measured is a dash, never a 0."""
    return NOTHING if value is None else f"{value:.2f}"


def percent(value: float | None) -> str:
    """Say a ratio in percent."""
    return NOTHING if value is None else f"{value * 100:.0f} %"


def width(value: float | None, full: float = 100) -> str:
    """Give the length of a bar."""
    return f"{max(0.0, min(1.0, value or 0.0)) * full:.1f}"


def number(value: float | None) -> str:
    """Say a count, with thin gaps between thousands."""
    if value is None:
        return NOTHING
    text = f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:,.1f}"
    return text.replace(",", "\u202f")


def seconds(value: float | None) -> str:
    """Say a duration in the unit that fits it."""
    if value is None:
        return NOTHING
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(int(value), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def bytes(value: float | None) -> str:  # noqa: A001 - the name of the filter
    """Say an amount of memory."""
    return NOTHING if value is None else f"{number(round(value / (1 << 20)))} MiB"


def clock(value: str | None) -> str:
    """Say the time of day, in UTC."""
    moment = _moment(value)
    return NOTHING if moment is None else moment.strftime("%H:%M:%S")


def moment(value: str | None) -> str:
    """Say day and time, in UTC."""
    found = _moment(value)
    return NOTHING if found is None else found.strftime("%Y-%m-%d %H:%M:%S UTC")


def _moment(value: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(value or "").astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def words(value: str | None) -> str:
    """Say a constant of the record in words: ``out_of_order`` -> ``out of order``."""
    return NOTHING if value is None else value.replace("_", " ")


def run_path(run_id: str) -> str:
    """Give the address of a run's page."""
    return f"/runs/{quote(run_id, safe='')}"


def task_path(name: str) -> str:
    """Give the address of a task's page."""
    return f"/tasks/{quote(name, safe='')}"


def outcome_mark(outcome: str) -> str:
    """Give the sign of an outcome."""
    return OUTCOME_MARKS.get(outcome, _OTHER_OUTCOME)


def summary_view(run: Json) -> dict[str, str]:
    """Say all that a card or a row shows of a run; ``live.js`` says the same (a browser test holds the two equal)."""
    scores, milestones = run["scores"], run["milestones"]
    must = [m for m in milestones if m["type"] == "must"]
    view = {
        "task": visible(run["task"]),
        "agent": visible(run["agent"] or ("no agent name" if run["final"] else "agent not named yet")),
        "variant": visible(run["variant"] or ""),
        "short": visible(run["run"], 9),
        "outcome": words(run["outcome"]),
        "mark": outcome_mark(run["outcome"]),
        "time": clock(run["start"]),
        "age": seconds(run["duration_seconds"]),
        "actions": f"{run['actions']} action{'' if run['actions'] == 1 else 's'}",
        "reached": f"{sum(m['state'] == 'reached' for m in must)} of {len(must)}",
        "doing": visible(run["last_tool"] or "thinking", 32),
        "stopped": stopped(run),
        "desc": description(milestones),
    }
    for name in ("composite", "depth", "purity", "digestion", "high_layer"):
        view[name] = ratio(scores[name])
        view[f"{name}_width"] = width(scores[name])
    return view


def stopped(run: Json) -> str:
    """Say the first thing that is in the way: a milestone that went by, else findings, else where the run stopped."""
    must = sorted((m for m in run["milestones"] if m["type"] == "must"), key=_layer)
    passed = [m for m in must if m["state"] == "passed"]
    if passed:
        return f"{visible(passed[0]['id'])}: {words(passed[0]['reason'])}"
    if run["findings"]:
        return ", ".join(words(finding) for finding in run["findings"][:3])
    missed = [m for m in must if m["state"] == "missed"]
    if run["final"] and missed:
        return f"{visible(missed[0]['id'])}: {words(missed[0]['reason'] or 'missed')}"
    return ""


def description(milestones: Iterable[Json]) -> str:
    """Say a graph in one sentence for who cannot see it."""
    listed = sorted(milestones, key=_layer)
    said = [f"{visible(m['id'])} {m['state']}" + (f" ({words(m['reason'])})" if m["reason"] else "") for m in listed]
    return "; ".join(said) or "no milestones"


def _layer(milestone: Json) -> int:
    return int(milestone["layer"])


def in_layers(milestones: Iterable[Json]) -> list[list[Json]]:
    """Group milestones by layer, as declared within one."""
    layers: dict[int, list[Json]] = {}
    for milestone in milestones:
        layers.setdefault(int(milestone["layer"]), []).append(milestone)
    return [layers[layer] for layer in sorted(layers)]


def edge_state(source: str | None, target: str, states: Mapping[str, str]) -> str:
    """Say ``done`` for an edge whose both ends are reached."""
    done = states.get(target) == "reached" and (source is None or states.get(source) == "reached")
    return "done" if done else ""

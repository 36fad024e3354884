"""Draw a task's graph as SVG: layers in columns, traps in a row below, readable in light and dark."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from reach_otel.task.draw import Arrow, arrows, layer_title, trap_note
from reach_otel.task.layout import Slot, all_slots, layout

if TYPE_CHECKING:
    from reach_otel.task.task import Milestone, Task, Trap

NODE_WIDTH, NODE_HEIGHT = 176, 50
COLUMN_WIDTH, SLOT_HEIGHT, PASS_HEIGHT = 248, 72, 26
MARGIN, LEFT, TOP = 24, 76, 92
_TEXT_COLUMNS, _SMALL_COLUMNS = 20, 25
_TRAP_HEIGHT = 62
_HEAT = (0.25, 0.5, 0.75, 0.95)

_STYLE = """
.rg{--ink:#1c2430;--soft:#5d6b7c;--page:#fff;--band:#f3f6f9;--must:#1f6feb;--fill:#eef4ff;
--opt:#5d6b7c;--optfill:#fff;--fall:#9a6700;--fallfill:#fff8e6;--trap:#c62f2f;--trapfill:#fff0ef;
--h0:#f8c9c4;--h1:#fbd9b5;--h2:#fdeeb0;--h3:#d9efbf;--h4:#b3e2bd;
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Noto Sans CJK SC",sans-serif}
@media (prefers-color-scheme:dark){
.rg{--ink:#e6edf3;--soft:#9aa7b4;--page:#0d1117;--band:#161b22;--must:#6cb0ff;--fill:#12294a;
--opt:#9aa7b4;--optfill:#0d1117;--fall:#e3b341;--fallfill:#2f2508;--trap:#ff8078;--trapfill:#3a1513;
--h0:#6b1f1a;--h1:#6b3f14;--h2:#5e4f10;--h3:#365314;--h4:#14532d}}
.rg text{fill:var(--ink);font-size:13px}
.rg .page{fill:var(--page)}
.rg .band{fill:var(--band)}
.rg .small{font-size:11px;fill:var(--soft)}
.rg .note{font-size:11px}
.rg .title{font-size:16px;font-weight:600}
.rg .id{font-weight:600}
.rg .must{fill:var(--fill);stroke:var(--must);stroke-width:2}
.rg .optional{fill:var(--optfill);stroke:var(--opt);stroke-width:1.25}
.rg .fallback{fill:var(--fallfill);stroke:var(--fall);stroke-width:1.5;stroke-dasharray:6 4}
.rg .trap{fill:var(--trapfill);stroke:var(--trap);stroke-width:1.5}
.rg .start{fill:var(--ink)}
.rg .edge{fill:none;stroke:var(--soft);stroke-width:1.4}
.rg .choice{stroke-dasharray:6 4}
.rg .critical{stroke:var(--must);stroke-width:3.6}
.rg .head{fill:var(--soft)}
.rg .headc{fill:var(--must)}
""".replace("\n", "")

Point: TypeAlias = tuple[float, float]


def svg(task: Task, rates: Mapping[str, float] | None = None) -> str:
    """Draw the task; with ``rates`` (milestone id: 0-1) milestones are coloured by how often they were reached."""
    slots, routes = layout(task.milestones, arrows(task), slot_height=SLOT_HEIGHT, pass_height=PASS_HEIGHT, top=TOP)
    columns = max((slot.column for slot in slots), default=1)
    bottom = max((slot.y + slot.height / 2 for slot in all_slots(slots, routes)), default=float(TOP))
    width = max(LEFT + (columns - 1) * COLUMN_WIDTH + NODE_WIDTH + MARGIN, 3 * COLUMN_WIDTH + MARGIN)
    parts = _bands(task, columns, bottom)
    middle = (TOP + bottom) / 2
    parts += [_edge(arrow, slots, route, middle) for arrow, route in routes]
    if task.milestones:
        parts.append(f'<circle class="start" cx="{MARGIN + 6}" cy="{middle:.0f}" r="6"><title>start</title></circle>')
    parts += [_node(milestone, slots[milestone.index], rates) for milestone in task.milestones]
    traps, bottom = _traps(task, bottom + 28, width)
    legend, bottom = _legend(bottom + 12, width)
    return _page(task, [*parts, *traps, *legend], width, bottom + MARGIN)


def _page(task: Task, parts: list[str], width: float, height: float) -> str:
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    label = _text(f"Task graph of {task.name}")
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="rg" {size} role="img" aria-label="{label}">',
        f"<style>{_STYLE}</style>",
        f"<defs>{_arrow_head('head')}{_arrow_head('headc')}</defs>",
        f'<rect class="page" width="{width:.0f}" height="{height:.0f}"/>',
        f'<text class="title" x="{MARGIN}" y="32">{_text(task.name, 80)}</text>',
        f'<text class="small" x="{MARGIN}" y="50">{_text(task.description, 120)}</text>',
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _arrow_head(name: str) -> str:
    return (
        f'<marker id="rg-{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" '
        f'markerUnits="userSpaceOnUse" orient="auto"><path class="{name}" d="M0,0.5 L8,4 L0,7.5 z"/></marker>'
    )


# Parts.


def _x(slot: Slot) -> float:
    """Give the middle of a slot's column."""
    return LEFT + (slot.column - 1) * COLUMN_WIDTH + NODE_WIDTH / 2


def _bands(task: Task, columns: int, bottom: float) -> list[str]:
    """Draw a band with a heading behind each layer."""
    parts = []
    for layer in range(1, columns + 1 if task.milestones else 1):
        x = LEFT + (layer - 1) * COLUMN_WIDTH
        size = f'width="{NODE_WIDTH + 32}" height="{bottom - TOP + 36:.0f}"'
        parts.append(f'<rect class="band" x="{x - 16}" y="{TOP - 28}" {size} rx="10"/>')
        parts.append(_centred("small", x + NODE_WIDTH / 2, TOP - 10, _text(layer_title(task, layer))))
    return parts


def _centred(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{text}</text>'


def _edge(arrow: Arrow, slots: list[Slot], route: list[Slot], middle: float) -> str:
    target = slots[arrow.target]
    end = (_x(target) - NODE_WIDTH / 2 - 1, target.y)
    if arrow.source is None:
        path = _forward([(MARGIN + 12.0, middle), *_level(route), end])
    elif target.column > slots[arrow.source].column:
        source = slots[arrow.source]
        path = _forward([(_x(source) + NODE_WIDTH / 2, source.y), *_level(route), end])
    else:
        path = _backward(slots[arrow.source], target)
    classes = "edge" + (" choice" if arrow.choice else "") + (" critical" if arrow.critical else "")
    head = "headc" if arrow.critical else "head"
    return f'<path class="{classes}" d="{path}" marker-end="url(#rg-{head})"/>'


def _level(route: list[Slot]) -> Iterator[Point]:
    """Cross each column on the way in a level line, as wide as the boxes there."""
    for slot in route:
        yield _x(slot) - NODE_WIDTH / 2, slot.y
        yield _x(slot) + NODE_WIDTH / 2, slot.y


def _forward(points: list[Point]) -> str:
    """Join points from left to right with curves that leave and arrive level."""
    text = "M{:.1f},{:.1f}".format(*points[0])
    for (x, y), (next_x, next_y) in pairwise(points):
        bend = (next_x - x) / 2
        text += f" C{x + bend:.1f},{y:.1f} {next_x - bend:.1f},{next_y:.1f} {next_x:.1f},{next_y:.1f}"
    return text


def _backward(source: Slot, target: Slot) -> str:
    """Lead round, below both boxes or beside them, to a milestone in the same or an earlier column."""
    if source.column == target.column:
        x = _x(source) + NODE_WIDTH / 2
        far = x + 44
        return f"M{x:.1f},{source.y:.1f} C{far:.1f},{source.y:.1f} {far:.1f},{target.y:.1f} {x + 1:.1f},{target.y:.1f}"
    y, end = source.y + NODE_HEIGHT / 2, target.y + NODE_HEIGHT / 2 + 1
    low = max(y, end) + 34
    x = _x(target) + NODE_WIDTH / 4
    return f"M{_x(source):.1f},{y:.1f} C{_x(source):.1f},{low:.1f} {x:.1f},{low:.1f} {x:.1f},{end:.1f}"


def _node(milestone: Milestone, slot: Slot, rates: Mapping[str, float] | None) -> str:
    x, y = _x(slot) - NODE_WIDTH / 2, slot.y - NODE_HEIGHT / 2
    rate = None if rates is None else rates.get(milestone.id)
    heat = "" if rate is None else f' style="fill:var(--h{sum(rate >= bound for bound in _HEAT)})"'
    tools = ", ".join(milestone.tools)
    note = f"{rate:.0%} · {tools}" if rate is not None else tools
    facts = [milestone.id, milestone.type + (", used" if milestone.used else ""), milestone.description, tools]
    size = f'width="{NODE_WIDTH}" height="{NODE_HEIGHT}"'
    return "".join(
        (
            f"<g>{_tooltip(facts)}",
            f'<rect class="{milestone.type}"{heat} x="{x:.1f}" y="{y:.1f}" {size} rx="9"/>',
            _centred("id", _x(slot), slot.y - 4, _text(milestone.id, _TEXT_COLUMNS)),
            _centred("small" if rate is None else "note", _x(slot), slot.y + 14, _text(note, _SMALL_COLUMNS)),
            "</g>",
        )
    )


def _tooltip(facts: list[str]) -> str:
    return f"<title>{_text(chr(10).join(filter(None, facts)))}</title>"


def _traps(task: Task, top: float, width: float) -> tuple[list[str], float]:
    """Draw traps in rows; also give where they end."""
    across = max(1, int((width - 2 * MARGIN) // COLUMN_WIDTH))
    parts = [
        _trap(task, trap, MARGIN + trap.index % across * COLUMN_WIDTH, top + trap.index // across * 62)
        for trap in task.traps
    ]
    return parts, top + -(-len(task.traps) // across) * _TRAP_HEIGHT


def _trap(task: Task, trap: Trap, x: float, y: float) -> str:
    width, note = COLUMN_WIDTH - 20, trap_note(task, trap)
    corner = f"M{x + 8},{y} h{width - 16} l8,8 v34 l-8,8 h-{width - 16} l-8,-8 v-34 z"
    facts = [f"trap: {trap.id}", note, trap.description]
    return (
        f'<g>{_tooltip(facts)}<path class="trap" d="{corner}"/>'
        f'<text class="id" x="{x + 14}" y="{y + 21}">⚠ {_text(trap.id, 26)}</text>'
        f'<text class="small" x="{x + 14}" y="{y + 39}">{_text(note or "always a trap", 34)}</text></g>'
    )


def _legend(y: float, width: float) -> tuple[list[str], float]:
    parts, x = [], float(MARGIN)
    for kind, text in (
        ("must", "must"),
        ("optional", "optional"),
        ("fallback", "fallback"),
        ("edge", "waits for"),
        ("edge choice", "waits for one of these"),
        ("edge critical", "critical: on every way to the last layer"),
    ):
        length = 42 + 6.2 * len(text) + 18
        if x + length > width:
            x, y = float(MARGIN), y + 24
        if kind.startswith("edge"):
            parts.append(f'<path class="{kind}" d="M{x:.0f},{y:.0f} h32"/>')
        else:
            parts.append(f'<rect class="{kind}" x="{x + 4:.0f}" y="{y - 7:.0f}" width="24" height="14" rx="4"/>')
        parts.append(f'<text class="small" x="{x + 40:.0f}" y="{y + 4:.0f}">{text}</text>')
        x += length
    return parts, y + 10


def _text(text: str, columns_max: int | None = None) -> str:
    """Make text safe inside SVG, and as short as its place; wide characters take two columns."""
    kept, columns = "", 0
    for character in text:
        if not (character.isprintable() or (character == "\n" and columns_max is None)):
            character = " "  # noqa: PLW2901 - what XML or a terminal could not show
        columns += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if columns_max is not None and columns > columns_max:
            return escape(kept[:-1] + "…")
        kept += character
    return escape(kept)

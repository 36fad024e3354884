"""Write a task's graph as DOT and Mermaid text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reach_otel.task.task import Milestone, Task, Trap

_DOT_STYLES = {"must": "rounded,bold", "optional": "rounded", "fallback": "rounded,dashed"}
_MERMAID_SHAPES = {"must": ("[", "]"), "optional": ("(", ")"), "fallback": ("{{", "}}")}


@dataclass(frozen=True, slots=True)
class Arrow:
    """An edge to draw: indexes of milestones, ``source`` ``None`` for the start."""

    source: int | None
    target: int
    choice: bool  # one of several that will do
    critical: bool


def arrows(task: Task) -> list[Arrow]:
    """Give the edges of a task: from the start to milestones that wait for nothing, and along dependencies."""
    critical = set(task.critical_edges)
    found = [Arrow(None, m.index, False, (None, m.index) in critical) for m in task.milestones if not m.depends_on]
    for milestone in task.milestones:
        for group in milestone.depends_on:
            for source in group:
                edge = (source, milestone.index)
                found.append(Arrow(source, milestone.index, len(group) > 1, edge in critical))
    return found


def by_layer(task: Task) -> Iterator[tuple[int, list[Milestone]]]:
    """Give each layer, from 1, with its milestones in declared order."""
    for layer in range(1, max((m.layer for m in task.milestones), default=0) + 1):
        yield layer, [m for m in task.milestones if m.layer == layer]


def layer_title(task: Task, layer: int) -> str:
    """Name a layer and its weight; layers beyond the deepest must-milestone's have none."""
    if layer > len(task.layer_weights):
        return f"layer {layer}"
    return f"layer {layer} · weight {task.layer_weights[layer - 1]:g}"


def trap_note(task: Task, trap: Trap) -> str:
    """Say when something is a trap; nothing where it always is one."""
    names = " or ".join(task.milestones[index].id for index in trap.when_not_reached)
    return f"while {names} is not reached" if names else ""


def dot(task: Task) -> str:
    """Draw for Graphviz: layers in columns, must bold, fallback dashed, any-of edges dashed, critical ones thick."""
    lines = [
        f"digraph {_quoted(task.name)} {{",
        '  rankdir=LR; node [shape=box, fontname="sans-serif", fontsize=11]; edge [arrowsize=0.7];',
        '  start [shape=circle, label="", width=0.15, style=filled, fillcolor=black];',
    ]
    for layer, milestones in by_layer(task):
        names = " ".join(f"m{milestone.index};" for milestone in milestones)
        lines.append(f"  subgraph cluster_{layer} {{ label={_quoted(layer_title(task, layer))}; color=none; {names} }}")
    for milestone in task.milestones:
        label = _quoted(milestone.id, *milestone.tools)
        lines.append(f'  m{milestone.index} [label={label}, style="{_DOT_STYLES[milestone.type]}"];')
    for arrow in arrows(task):
        source = "start" if arrow.source is None else f"m{arrow.source}"
        style = f"[style={'dashed' if arrow.choice else 'solid'}, penwidth={3 if arrow.critical else 1}]"
        lines.append(f"  {source} -> m{arrow.target} {style};")
    for trap in task.traps:
        label = _quoted(f"trap: {trap.id}", *filter(None, (trap_note(task, trap),)))
        lines.append(f"  t{trap.index} [shape=octagon, label={label}];")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(*texts: str) -> str:
    """Quote lines of one DOT label."""
    lines = (_one_line(text).replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return '"' + "\\n".join(lines) + '"'


def mermaid(task: Task) -> str:
    """Draw for Mermaid, as Markdown viewers show it: thick arrows are critical, dotted ones any-of."""
    lines = ["flowchart LR", "  start((( )))"]
    for layer, milestones in by_layer(task):
        lines.append(f'  subgraph layer{layer}["{_entities(layer_title(task, layer))}"]')
        for milestone in milestones:
            left, right = _MERMAID_SHAPES[milestone.type]
            lines.append(f'    m{milestone.index}{left}"{_entities(milestone.id)}"{right}:::{milestone.type}')
        lines.append("  end")
    for arrow in arrows(task):
        source = "start" if arrow.source is None else f"m{arrow.source}"
        line = "==>" if arrow.critical else "-.->" if arrow.choice else "-->"
        lines.append(f"  {source} {line} m{arrow.target}")
    for trap in task.traps:
        note = trap_note(task, trap)
        text = _entities(f"trap: {trap.id}") + (f"<br/>{_entities(note)}" if note else "")
        lines.append(f'  t{trap.index}>"{text}"]:::trap')
    lines += [
        "  classDef must stroke-width:2px",
        "  classDef optional stroke-dasharray:0",
        "  classDef fallback stroke-dasharray:5 4",
        "  classDef trap stroke:#c0392b",
    ]
    return "\n".join(lines) + "\n"


def _entities(text: str) -> str:
    """Write all but plain characters as Mermaid's entity codes, so that no text can end a label."""
    return "".join(c if c.isalnum() or c in " _-.,:/·" else f"#{ord(c)};" for c in _one_line(text))


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)

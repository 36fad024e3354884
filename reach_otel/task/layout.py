"""Lay a layered graph out: order the milestones of each layer so that few edges cross, and give each its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from reach_otel.task.draw import Arrow

_SWEEPS = 6
_RANKS = {"must": 0, "optional": 1, "fallback": 2}


class Placeable(Protocol):
    """What is asked of a milestone to be given a place."""

    @property
    def layer(self) -> int: ...

    @property
    def type(self) -> str: ...


@dataclass(slots=True)
class Slot:
    """A place in a column: of a milestone, or where a long edge passes through. ``y`` is its middle across."""

    column: int
    height: float
    rank: int
    before: list[Slot] = field(default_factory=list)
    after: list[Slot] = field(default_factory=list)
    y: float = 0.0


Routes = list[tuple["Arrow", list[Slot]]]


def layout(
    milestones: Sequence[Placeable], arrows: Sequence[Arrow], *, slot_height: float, pass_height: float, top: float = 0
) -> tuple[list[Slot], Routes]:
    """Give each milestone its slot, and each edge the slots it passes through.

    Layers are columns; the slots of a column are sorted by the mean place of their neighbours, a few times to and fro,
    then stacked from ``top`` around one middle line.
    """
    slots = [Slot(m.layer, slot_height, _RANKS[m.type]) for m in milestones]
    routes = [(arrow, _passage(arrow, slots, pass_height)) for arrow in arrows]
    columns: dict[int, list[Slot]] = {}
    for slot in all_slots(slots, routes):
        columns.setdefault(slot.column, []).append(slot)
    _place(columns, top)
    return slots, routes


def all_slots(slots: list[Slot], routes: Routes) -> list[Slot]:
    """List the slots of milestones and those of edges passing through."""
    return [*slots, *(slot for _, route in routes for slot in route)]


def _passage(arrow: Arrow, slots: list[Slot], pass_height: float) -> list[Slot]:
    """Make the slots in which a long edge passes the columns between its ends, and join all as neighbours."""
    source = None if arrow.source is None else slots[arrow.source]
    target = slots[arrow.target]
    first = 0 if source is None else source.column
    route = [Slot(column, pass_height, 1) for column in range(first + 1, target.column)]
    chain = [*([] if source is None else [source]), *route, target]
    for one, other in pairwise(chain):
        one.after.append(other)
        other.before.append(one)
    return route


def _place(columns: dict[int, list[Slot]], top: float) -> None:
    tallest = max((sum(slot.height for slot in column) for column in columns.values()), default=0.0)
    for column in columns.values():
        column.sort(key=lambda slot: slot.rank)
        _stack(column, tallest, top)
    for sweep in range(_SWEEPS):
        for number in sorted(columns, reverse=bool(sweep % 2)):
            column = columns[number]
            wanted = {id(slot): _wanted(slot, backwards=bool(sweep % 2)) for slot in column}
            column.sort(key=lambda slot: wanted[id(slot)])
            _stack(column, tallest, top)


def _wanted(slot: Slot, *, backwards: bool) -> float:
    near = (slot.after if backwards else slot.before) or slot.before or slot.after
    return sum(other.y for other in near) / len(near) if near else slot.y


def _stack(column: list[Slot], tallest: float, top: float) -> None:
    y = top + (tallest - sum(slot.height for slot in column)) / 2
    for slot in column:
        slot.y = y + slot.height / 2
        y += slot.height

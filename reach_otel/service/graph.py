"""Place a task's graph, as the API gives it, on a page: dots for a card, boxes across or down for a page of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from reach_otel.task.draw import Arrow
from reach_otel.task.layout import Routes, Slot, all_slots, layout

Json = Mapping[str, Any]


class Style(NamedTuple):
    """Say how large things are, in pixels along the layers and across them; ``down`` turns the layers into rows."""

    name: str
    down: bool
    along: float  # from layer to layer
    across: float  # from milestone to milestone
    passing: float  # across, where an edge passes a layer
    node_along: float
    node_across: float
    head: float  # room for the heading of the layers
    lead: float  # room for the start
    margin: float  # along
    rim: float  # across
    label_max: int  # characters; 0: no label


DOTS: Final = Style("dots", False, 80, 46, 12, 20, 20, 0, 22, 26, 2, 12)
SMALL_DOTS: Final = Style("dots", False, 34, 26, 8, 16, 16, 0, 22, 8, 2, 0)
ACROSS: Final = Style("boxes", False, 222, 74, 24, 172, 54, 30, 40, 18, 10, 16)
DOWN: Final = Style("boxes", True, 104, 108, 12, 54, 102, 24, 24, 2, 1, 11)

LABELLED_LAYERS_MAX: Final = 6
COLUMNS_MAX: Final = 7  # beyond it, boxes in columns are too small to read
ACROSS_WIDTH: Final = 1_110  # of a usual window, less what is around the columns
DOWN_WIDTH: Final = 326  # of a phone, less its margins


class Node(NamedTuple):
    """A milestone at its place; ``x`` and ``y`` are its middle."""

    id: str
    type: str
    layer: int
    label: str
    tools: str
    x: float
    y: float


class Edge(NamedTuple):
    """A way from a milestone (``None``: from the start) to another, as an SVG path."""

    source: str | None
    target: str
    path: str
    critical: bool
    choice: bool


class Band(NamedTuple):
    """The ground of one layer, with its heading."""

    x: float
    y: float
    width: float
    height: float
    title: str
    title_x: float
    title_y: float


class Drawing(NamedTuple):
    """Everything that a template needs to draw a graph."""

    style: Style
    width: float
    height: float
    node_width: float
    node_height: float
    start: tuple[float, float]
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    bands: tuple[Band, ...]


class _Milestone(NamedTuple):
    layer: int
    type: str


def dots(task: Json) -> Drawing:
    """Draw small, for a card; deep graphs get no labels."""
    return draw(task, DOTS if _depth(task) <= LABELLED_LAYERS_MAX else SMALL_DOTS)


def boxes(task: Json, *, down: bool) -> Drawing:
    """Draw large: layers as columns for a wide window, as rows for a narrow one, or where columns would be too many."""
    depth = _depth(task)
    if not down and depth <= COLUMNS_MAX:
        along = max(154.0, min(ACROSS.along, ACROSS_WIDTH / depth))
        box = min(ACROSS.node_along, along - 38)
        return draw(task, ACROSS._replace(along=along, node_along=box, label_max=int((box - 48) / 7.6)))
    layers = [m["layer"] for m in task["milestones"]]
    most = max((layers.count(layer) for layer in set(layers)), default=1)
    across = max(DOWN.across, min(160.0, DOWN_WIDTH / most)) if down else 184.0
    return draw(task, DOWN._replace(across=across, node_across=across - 6, label_max=int((across - 24) / 7)))


def draw(task: Json, style: Style) -> Drawing:
    """Place milestones, edges and layers in the given style."""
    milestones: Sequence[Json] = task["milestones"]
    arrows = _arrows(task)
    placed = [_Milestone(int(m["layer"]), str(m["type"])) for m in milestones]
    top = style.rim + (0 if style.down else style.head)
    slots, routes = layout(placed, arrows, slot_height=style.across, pass_height=style.passing, top=top)
    everything = all_slots(slots, routes)
    first = min((s.y - s.height / 2 for s in everything), default=top)
    last = max((s.y + s.height / 2 for s in everything), default=top + style.across)
    middle = (first + last) / 2
    depth = _depth(task)
    length = style.lead + style.margin * 2 + (depth - 1) * style.along + style.node_along
    length += style.head if style.down else 0
    pen = _Pen(style)
    if any(pen.leads_round(arrow, slots) for arrow in arrows):
        length += max(0, style.along / 5 + 4 - style.margin)  # such an edge bends out beyond the last layer
    breadth = last + style.rim
    return Drawing(
        style=style,
        width=breadth if style.down else length,
        height=length if style.down else breadth,
        node_width=style.node_across if style.down else style.node_along,
        node_height=style.node_along if style.down else style.node_across,
        start=pen.point(style.margin + 8, middle),
        nodes=tuple(pen.node(m, slot) for m, slot in zip(milestones, slots, strict=True)),
        edges=tuple(pen.edges(milestones, slots, routes, middle)),
        bands=tuple(pen.bands(task, depth, first, last)),
    )


def _depth(task: Json) -> int:
    return max((int(m["layer"]) for m in task["milestones"]), default=1)


def _arrows(task: Json) -> list[Arrow]:
    """Read the edges as the task's own drawing has them."""
    index = {m["id"]: n for n, m in enumerate(task["milestones"])}
    critical = {(source, target) for source, target in task.get("critical_edges", ())}
    found = []
    for target, milestone in enumerate(task["milestones"]):
        name = milestone["id"]
        if not milestone["depends_on"]:
            found.append(Arrow(None, target, False, (None, name) in critical))
        for group in milestone["depends_on"]:
            found += [Arrow(index[source], target, len(group) > 1, (source, name) in critical) for source in group]
    return found


class _Pen:
    """Turn places along and across into x and y."""

    def __init__(self, style: Style) -> None:
        self._style = style
        self._first = style.margin + style.lead + style.node_along / 2 + (style.head if style.down else 0)

    def point(self, along: float, across: float) -> tuple[float, float]:
        return (across, along) if self._style.down else (along, across)

    def _along(self, slot: Slot) -> float:
        return self._first + (slot.column - 1) * self._style.along

    def node(self, milestone: Json, slot: Slot) -> Node:
        x, y = self.point(self._along(slot), slot.y)
        label_max = self._style.label_max
        name = str(milestone["id"])
        label = name if len(name) <= label_max else name[: label_max - 1] + "…" if label_max else ""
        tools = ", ".join(milestone.get("tools", ()))
        return Node(name, str(milestone["type"]), int(milestone["layer"]), label, tools, round(x, 1), round(y, 1))

    def edges(self, milestones: Sequence[Json], slots: list[Slot], routes: Routes, middle: float) -> Iterator[Edge]:
        half = self._style.node_along / 2
        for arrow, route in routes:
            target = slots[arrow.target]
            end = (self._along(target) - half, target.y)
            if arrow.source is None:
                path = self._forward([(self._style.margin + 8.0, middle), *self._level(route), end])
            elif target.column > slots[arrow.source].column:
                source = slots[arrow.source]
                path = self._forward([(self._along(source) + half, source.y), *self._level(route), end])
            else:
                path = self._back(slots[arrow.source], target)
            source_id = None if arrow.source is None else str(milestones[arrow.source]["id"])
            yield Edge(source_id, str(milestones[arrow.target]["id"]), path, arrow.critical, arrow.choice)

    def leads_round(self, arrow: Arrow, slots: list[Slot]) -> bool:
        """Say whether an edge goes back, or passes others of its own layer."""
        if arrow.source is None or slots[arrow.target].column > slots[arrow.source].column:
            return False
        return not self._beside(slots[arrow.source], slots[arrow.target])

    def _beside(self, one: Slot, other: Slot) -> bool:
        return one.column == other.column and abs(one.y - other.y) <= self._style.across * 1.01

    def _level(self, route: list[Slot]) -> Iterator[tuple[float, float]]:
        for slot in route:
            yield self._along(slot) - self._style.node_along / 2, slot.y
            yield self._along(slot) + self._style.node_along / 2, slot.y

    def _forward(self, points: list[tuple[float, float]]) -> str:
        """Join points with curves that leave and arrive along the layers."""
        text = "M" + self._write(*points[0])
        for (along, across), (next_along, next_across) in pairwise(points):
            bend = (next_along - along) / 2
            text += f" C{self._write(along + bend, across)} {self._write(next_along - bend, next_across)} "
            text += self._write(next_along, next_across)
        return text

    def _back(self, source: Slot, target: Slot) -> str:
        """Lead to a milestone in the same or an earlier layer: straight to a neighbour, else round beside both."""
        if self._beside(source, target):
            along, side = self._along(source), self._style.node_across / 2 * (1 if target.y > source.y else -1)
            return f"M{self._write(along, source.y + side)} L{self._write(along, target.y - side)}"
        half = self._style.node_along / 2
        start, end = self._along(source) + half, self._along(target) + half
        far = max(start, end) + self._style.along / 5
        return (
            f"M{self._write(start, source.y)} C{self._write(far, source.y)} {self._write(far, target.y)} "
            f"{self._write(end, target.y)}"
        )

    def _write(self, along: float, across: float) -> str:
        x, y = self.point(along, across)
        return f"{x:.1f},{y:.1f}"

    def bands(self, task: Json, depth: int, first: float, last: float) -> Iterator[Band]:
        style = self._style
        if style.name != "boxes":
            return
        weights = task.get("layer_weights", ())
        for layer in range(1, depth + 1):
            weight = f" · weight {weights[layer - 1]:g}" if layer <= len(weights) else ""
            middle = self._first + (layer - 1) * style.along
            near = middle - style.node_along / 2 - (style.head if style.down else 16)
            thick = style.node_along + (style.head + 8 if style.down else 32)
            if style.down:
                yield Band(first, near, last - first, thick, f"layer {layer}{weight}", first + 10, near + 16)
            else:
                top = first - style.head + 4
                yield Band(near, top, thick, last - top, f"layer {layer}{weight}", middle, top + 19)

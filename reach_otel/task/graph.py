"""Compute layers, order, cycles and critical edges of a task's graph, on milestone indexes alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

Dependencies: TypeAlias = tuple[tuple[int, ...], ...]
"""What one milestone waits for: one member of every group."""

Edge: TypeAlias = tuple[int | None, int]
"""From a milestone to one that waits for it; ``None`` is the start."""


def find_cycle(depends_on: Sequence[Dependencies]) -> list[int] | None:
    """Give a cycle as a path that ends where it begins, each member waiting for the next, or ``None``."""
    state = [0] * len(depends_on)  # 0 unseen, 1 on the path, 2 done
    for root in range(len(depends_on)):
        if state[root]:
            continue
        path: list[int] = [root]
        waits: list[Iterator[int]] = [_members(depends_on[root])]
        state[root] = 1
        while path:
            following = next(waits[-1], None)
            if following is None:
                waits.pop()
                state[path.pop()] = 2
            elif state[following] == 1:
                return [*path[path.index(following) :], following]
            elif state[following] == 0:
                state[following] = 1
                path.append(following)
                waits.append(_members(depends_on[following]))
    return None


def topological_order(depends_on: Sequence[Dependencies]) -> tuple[int, ...]:
    """Order milestones so that each comes after all it may wait for; declared order where there is a choice.

    The graph must have no cycle.
    """
    order: list[int] = []
    done: set[int] = set()
    todo = list(range(len(depends_on)))[::-1]
    while todo:
        index = todo[-1]
        waiting = [] if index in done else [d for d in _members(depends_on[index]) if d not in done]
        if waiting:
            todo.extend(reversed(waiting))
            continue
        todo.pop()
        if index not in done:
            done.add(index)
            order.append(index)
    return tuple(order)


def layers(types: Sequence[str], depends_on: Sequence[Dependencies]) -> tuple[int, ...]:
    """Give each milestone's layer, from 1 (SPEC 3).

    A must-milestone lies one deeper than the deepest thing it waits for; an optional or fallback one passes on the
    depth of what *it* waits for, so that a detour does not deepen the graph; of ``any`` the shallowest counts.
    """
    below = [0] * len(types)  # deepest L(d) over what the milestone waits for
    for index in topological_order(depends_on):
        below[index] = max(
            (min(below[d] + (types[d] == "must") for d in group) for group in depends_on[index]), default=0
        )
    return tuple(depth + 1 for depth in below)


def main_line(types: Sequence[str], depends_on: Sequence[Dependencies]) -> dict[int, tuple[int, ...]]:
    """Give, for each must-milestone, the must-milestones right before it.

    Where a group has must-members they are the main line and its other members are ways around, which a fault is meant
    to force; a group of detours alone is looked through.
    """
    found: list[frozenset[int]] = [frozenset()] * len(types)
    for index in topological_order(depends_on):
        before: set[int] = set()
        for group in depends_on[index]:
            musts = [d for d in group if types[d] == "must"]
            before.update(musts or (far for d in group for far in found[d]))
        found[index] = frozenset(before)
    return {index: tuple(sorted(found[index])) for index, kind in enumerate(types) if kind == "must"}


def critical_edges(types: Sequence[str], depends_on: Sequence[Dependencies]) -> tuple[Edge, ...]:
    """Give the must-edges that every path from the start to the last layer goes through, from the start on.

    An edge dominates a milestone when it lies on every path to it: the edges common to all its ways in. Edges are
    numbered and their sets kept as bits, so that the cost is one pass over the main line.
    """
    before = main_line(types, depends_on)
    if not before:
        return ()
    depth = layers(types, depends_on)
    edges: list[Edge] = []
    dominators: dict[int, int] = {}
    for index in topological_order(depends_on):
        if index not in before:
            continue
        common = -1
        for source in before[index] or (None,):
            common &= (dominators[source] if source is not None else 0) | 1 << len(edges)
            edges.append((source, index))
        dominators[index] = common
    deepest = max(depth[index] for index in before)
    common = -1
    for index in before:
        if depth[index] == deepest:
            common &= dominators[index]
    return tuple(edge for number, edge in enumerate(edges) if common >> number & 1)


def _members(groups: Dependencies) -> Iterator[int]:
    return (member for group in groups for member in group)

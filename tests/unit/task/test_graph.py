"""Layers, order, cycles and critical edges, on small graphs by hand and on any graph against naive definitions."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reach_otel.task.graph import Dependencies, critical_edges, find_cycle, layers, main_line, topological_order

M, O, F = "must", "optional", "fallback"  # noqa: E741


def test_a_chain_deepens_by_one_each() -> None:
    assert layers([M] * 4, [(), ((0,),), ((1,),), ((2,),)]) == (1, 2, 3, 4)


def test_the_deepest_dependency_counts() -> None:
    assert layers([M] * 4, [(), ((0,),), (), ((1,), (2,))]) == (1, 2, 1, 3)


def test_a_detour_does_not_deepen_the_graph() -> None:
    """read -> optional -> optional -> update: update is in layer 2, right after read."""
    assert layers([M, O, O, M], [(), ((0,),), ((1,),), ((2,),)]) == (1, 2, 2, 2)


def test_a_detour_with_no_dependency_counts_nothing() -> None:
    assert layers([F, M], [(), ((0,),)]) == (1, 1)


def test_of_any_the_shallowest_member_counts() -> None:
    """The ticket task: update waits for suggestion (layer 3) or escalate, which only waits for read."""
    types = [M, M, M, M, F, M]
    depends_on: list[Dependencies] = [(), ((0,),), ((0,),), ((1,), (2,)), ((0,),), ((3, 4),)]
    assert layers(types, depends_on) == (1, 2, 2, 3, 2, 2)


def test_any_beside_a_plain_dependency() -> None:
    assert layers([M, M, M, M], [(), ((0,),), ((1,),), ((0, 2), (1,))]) == (1, 2, 3, 3)


@pytest.mark.parametrize(
    ("depends_on", "cycle"),
    [
        ([((0,),)], [0, 0]),
        ([((1,),), ((0,),)], [0, 1, 0]),
        ([(), ((2,),), ((3,),), ((0, 1),)], [1, 2, 3, 1]),
        ([(), ((0,),), ((0,), (1,))], None),
        ([], None),
    ],
)
def test_a_cycle_is_found_as_a_path(depends_on: list[Dependencies], cycle: list[int] | None) -> None:
    assert find_cycle(depends_on) == cycle


def test_deep_graphs_need_no_deep_stack() -> None:
    count = 20_000
    chain: list[Dependencies] = [((index + 1,),) for index in range(count - 1)] + [()]
    assert find_cycle(chain) is None
    assert topological_order(chain) == tuple(reversed(range(count)))


def test_every_edge_of_a_chain_is_critical() -> None:
    assert critical_edges([M] * 3, [(), ((0,),), ((1,),)]) == ((None, 0), (0, 1), (1, 2))


def test_no_edge_of_a_diamond_is_critical_but_those_before_and_after_it() -> None:
    depends_on: list[Dependencies] = [(), ((0,),), ((0,),), ((1,), (2,)), ((3,),)]
    assert critical_edges([M] * 5, depends_on) == ((None, 0), (3, 4))


def test_two_starts_or_two_ends_leave_nothing_critical() -> None:
    assert critical_edges([M] * 3, [(), (), ((0,), (1,))]) == ()
    assert critical_edges([M] * 3, [(), ((0,),), ((0,),)]) == ((None, 0),)


def test_only_ways_to_the_last_layer_count() -> None:
    """A must-milestone that ends early, such as a note taken beside the main line, makes nothing less critical."""
    assert critical_edges([M] * 4, [(), ((0,),), ((1,),), ((0,),)]) == ((None, 0), (0, 1), (1, 2))


def test_a_fallback_is_no_way_around_and_a_detour_is_looked_through() -> None:
    """Faults go where a fallback would have to help."""
    types, depends_on = [M, M, F, M], [(), ((0,),), ((0,),), ((1, 2),)]
    assert main_line(types, depends_on) == {0: (), 1: (0,), 3: (1,)}
    assert main_line([M, O, M], [(), ((0,),), ((1,),)]) == {0: (), 2: (0,)}
    assert critical_edges([M, O, M], [(), ((0,),), ((1,),)]) == ((None, 0), (0, 2))


def test_a_graph_without_must_milestones_has_no_critical_edge() -> None:
    assert critical_edges([O, F], [(), ((0,),)]) == ()
    assert critical_edges([], []) == ()


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[str], list[Dependencies]]:
    """Any graph without a cycle, declared in any order."""
    count = draw(st.integers(1, 7))
    order = draw(st.permutations(range(count)))
    types = draw(st.lists(st.sampled_from([M, M, O, F]), min_size=count, max_size=count))
    depends_on: list[Dependencies] = [()] * count
    for place, index in enumerate(order):
        if place:
            group = st.lists(st.sampled_from(order[:place]), min_size=1, max_size=3, unique=True).map(tuple)
            depends_on[index] = tuple(draw(st.lists(group, max_size=3)))
    return types, depends_on


def naive_level(types: list[str], depends_on: list[Dependencies], index: int) -> int:
    """L(d) of SPEC 3, word by word."""
    below = max((min(naive_level(types, depends_on, d) for d in group) for group in depends_on[index]), default=0)
    return below + 1 if types[index] == M else below


@given(graphs())
def test_layers_are_those_of_the_definition(graph: tuple[list[str], list[Dependencies]]) -> None:
    types, depends_on = graph
    expected = []
    for index in range(len(types)):
        below = max((min(naive_level(types, depends_on, d) for d in group) for group in depends_on[index]), default=0)
        expected.append(below + 1)
    assert list(layers(types, depends_on)) == expected


@given(graphs())
def test_the_order_puts_each_after_what_it_waits_for(graph: tuple[list[str], list[Dependencies]]) -> None:
    _, depends_on = graph
    order = topological_order(depends_on)
    assert sorted(order) == list(range(len(depends_on)))
    place = {index: number for number, index in enumerate(order)}
    assert all(place[d] < place[index] for index in order for group in depends_on[index] for d in group)


@given(graphs())
def test_critical_edges_are_those_on_every_path(graph: tuple[list[str], list[Dependencies]]) -> None:
    types, depends_on = graph
    before = main_line(types, depends_on)
    depth = layers(types, depends_on)
    deepest = max((depth[index] for index in before), default=0)

    def paths(index: int) -> list[list[int | None]]:
        ways: list[list[int | None]] = [way for source in before[index] for way in paths(source)] or [[None]]
        return [[*way, index] for way in ways]

    ways = [set(pairwise(way)) for index in before if depth[index] == deepest for way in paths(index)]
    assert set(critical_edges(types, depends_on)) == (set.intersection(*ways) if ways else set())


@given(graphs(), st.data())
def test_a_cycle_is_found_wherever_one_edge_closes_it(
    graph: tuple[list[str], list[Dependencies]], data: st.DataObject
) -> None:
    _, depends_on = graph
    assert find_cycle(depends_on) is None
    edges = [(index, d) for index, groups in enumerate(depends_on) for group in groups for d in group]
    if not edges:
        return
    late, early = data.draw(st.sampled_from(edges))
    closed = [*depends_on]
    closed[early] = (*closed[early], (late,))
    cycle = find_cycle(closed)
    assert cycle is not None
    assert cycle[0] == cycle[-1]
    assert all(other in {d for group in closed[one] for d in group} for one, other in pairwise(cycle))

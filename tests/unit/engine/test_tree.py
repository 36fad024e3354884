"""Check how the span tree is climbed while parts of it are missing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import pytest

from reach_otel.engine.tree import CLIMB_MAX, Tree
from reach_otel.span.step import Step
from tests.support.steps import Steps


def tree_of(steps: Sequence[Step]) -> Tree:
    tree = Tree()
    for step in steps:
        tree.add(step)
    return tree


def family() -> list[Step]:
    """Tell of an agent within a tool within an agent, with wrappers between."""
    steps = Steps()
    steps.add("other", 0, 20, span_id="web")
    steps.agent("boss", 1, 19, parent="web", span_id="boss")
    steps.tool("ask", 2, 10, parent="boss", span_id="ask")
    steps.add("other", 3, 9, parent="ask", span_id="chain")
    steps.agent("helper", 4, 8, parent="chain", span_id="helper")
    steps.tool("find", 5, 6, parent="helper", span_id="find")
    steps.agent("second", 11, 12, parent="web", span_id="second")
    return steps.made


def test_ancestors_are_found_through_any_span() -> None:
    """The nearest agent and tool above are found through wrappers."""
    tree = tree_of(family())
    assert list(tree.above("find")) == ["helper", "chain", "ask", "boss", "web"]
    assert [getattr(tree.agent_above(i), "agent", None) for i in ("find", "ask", "boss")] == ["helper", "boss", None]
    assert [getattr(tree.tool_above(i), "tool", None) for i in ("find", "ask")] == ["ask", None]
    assert tree.agents["boss"] in tree.line_agents()
    assert tree.agents["helper"] not in tree.line_agents()


@pytest.mark.parametrize("order", list(permutations(range(7)))[::131])
def test_outer_agents_do_not_depend_on_the_order(order: Sequence[int]) -> None:
    """Which agents are outermost, and whether they have ended, follows from the set of spans alone."""
    spans = family()
    tree = Tree()
    for place, index in enumerate(order):
        tree.add(spans[index])
        seen = [spans[i] for i in sorted(order[: place + 1])]
        fresh = tree_of(seen)
        assert [a.agent for a in tree.outer_agents()] == [a.agent for a in fresh.outer_agents()]
        assert tree.is_ended == fresh.is_ended
        restored = Tree()
        restored.restore([s for s in seen if s.kind != "other"], dict(tree.parents), dict(tree.tops))
        assert [a.agent for a in restored.outer_agents()] == [a.agent for a in tree.outer_agents()]
        assert (restored.is_ended, restored.awaited) == (tree.is_ended, tree.awaited)
    assert [a.agent for a in tree.outer_agents()] == ["boss", "second"]
    assert tree.is_ended


def test_a_missing_local_parent_may_still_be_open() -> None:
    """An agent under a local span that was not seen has not ended; one with a parent elsewhere, or none, has."""
    steps = Steps()
    local = steps.agent("a", 0, 1, parent="gone", span_id="a")
    assert not tree_of([local]).is_ended
    assert tree_of([local]).missing_above("a") == ("gone", True)
    remote = steps.agent("b", 0, 1, parent="gone", span_id="b", parent_remote=True)
    assert tree_of([remote]).is_ended
    assert tree_of([remote]).missing_above("b") == ("gone", False)
    root = steps.agent("c", 0, 1, span_id="c")
    assert tree_of([root]).is_ended
    assert tree_of([root]).missing_above("c") == ("", False)


def test_a_remote_parent_counts_once_it_was_seen() -> None:
    """One trace may hold both sides of a call between processes."""
    steps = Steps()
    inner = steps.agent("inner", 2, 3, parent="call", span_id="inner", parent_remote=True)
    outer = steps.tool("ask", 1, 4, span_id="call")
    tree = tree_of([inner])
    assert list(tree.above("inner")) == []
    assert tree.add(outer)
    assert list(tree.above("inner")) == ["call"]
    assert tree.outer_agents() == []


def test_a_merged_tree_is_that_of_all_spans() -> None:
    """Taking over another tree gives what adding its spans would have given."""
    spans = family()
    one, two = tree_of(spans[::2]), tree_of(spans[1::2])
    one.absorb(two)
    assert [a.agent for a in one.outer_agents()] == ["boss", "second"]
    assert (one.awaited, one.is_ended, len(one.parents)) == (set(), True, 7)


def test_a_circle_of_parents_ends() -> None:
    """Spans that are their own ancestors are climbed for a while, and never end."""
    steps = Steps()
    tree = tree_of([steps.agent("a", 0, 1, parent="y", span_id="x"), steps.agent("b", 0, 1, parent="x", span_id="y")])
    assert len(list(tree.above("x"))) == CLIMB_MAX
    assert not tree.is_ended
    assert tree.outer_agents() == []


def test_the_same_tool_above_is_not_sought_beyond_an_agent() -> None:
    """A tool of the same name around an agent is another call."""
    steps = Steps()
    steps.tool("find", 0, 9, span_id="outer")
    steps.agent("a", 1, 8, parent="outer", span_id="agent")
    inner = steps.tool("find", 2, 3, parent="agent", span_id="inner")
    twin = steps.tool("find", 1, 2, parent="outer", span_id="twin")
    tree = tree_of(steps.made)
    names = dict.fromkeys(("outer", "inner", "twin"), "find")
    assert tree.same_tool_above(inner, "find", names) is None
    assert tree.same_tool_above(twin, "find", names) is tree.tools["outer"]

"""Check which task a run is taken for."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from reach_otel.engine.choose import SEEN_MAX, Chooser, Evidence
from reach_otel.task import Tasks
from tests.support.steps import Steps, call
from tests.support.tasks import goal, task

TASKS = Tasks(
    [
        task(goal("a", "find"), name="by-agent", match={"agent": "bot*"}),
        task(goal("a", "find"), name="by-agent-and-service", match={"agent": "bot", "service": "shop"}),
        task(goal("a", "find"), name="by-attribute", match={"attributes": {"tenant": "x*"}}),
        task(goal("a", "fly"), name="by-tool"),
        task(goal("a", "swim"), name="by-other-tool"),
    ]
)


def chosen(*steps: Any) -> str | None:
    chooser, evidence = Chooser(TASKS), Evidence()
    for step in steps:
        evidence.add(step, chooser)
    task = chooser.choose(evidence)
    return task.name if task is not None else None


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"agent": "bot"}, "by-agent"),
        ({"agent": "bot-7", "service": "shop"}, "by-agent"),
        ({"agent": "bot", "service": "shop"}, "by-agent-and-service"),
        ({"attributes": {"tenant": "x1", "more": 1}}, "by-attribute"),
        ({"attributes": {"tenant": 1}}, None),
        ({"agent": "bot", "task": "by-tool"}, "by-tool"),
        ({"agent": "bot", "task": "unknown"}, "by-agent"),
        ({"agent": "stranger"}, None),
    ],
)
def test_a_name_goes_before_a_match(fields: dict[str, Any], name: str | None) -> None:
    """A known ``reach.task`` decides; else the match that asks for most and fits."""
    assert chosen(Steps().add("model", 0, 1, **fields)) == name


def test_the_only_task_that_knows_the_earliest_tool() -> None:
    """Without a match a tool that one task alone knows decides, also one that was only asked for."""
    steps = Steps()
    common = steps.tool("find", 0, 1)
    first = steps.model(1, 2, calls=(call("swim"),))
    later = steps.tool("fly", 3, 4)
    assert chosen(common) is None
    assert chosen(common, later) == "by-tool"
    assert {chosen(*order) for order in permutations((common, first, later))} == {"by-other-tool"}


def test_the_earliest_step_that_names_a_task_counts() -> None:
    """The order of arrival does not matter."""
    steps = Steps()
    first, second = steps.model(0, 5, task="by-tool"), steps.model(1, 2, task="by-other-tool")
    assert chosen(first, second) == chosen(second, first) == "by-tool"


def test_only_news_is_news() -> None:
    """A step that repeats what was said before calls for no new choice."""
    chooser, evidence = Chooser(TASKS), Evidence()
    step = Steps().add("model", 0, 1, agent="bot", service="shop", workflow="w", attributes={"tenant": "x", "other": 1})
    assert evidence.add(step, chooser)
    assert not evidence.add(step, chooser)
    assert evidence.attributes == {("tenant", "x")}


def test_what_is_kept_has_an_end() -> None:
    """Of names without end only so many are kept."""
    chooser, evidence, steps = Chooser(TASKS), Evidence(), Steps()
    for n in range(SEEN_MAX + 9):
        evidence.add(steps.add("model", n, n + 1, agent=f"a{n}", attributes={"tenant": f"x{n}"}), chooser)
    assert (len(evidence.agents), len(evidence.attributes)) == (SEEN_MAX, SEEN_MAX)


def test_merged_evidence_is_that_of_all_steps() -> None:
    """Evidence of two parts says what all steps say together."""
    steps = Steps()
    steps.add("model", 0, 1, agent="bot", variant="v2", model="m")
    steps.tool("fly", 1, 2, service="shop")
    steps.add("agent", 0, 3, agent="bot", variant="v1", task="by-tool", conversation_id="c")
    chooser, parts = Chooser(TASKS), (Evidence(), Evidence(), Evidence())
    for step, part in zip(steps.made, parts, strict=True):
        part.add(step, chooser)
    whole = parts[1]
    whole.absorb(parts[2])
    whole.absorb(parts[0])
    assert whole.key == ("by-tool", "by-tool", ("bot",), ("shop",), (), frozenset())
    assert (whole.variant or ("", ""))[1] == "v2"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_where_a_variant_stood_goes_with_the_one_that_counts(order: tuple[int, int]) -> None:
    """The earliest counts, in whatever order they come, in one run or in two that become one."""
    steps = Steps()
    steps.add("model", 0, 1, variant="v1", variant_on_span=True)
    steps.add("model", 1, 2, variant="v2")
    chooser, together, parts = Chooser(TASKS), Evidence(), [Evidence(), Evidence()]
    for n in order:
        together.add(steps.made[n], chooser)
        parts[n].add(steps.made[n], chooser)
    parts[order[0]].absorb(parts[order[1]])
    for evidence in (together, parts[order[0]]):
        assert evidence.variant is not None
        assert evidence.variant[1:] == ("v1", True)

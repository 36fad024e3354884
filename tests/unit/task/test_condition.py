"""Conditions on steps: every key, absent content, faults, and what a condition tells about itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reach_otel.task.condition import CallTimeout, Condition, View, call_directly
from reach_otel.task.model import ConditionModel
from tests.unit.task import targets

HERE = targets.__name__


def condition(call: Any = call_directly, **given: Any) -> Condition:
    return Condition(ConditionModel.model_validate(given), call)


class Run:
    """A run view that counts how often it is shown to CEL."""

    def __init__(self) -> None:
        self.actions = 3
        self.shown = 0

    def as_cel(self) -> dict[str, Any]:
        self.shown += 1
        return {"task": "t", "agent": "a", "actions": self.actions, "reached": ["read"], "held": ["read"], "errors": 0}


STEP = View(
    tool="update_ticket",
    args={"status": "resolved", "n": 3},
    result={"ok": True, "record": {"id": "T-1", "tags": ["a", "b"]}, "none": None},
    text="Ticket T-1 was resolved",
    agent="ticket-agent",
    duration=1.5,
    attributes={"http.status": 200},
)


@pytest.mark.parametrize(
    "given",
    [
        {"tool": "update_ticket"},
        {"tool": "update_*"},
        {"status": "ok"},
        {"args": {"status": "resolved"}},
        {"args": {"status": {"in": ["resolved", "closed"]}, "n": {"gt": 2}}},
        {"result": {"record.tags[1]": "b"}},
        {"result": {"record.tags": ["a", "b"]}},
        {"result": {"none": None}},
        {"result": {".": {"contains": "record"}}},
        {"when": "result.ok && args.n == 3"},
        {"when": "tool.startsWith('update') && agent == 'ticket-agent' && duration > 1.0"},
        {"when": "text.contains('T-1') && attributes['http.status'] == 200"},
        {"when": "result.record.tags.exists(x, x == 'b')"},
        {"all": [{"tool": "update_ticket"}, {"args": {"n": 3}}]},
        {"any": [{"tool": "other"}, {"args": {"n": 3}}]},
        {"not": {"tool": "other"}},
        {"tool": "update_ticket", "not": {"args": {"n": 4}}},
        {"any": [{"status": "error"}, {"not": {"any": [{"tool": "a"}, {"tool": "b"}]}}]},
    ],
    ids=str,
)
def test_holds(given: dict[str, Any]) -> None:
    assert condition(**given).holds(STEP)
    assert STEP.faults == []


@pytest.mark.parametrize(
    "given",
    [
        {"tool": "update"},
        {"tool": "Update_*"},
        {"status": "error"},
        {"args": {"status": "closed"}},
        {"args": {"status": "resolved", "n": 4}},
        {"args": {"nothing": {"ne": 1}}},
        {"result": {"record.tags[2]": "b"}},
        {"when": "result.nothing == 1"},
        {"when": "result.record.tags[7] == 'b'"},
        {"when": "result.none.deeper == 1"},
        {"all": [{"tool": "update_ticket"}, {"args": {"n": 4}}]},
        {"any": [{"tool": "other"}, {"args": {"n": 4}}]},
        {"not": {"tool": "update_ticket"}},
        {},
    ],
    ids=str,
)
def test_does_not_hold_and_is_no_fault(given: dict[str, Any]) -> None:
    assert not condition(**given).holds(STEP)
    assert STEP.faults == []


def test_a_failed_call_only_fits_status_error() -> None:
    failed = View(tool="a", ok=False, args={"x": 1})
    assert not condition(tool="a").holds(failed)
    assert not condition(args={"x": 1}).holds(failed)
    assert not condition(when="args.x == 1").holds(failed)
    assert condition(tool="a", status="error").holds(failed)
    assert condition(status="error", args={"x": 1}).holds(failed)


@pytest.mark.parametrize(
    "given",
    [
        {"args": {"x": {"exists": False}}},
        {"args": {"x": {"ne": 1}}},
        {"result": {"x": {"not_in": [1]}}},
        {"when": "args.x == 1"},
        {"when": "!has(result.x)"},
        {"when": "text.contains('a')"},
        {"not": {"args": {"x": 1}}},
        {"not": {"when": "result.x == 1"}},
        {"any": [{"args": {"x": 1}}, {"tool": "other"}]},
        {"not": {"all": [{"tool": "a"}, {"args": {"x": 1}}]}},
    ],
    ids=str,
)
def test_a_condition_on_absent_content_cannot_hold_whichever_way_it_is_put(given: dict[str, Any]) -> None:
    view = View(tool="a")
    assert not condition(**given).holds(view)
    assert view.faults == []


def test_absent_content_does_not_matter_where_the_rest_decides() -> None:
    view = View(tool="a")
    assert condition(any=[{"args": {"x": 1}}, {"tool": "a"}]).holds(view)
    assert condition(**{"not": {"all": [{"args": {"x": 1}}, {"tool": "b"}]}}).holds(view)


def test_steps_with_no_tool_fit_conditions_that_name_none() -> None:
    view = View(text="all done", agent="a")
    assert condition(when="text.contains('done')").holds(view)
    assert not condition(tool="*").holds(view)


@pytest.mark.parametrize("when", ["args.n > 'x'", "args.n + 1.5 > 2.0", "args.n", "1 / (args.n - 3) == 1"])
def test_a_wrong_type_in_cel_is_a_fault_and_neither_it_nor_its_opposite_holds(when: str) -> None:
    for asked in ({"when": when}, {"not": {"when": when}}):
        view = View(tool="a", args={"n": 3}, result={})
        assert not condition(**asked).holds(view)
        assert view.faults == ["cel"]


@pytest.mark.parametrize("args", [{"n": "\ud800"}, {"n": {1, 2}}, {"n": object()}])
def test_values_that_cel_cannot_take_are_faults(args: Any) -> None:
    view = View(tool="a", args=args)
    assert not condition(when="args.n == 1").holds(view)
    assert not condition(when="args.n == 2").holds(view)
    assert view.faults == ["cel", "cel"]


def test_one_view_shows_the_run_to_cel_once_and_only_if_asked() -> None:
    run = Run()
    view = View(tool="a", args={"x": 1}, run=run)
    assert condition(when="args.x == 1").holds(view)
    assert run.shown == 0
    assert condition(when="'read' in run.reached").holds(view)
    assert condition(when="run.actions == 3 && args.x == 1").holds(view)
    assert run.shown == 1


def test_python_conditions_get_run_and_view() -> None:
    run = Run()
    assert condition(python=f"{HERE}:is_paid").holds(View(tool="a", args={"paid": True}))
    assert not condition(python=f"{HERE}:is_paid").holds(View(tool="a", args={"paid": False}))
    assert condition(python=f"{HERE}:run_has_three_actions").holds(View(tool="a", ok=False, run=run))
    assert not condition(tool="b", python=f"{HERE}:is_paid").holds(View(tool="a", args={"paid": True}))


def test_python_conditions_go_through_the_given_call() -> None:
    seen = []

    def call(function: Callable[..., Any], run: Any, view: View) -> Any:
        seen.append((function, run, view))
        return function(run, view)

    view = View(args={"paid": True})
    assert condition(call, python=f"{HERE}:is_paid").holds(view)
    assert seen == [(targets.is_paid, None, view)]


@pytest.mark.parametrize("name", ["raises", "exits", "says_yes_in_words"])
def test_a_python_condition_that_goes_wrong_is_not_held_and_counted(name: str) -> None:
    for asked in ({"python": f"{HERE}:{name}"}, {"not": {"python": f"{HERE}:{name}"}}):
        view = View(tool="a")
        assert not condition(**asked).holds(view)
        assert view.faults == ["python"]


def test_a_python_condition_that_takes_too_long_is_not_held_and_counted() -> None:
    def call(function: Callable[..., Any], run: Any, view: View) -> Any:
        raise CallTimeout

    view = View(tool="a")
    assert not condition(call, python=f"{HERE}:is_paid").holds(view)
    assert view.faults == ["python_timeout"]


class Hostile(dict[str, Any]):
    """An application's own mapping that fails when it is read."""

    def get(self, key: str, default: Any = None) -> Any:
        raise LookupError(key)


def test_a_value_that_fails_when_it_is_read_is_a_fault() -> None:
    view = View(tool="a", args=Hostile())
    assert not condition(args={"x": 1}).holds(view)
    assert view.faults == ["condition"]


def test_tools_are_those_named_outside_not() -> None:
    given = {
        "any": [{"tool": "a"}, {"all": [{"tool": "b*"}, {"not": {"tool": "c"}}]}, {"tool": "a"}],
        "when": "tool == 'd' || 'e' == tool || tool in ['f', 'g'] || args.tool == 'h'",
    }
    assert condition(**given).tools == ("d", "e", "f", "g", "a", "b*")


def test_constants_are_the_literals_it_compares_with() -> None:
    given = {
        "args": {"a": "x", "b": {"in": [1, "y", True, None]}, "c": {"matches": "zz"}, "d": {"exists": True}},
        "result": {"e": {"eq": {"k": ["deep", 2.5]}}},
        "not": {"args": {"f": {"contains": "w"}}},
        "when": "result.g == \"q\\\"t\" && args.h >= 7 && result.i == r'a\\d' // 'comment'",
    }
    assert set(condition(**given).constants) == {"x", 1, "y", "deep", 2.5, "w", 'q"t', 7, "a\\d"}


def test_mentions_are_the_parts_of_a_step_that_it_looks_at() -> None:
    assert condition(tool="a", args={"x": 1}).mentions == {"tool", "args"}
    assert condition(when="attributes.x == 1 && [1].all(run, run == 1)").mentions == {"attributes", "run"}
    assert "attributes" in condition(python=f"{HERE}:is_paid").mentions


def test_equal_models_make_equal_conditions() -> None:
    assert condition(tool="a", args={"x": 1}) == condition(tool="a", args={"x": 1})
    assert hash(condition(tool="a")) == hash(condition(tool="a"))
    assert condition(tool="a") != condition(tool="b")
    assert repr(condition(tool="a")) == "Condition({'tool': 'a'})"


NAMES = st.sampled_from(["a", "b", "ab"])
TOOL = NAMES | st.sampled_from(["a*", "?", "*"])
LEAF = st.fixed_dictionaries({"tool": TOOL}) | st.fixed_dictionaries({"args": st.fixed_dictionaries({"x": NAMES})})
TREE = st.recursive(
    LEAF,
    lambda inner: (
        st.fixed_dictionaries({"all": st.lists(inner, min_size=1, max_size=3)})
        | st.fixed_dictionaries({"any": st.lists(inner, min_size=1, max_size=3)})
        | st.fixed_dictionaries({"not": inner})
    ),
    max_leaves=6,
)


@given(TREE, st.none() | NAMES, NAMES)
def test_what_holds_on_a_step_is_admitted_for_its_tool(tree: dict[str, Any], tool: str | None, value: str) -> None:
    """The index by tool never hides a condition that would hold."""
    made = condition(**tree)
    if made.holds(View(tool=tool, args={"x": value})):
        assert made.admits(tool)


def test_expressions_of_one_step_share_what_they_look_at() -> None:
    """Each expression gets the members that it asks for, though an earlier one of the same step asked for others."""
    view = View(tool="t", result={"a": 1, "b": {"c": 2}, "d": [3]})
    wholes = ["result.a == 1", "result.b.c == 2", 'result["d"][0] == 3', "size(result) == 3", "!has(result.z)"]
    assert [condition(when=whole).holds(view) for whole in wholes] == [True] * len(wholes)

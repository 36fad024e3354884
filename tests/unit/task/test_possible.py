"""Conditions that can never hold, that always do, and those which must be let pass."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reach_otel.task.condition import Condition, View
from reach_otel.task.model import ConditionModel
from reach_otel.task.possible import is_always, why_never


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"args": {"a": {"in": []}}}, "args a: nothing passes in []"),
        ({"all": [{"args": {"a": 1}}, {"args": {"a": 2}}]}, "args a: nothing passes eq 1, eq 2"),
        ({"args": {"a": 1}, "all": [{"args": {"a": {"ne": 1}}}]}, "nothing passes"),
        ({"all": [{"args": {"a": {"gt": 5}}}, {"args": {"a": {"lt": 3}}}]}, "nothing passes gt 5, lt 3"),
        ({"all": [{"args": {"a": {"gt": 5}}}, {"args": {"a": {"le": 5}}}]}, "nothing passes"),
        ({"all": [{"args": {"a": {"gt": 5}}}, {"args": {"a": {"matches": "x"}}}]}, "nothing passes"),
        ({"all": [{"args": {"a": {"gt": 5}}}, {"args": {"a": {"lt": "9"}}}]}, "nothing passes"),
        ({"all": [{"args": {"a": {"in": ["x", "y"]}}}, {"args": {"a": {"matches": "z"}}}]}, "nothing passes"),
        ({"all": [{"args": {"a": {"exists": False}}}, {"args": {"a": {"gt": 1}}}]}, "nothing passes"),
        ({"all": [{"args": {"a": 1}}, {"args": {"a.b": 2}}]}, "args a cannot be so while a.b is there"),
        ({"all": [{"result": {"a": {"exists": False}}}, {"result": {"a.b": 2}}]}, "cannot be so while a.b is there"),
        ({"all": [{"args": {'["a"]': 1}}, {"args": {"a": 2}}]}, "nothing passes"),
        ({"tool": "a", "all": [{"tool": "b"}]}, "no tool is both 'a' and 'b'"),
        ({"all": [{"tool": "get_*"}, {"tool": "set_*"}]}, "no tool is both"),
        ({"all": [{"tool": "a"}, {"status": "error"}]}, "not both ok and error"),
        ({"tool": "a", "when": "false"}, "is always false"),
        ({"all": [{"any": [{"args": {"a": {"in": []}}}, {"when": "1 > 2"}]}]}, "no part of any: can hold"),
        ({"not": {"any": [{"status": "ok"}, {"status": "error"}]}}, "over a condition that always holds"),
        ({"not": {"any": [{"tool": "a"}, {"not": {"tool": "a"}}]}}, "over a condition that always holds"),
        ({"not": {"not": {"args": {"a": {"in": []}}}}}, "over a condition that always holds"),
    ],
    ids=str,
)
def test_never(given: dict[str, Any], reason: str) -> None:
    assert reason in (why_never(ConditionModel.model_validate(given)) or "")


@pytest.mark.parametrize(
    "given",
    [
        {"tool": "a"},
        {"all": [{"tool": "get_*"}, {"tool": "*_ticket"}]},
        {"all": [{"args": {"a": {"ge": 5}}}, {"args": {"a": {"le": 5}}}]},
        {"all": [{"args": {"a": {"in": [1, 2]}}}, {"args": {"a": {"ne": 1}}}]},
        {"all": [{"args": {"a": {"exists": False}}}, {"args": {"a": {"ne": 1}}}]},
        {"all": [{"args": {"a": {"exists": True}}}, {"args": {"a.b": 2}}]},
        {"all": [{"args": {"a": 1}}, {"result": {"a": 2}}]},
        {"all": [{"args": {"a": {"contains": "x"}}}, {"args": {"a": {"matches": "y"}}}]},
        {"any": [{"args": {"a": {"in": []}}}, {"tool": "a"}]},
        {"any": [{"tool": "a"}, {"tool": "b"}]},
        {"not": {"tool": "a"}},
        {"not": {"args": {"a": {"in": []}}}},
        {"tool": "a", "when": "true"},
        {"any": [{"status": "error"}, {"tool": "a"}]},
    ],
    ids=str,
)
def test_possible_conditions_pass(given: dict[str, Any]) -> None:
    assert why_never(ConditionModel.model_validate(given)) is None


def test_always() -> None:
    assert is_always(ConditionModel.model_validate({"not": {"args": {"a": {"in": []}}}}))
    assert is_always(ConditionModel.model_validate({"all": [{"any": [{"status": "ok"}, {"status": "error"}]}]}))
    assert not is_always(ConditionModel.model_validate({"tool": "*"}))
    assert not is_always(ConditionModel.model_validate({"status": "ok"}))


VALUES = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "a", "b"])
MATCHERS = (
    st.fixed_dictionaries({"eq": VALUES})
    | st.fixed_dictionaries({"ne": VALUES})
    | st.fixed_dictionaries({"in": st.lists(VALUES, max_size=2)})
    | st.fixed_dictionaries({"not_in": st.lists(VALUES, max_size=2)})
    | st.fixed_dictionaries({"exists": st.booleans()})
    | st.sampled_from(["gt", "ge", "lt", "le"]).flatmap(
        lambda name: st.fixed_dictionaries({name: st.integers(0, 3) | st.sampled_from(["a", "b"])})
    )
    | st.fixed_dictionaries({"matches": st.sampled_from(["a", "^$"])})
    | st.fixed_dictionaries({"contains": st.sampled_from(["a", 1])})
)
LEAF = st.fixed_dictionaries(
    {},
    optional={
        "tool": st.sampled_from(["x", "y", "x*"]),
        "status": st.sampled_from(["ok", "error"]),
        "args": st.dictionaries(st.sampled_from(["p", "p.q"]), MATCHERS, min_size=1),
    },
).filter(bool)
TREE = st.recursive(
    LEAF,
    lambda inner: (
        st.fixed_dictionaries({"all": st.lists(inner, min_size=1, max_size=3)})
        | st.fixed_dictionaries({"any": st.lists(inner, min_size=1, max_size=3)})
        | st.fixed_dictionaries({"not": inner})
    ),
    max_leaves=5,
)
ARGS = st.fixed_dictionaries({}, optional={"p": VALUES | st.fixed_dictionaries({}, optional={"q": VALUES})})
VIEWS = st.builds(
    lambda tool, ok, args: View(tool=tool, ok=ok, args=args), st.sampled_from(["x", "y", None]), st.booleans(), ARGS
)


@given(TREE, VIEWS)
def test_what_holds_on_some_step_is_not_called_impossible(tree: dict[str, Any], view: View) -> None:
    model = ConditionModel.model_validate(tree)
    assume(Condition(model).holds(view))
    assert why_never(model) is None


@given(TREE, VIEWS)
def test_what_always_holds_holds(tree: dict[str, Any], view: View) -> None:
    model = ConditionModel.model_validate(tree)
    if is_always(model):
        assert Condition(model).holds(view)

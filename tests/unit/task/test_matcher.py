"""Each matcher, on values of every kind; equality as JSON has it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reach_otel.task.matcher import compile_matcher, same
from reach_otel.task.path import MISSING


@pytest.mark.parametrize(
    ("operator", "operand", "passing", "failing"),
    [
        ("eq", 3, [3, 3.0], [True, "3", 4, None, MISSING, [3]]),
        ("eq", "a", ["a"], ["A", 1, None, MISSING]),
        ("eq", True, [True], [1, 1.0, "true", MISSING]),
        ("eq", None, [None], [0, "", False, MISSING]),
        ("eq", [1, {"a": 2}], [[1, {"a": 2.0}]], [[1], [1, {"a": "2"}], {"a": 2}, MISSING]),
        ("eq", {"a": 1}, [{"a": 1}], [{"a": 1, "b": 2}, {}, {"a": True}]),
        ("ne", 3, [4, "3", None, True], [3, 3.0, MISSING]),
        ("in", ["a", "b"], ["a"], ["c", None, MISSING, ["a"]]),
        ("in", [1, "x", None], [1.0, "x", None], [True, "1", MISSING]),
        ("not_in", ["a"], ["b", None, 1], ["a", MISSING]),
        ("gt", 3, [4, 3.5], [3, "4", True, None, MISSING]),
        ("ge", 3, [3, 3.0], [2.9, MISSING]),
        ("lt", 3, [2, -1], [3, False, MISSING]),
        ("le", 3, [3], [3.1, None]),
        ("ge", "2024-05-01", ["2024-05-01", "2025-01-01"], ["2024-04-30", 2025, MISSING]),
        ("matches", r"^SKU-\d+$", ["SKU-12"], ["sku-12", 12, None, MISSING, ["SKU-12"]]),
        ("exists", True, [0, "", False, [], {}], [None, MISSING]),
        ("exists", False, [None, MISSING], [0, ""]),
        ("contains", "ok", ["it is ok", ["ok"], {"ok": 1}], ["no", ["okay"], {"k": "ok"}, 5, None, MISSING]),
        ("contains", 5, [[1, 5.0]], ["5", [True], {"5": 1}]),
    ],
)
def test_matcher(operator: str, operand: Any, passing: list[Any], failing: list[Any]) -> None:
    test = compile_matcher(operator, operand)
    assert [value for value in passing if not test(value)] == []
    assert [value for value in failing if test(value)] == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 2.5]) | st.sampled_from(["", "a", "1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
    max_leaves=5,
)


@given(JSON, JSON)
def test_equality_is_reflexive_and_symmetric_and_never_mixes_types(one: Any, other: Any) -> None:
    assert same(one, one)
    assert same(one, other) is same(other, one)
    if isinstance(one, bool) is not isinstance(other, bool):
        assert not same(one, other)


@given(JSON, JSON)
def test_ne_is_the_opposite_of_eq_on_values_that_are_there(one: Any, other: Any) -> None:
    assert compile_matcher("eq", one)(other) is not compile_matcher("ne", one)(other)

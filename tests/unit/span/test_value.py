"""Text becomes the value it holds, and stays text where it holds none."""

from __future__ import annotations

from typing import Any

import pytest

from reach_otel.span.value import DEPTH_MAX, is_half_json, is_object_repr, is_opaque, parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('  [1, "x"]\n', [1, "x"]),
        ('"{\\"a\\": [1]}"', {"a": [1]}),
        ('"plain"', "plain"),
        ("42", 42),
        ("-0.5", -0.5),
        ("true", True),
        ("null", None),
        ("{'a': None, 'b': (1, 2), 'c': True}", {"a": None, "b": [1, 2], "c": True}),
        ("(1, {'x': 2})", [1, {"x": 2}]),
        ("{1: 'x'}", {"1": "x"}),
        ('{"a": NaN}', None),
    ],
)
def test_text_that_holds_a_value_is_parsed(text: str, value: Any) -> None:
    found = parse(text)
    if value is None and "NaN" in text:
        assert found["a"] != found["a"]
    else:
        assert found == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain words",
        "T-1001",
        "007",
        "12345678901234567890",
        '{"a": 1',
        "[see below]",
        "{not: json}",
        "__import__('os').system('true')",
        "{'a': __import__('os')}",
        "None",
        "\ud800{",
    ],
)
def test_text_that_holds_none_stays_as_it_is(text: str) -> None:
    assert parse(text) == text


def test_nothing_is_nested_deeper_than_the_limit() -> None:
    fits = "[" * DEPTH_MAX + "]" * DEPTH_MAX
    deep = "[" * (DEPTH_MAX + 1) + "]" * (DEPTH_MAX + 1)
    assert isinstance(parse(fits), list)
    assert parse(deep) == deep
    assert parse("[" * 100_000) == "[" * 100_000
    assert parse("('" + "(" * 5_000 + ")" * 5_000) is not None


def test_a_long_flat_list_is_not_deep() -> None:
    assert len(parse("[" + ",".join(["{}"] * 500) + "]")) == 500


@pytest.mark.parametrize("text", ['{"sku": "SKU-7", "sto', '[{"a": 1}, {"b"', '  {"a": [1, 2'])
def test_json_without_its_end_was_cut(text: str) -> None:
    assert is_half_json(text)


@pytest.mark.parametrize("text", ["plain", "[INFO] started", '{"a": }', "{see}", '{"a": "' + "x" * 1017])
def test_other_unparsable_text_was_not_cut_by_the_tool(text: str) -> None:
    """The last one has the length at which exporters cut attributes."""
    assert not is_half_json(text)


def test_reprs_of_objects_are_known() -> None:
    assert is_opaque("<workflows.context.Context object at 0x7fae019d7d70>")
    assert not is_opaque("<b>bold</b>")
    assert is_object_repr("AgentOutput(response=ChatMessage(role='x'))")
    assert is_object_repr("[ResponseFunctionToolCall(arguments='{}')]")
    assert is_object_repr("Prediction(\n    answer='x'\n)")
    assert not is_object_repr("Order placed (see below)")
    assert not is_object_repr("Done.")

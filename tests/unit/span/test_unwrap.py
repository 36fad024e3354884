"""Arguments and results come out of every wrapping that frameworks are known to use, and of no other."""

from __future__ import annotations

from typing import Any

import pytest

from reach_otel.span.unwrap import arguments, result
from tests.unit.span.spans import text

ARGS = {"sku": "SKU7"}
STOCK = {"sku": "SKU-7", "stock": 3}
LANGCHAIN = {"content": text(STOCK), "type": "tool", "name": "check", "tool_call_id": "call_1", "status": "success"}


@pytest.mark.parametrize(
    "raw",
    [
        ARGS,
        text(ARGS),
        text(text(ARGS)),
        "{'sku': 'SKU7'}",
        text({"args": [], "sanitize_inputs_outputs": True, "kwargs": ARGS}),
        text({"kwargs": ARGS}),
        text({"kwargs": {**ARGS, "ctx": "<workflows.context.context.Context object at 0x7fae01943d70>"}}),
        text({"input_str": "{'sku': 'SKU7'}", "tags": [], "inputs": ARGS, "kwargs": {"tool_call_id": "call_1"}}),
        text({"input_str": "{'sku': 'SKU7'}", "tags": [], "inputs": None, "kwargs": {"color": "green"}}),
        text({"tool_name": "check_inventory", "arguments": ARGS}),
        text({"name": "check_inventory", "args": ARGS, "id": "call_1", "type": "tool_call"}),
    ],
)
def test_arguments_in_every_known_shape(raw: Any) -> None:
    assert arguments(raw) == ARGS


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("SKU7", "SKU7"),
        ("", ""),
        ("{}", {}),
        (text({"args": ["done"], "kwargs": {}}), "done"),
        (text({"args": [1, 2], "kwargs": {}}), [1, 2]),
        ('{"sku": "SKU7"', '{"sku": "SKU7"'),
        (text({"INVALID_JSON": "{"}), {"INVALID_JSON": "{"}),
        # a tool's own parameters may have the names of a wrapping
        (text({"args": "-l", "path": "/x"}), {"args": "-l", "path": "/x"}),
        (text({"arguments": {"a": 1}, "mode": "x"}), {"arguments": {"a": 1}, "mode": "x"}),
    ],
)
def test_other_arguments_are_what_they_are(raw: Any, value: Any) -> None:
    assert arguments(raw) == value


@pytest.mark.parametrize(
    "raw",
    [
        STOCK,
        text(STOCK),
        text(text(STOCK)),
        "{'sku': 'SKU-7', 'stock': 3}",
        text({"type": "tool", "data": LANGCHAIN}),
        text({"lc": 1, "type": "constructor", "id": ["langchain", "ToolMessage"], "kwargs": LANGCHAIN}),
        text({"output": {"lc": 1, "id": [], "kwargs": LANGCHAIN}, "kwargs": {"tags": []}}),
        text({"output": LANGCHAIN, "kwargs": {}}),
        text({"id": "call_1", "name": "check", "response": STOCK}),
        text({"blocks": [{"text": str(STOCK)}], "tool_name": "check", "raw_input": {}, "raw_output": STOCK}),
        text({"blocks": [{"block_type": "text", "text": text(STOCK)}], "tool_name": "check", "is_error": False}),
        text([{"type": "text", "text": text(STOCK)}]),
        text([{"text": text(STOCK)}]),
        text([{"json": STOCK}]),
        text({"type": "text", "text": text(STOCK)}),
        text({"content": [{"type": "text", "text": text(STOCK)}], "isError": False}),
        text({"content": [{"type": "text", "text": "3 left"}], "structuredContent": STOCK}),
        text({"content": [{"type": "text", "text": "3 left"}], "structuredContent": {"result": STOCK}}),
        text([{"toolResult": {"toolUseId": "call_1", "status": "success", "content": [{"text": text(STOCK)}]}}]),
        text({"tool_call_result": {"result": text(STOCK), "origin": {"tool_name": "check"}, "error": False}}),
        text({"result": text(STOCK), "is_error": False}),
        text({"content": str(STOCK), "name": "check", "call_id": "call_1", "is_error": False}),
    ],
)
def test_results_in_every_known_wrapping(raw: Any) -> None:
    assert result(raw).value == STOCK


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        None,
        [1, 2],
        {"result": 5},
        {"content": "the text of a file", "path": "/x"},
        {"name": "ann", "content": "hello"},
        {"text": "hello", "language": "en"},
        [{"type": "refund", "text": "x"}],
        [{"text": "a", "score": 1}],
        {"data": {"content": "x"}, "type": "page"},
        {"output": 3, "unit": "kg"},
        {"name": "ann", "response": "yes"},
        {"response": {"a": 1}, "name": "ann", "age": 3},
        {"goto": "step 2"},
        {"result": 5, "error": None},
    ],
)
def test_a_result_that_only_looks_like_a_wrapping_is_left_alone(value: Any) -> None:
    assert result(value).value == value


def test_the_wrapping_tells_of_the_call() -> None:
    failed = result(text({"type": "tool", "data": {**LANGCHAIN, "content": "unknown sku", "status": "error"}}))
    assert (failed.value, failed.failed, failed.call_id) == ("unknown sku", True, "call_1")
    assert result(text({"content": [{"type": "text", "text": "no"}], "isError": True})).failed
    assert result(text({"result": "no such sku", "is_error": True})).failed
    assert result(text({"blocks": [{"text": "no"}], "is_error": True})).failed
    assert result(text({"toolResult": {"toolUseId": "c", "status": "error", "content": []}})).call_id == "c"


def test_a_sole_result_is_unwrapped_only_where_the_framework_wraps() -> None:
    assert result('{"result": "{\\"a\\": 1}"}').value == {"result": '{"a": 1}'}
    assert result('{"result": "{\\"a\\": 1}"}', sole_result=True).value == {"a": 1}
    assert result('{"result": null}', sole_result=True).value is None


def test_a_command_to_the_parent_graph_names_the_next_agent() -> None:
    message = {"type": "tool", "data": {"content": "over to worker", "tool_call_id": "call_2", "type": "tool"}}
    command = {"graph": "__parent__", "update": {"messages": [message]}, "resume": None, "goto": "worker"}
    found = result(text(command))
    assert (found.value, found.goto, found.call_id) == ({"goto": "worker"}, "worker", "call_2")
    inside = result(text({**command, "graph": None, "goto": []}))
    assert (inside.value, inside.goto) == ("over to worker", None)


def test_a_result_cut_in_half_is_told() -> None:
    found = result('{"sku": "SKU-7", "sto')
    assert found.cut
    assert found.value == '{"sku": "SKU-7", "sto'
    assert not result("plain words").cut


def test_wrappings_without_end_are_given_up() -> None:
    value: Any = STOCK
    for _ in range(40):
        value = {"result": value, "is_error": False}
    assert result(value).value is not None

"""Failures are told by text only where the text leaves no doubt."""

from __future__ import annotations

import re
from typing import Any

import pytest

from reach_otel.span.errors_text import (
    control_flow,
    failed_by_structure,
    failed_by_text,
    from_exception,
    from_status,
    reason_of,
)


@pytest.mark.parametrize(
    "text",
    [
        "Error: unknown sku: SKU7",
        "Tool error: unknown sku: SKU7",
        "Error executing tool check_inventory",
        "Error calling tool 'check_inventory': unknown sku: SKU7",
        "Error invoking tool 'x' with kwargs {}",
        "Error:\nError executing tool 'check_inventory'",
        "error (404): not found",
        "An error occurred while running the tool. Please try again.",
        "ValueError: unknown sku: SKU7",
        "fastmcp.exceptions.ToolError: no",
        "ValueError('unknown sku')",
        "Traceback (most recent call last):\n  File ...",
        "Tool not found",
        "Tool 'check_stock' not found.",
        "Tool with name check_stock does not exist",
        "Function check_stock not found",
        "Unknown tool: check_stock",
        "Unknown tool 'check_stock'",
        "check_stock is not a valid tool, try one of [...]",
        "Tool call failed",
        "Failed to execute tool check_stock",
        "Permission denied for user 7",
    ],
)
def test_texts_that_report_a_failure(text: str) -> None:
    assert failed_by_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        "unknown sku: SKU7",
        "No error found",
        "The last build had an error: see log",
        "0 errors, 2 warnings",
        "Errors are shown in red",
        "Error handling is explained in chapter 3",
        "Errata: page 7",
        "Order 7 failed earlier but is now paid",
        "Ticket T-1001 resolved: replacement shipped.",
        "The tool shed is not far",
        "Function of the heart",
        "Exception handling in Python",
        "Invalid tooltips were removed",
    ],
)
def test_texts_that_do_not(text: str) -> None:
    assert not failed_by_text(text)


def test_a_task_may_bring_its_own_patterns() -> None:
    own = (re.compile("no stock"),)
    assert failed_by_text("there is no stock", own)
    assert not failed_by_text("Error: x", own)


@pytest.mark.parametrize(
    "result",
    [
        {"isError": True},
        {"is_error": True, "content": "x"},
        {"status": "error", "error_message": "unknown sku"},
        {"status": "FAILED"},
        {"error": "unknown sku"},
        {"error": {"code": 404, "message": "not found"}},
        {"error": True},
        {"success": False, "message": "not found"},
        {"ok": False, "reason": "locked"},
    ],
)
def test_structures_that_report_a_failure(result: Any) -> None:
    assert failed_by_structure(result)


@pytest.mark.parametrize(
    "result",
    [
        None,
        [],
        "error",
        {},
        {"error": None},
        {"error": ""},
        {"errors": []},
        {"status": "ok"},
        {"status": "open", "error_rate": 0.2},
        {"status": "success", "error": "none"},
        {"success": True, "error": "3 warnings"},
        {"ok": False},
        {"isError": False, "data": 1},
    ],
)
def test_structures_that_do_not(result: Any) -> None:
    assert not failed_by_structure(result)


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("unknown sku: SKU7", "unknown sku: SKU7"),
        ("ValueError('unknown sku: SKU7')", "unknown sku: SKU7"),
        ("ValueError('unknown sku: SKU7')Traceback (most recent call last):\n\n  File", "unknown sku: SKU7"),
        ("Error running tool (non-fatal): {'tool_name': 'x', 'error': 'unknown sku: SKU7'}", "unknown sku: SKU7"),
        ("{'message': 'Error running tool', 'data': {'tool_name': 'x', 'error': 'unknown sku'}}", "unknown sku"),
        ("{'message': 'Max turns exceeded'}", "Max turns exceeded"),
        ("1 validation error for X\nsku\n  Field required", "1 validation error for X"),
        ("", None),
    ],
)
def test_status_messages_are_unwrapped(message: str, line: str | None) -> None:
    assert from_status(message) == line


def test_the_class_of_an_exception_is_told_where_it_matters() -> None:
    assert from_exception("builtins.ValueError", "unknown sku: SKU7\nsecond line") == "unknown sku: SKU7"
    assert from_exception("asyncio.TimeoutError", "") == "TimeoutError"
    assert from_exception("httpx.ReadTimeout", "no answer") == "ReadTimeout: no answer"
    assert from_exception("PermissionError", "PermissionError: no") == "PermissionError: no"


def test_reasons_inside_results() -> None:
    assert reason_of({"error": {"code": 404, "message": "not found"}}) == "not found"
    assert reason_of({"status": "error", "error_message": "unknown sku"}) == "unknown sku"
    assert reason_of("Error: x\ny") == "Error: x"
    assert reason_of({"error": True}) is None
    assert reason_of([1]) is None


def test_control_flow_is_known_by_its_exceptions() -> None:
    assert control_flow(["langgraph.errors.ParentCommand"], "") == "handoff"
    assert control_flow(["", "GraphInterrupt"], "") == "pause"
    assert control_flow([""], "(Interrupt(value={'ask': 'approve?'}, id='x'),)") == "pause"
    assert control_flow([""], "Command(graph='triage:1', update={})") == "handoff"
    assert control_flow(["ValueError"], "unknown sku") is None

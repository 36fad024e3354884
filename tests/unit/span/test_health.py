"""A failed call is known by any of its signs, and a steering exception is none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.span.spans import ERROR, raised, step, text

TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "check"}


@pytest.mark.parametrize(
    ("attributes", "fields", "error"),
    [
        ({}, {"status": ERROR}, None),
        ({}, {"status": ERROR, "status_message": "unknown sku"}, "unknown sku"),
        ({"error.type": "ValueError"}, {}, "ValueError"),
        ({"error.type": "ValueError"}, {"status": ERROR, "status_message": "unknown sku"}, "unknown sku"),
        ({"error.type": "TOOL_ERROR", "gen_ai.tool.call.result": '{"error": "unknown sku"}'}, {}, "unknown sku"),
        (
            {"error.type": "TOOL_ERROR", "gen_ai.tool.call.result": '{"error": "unknown sku"}'},
            {"status": ERROR, "status_message": "TOOL_ERROR"},
            "unknown sku",
        ),
        ({}, {"events": (raised("ValueError", "unknown sku"),)}, "unknown sku"),
        ({}, {"events": (raised("ValueError", "unknown sku"),) * 2, "status": ERROR}, "unknown sku"),
        ({}, {"events": (raised("TimeoutError", ""),)}, "TimeoutError"),
        ({"gen_ai.tool.call.result": "Error: unknown sku"}, {}, "Error: unknown sku"),
        ({"gen_ai.tool.call.result": '{"status": "error", "error_message": "unknown sku"}'}, {}, "unknown sku"),
        ({"gen_ai.tool.call.result": '{"type":"text","text":"Error executing tool check"}'}, {}, None),
        ({"haystack.tool.error": True, "gen_ai.tool.call.result": "unknown sku"}, {}, "unknown sku"),
        ({"gen_ai.tool.status": "error", "gen_ai.tool.call.result": "unknown sku"}, {}, "unknown sku"),
        ({"gen_ai.task.status": "failure"}, {}, None),
        (
            {"gen_ai.tool.call.result": "An error occurred while running the tool. Please try again."},
            {"status": ERROR, "status_message": "Error running tool (non-fatal): {'error': 'unknown sku'}"},
            "unknown sku",
        ),
    ],
)
def test_signs_of_failure(attributes: dict[str, Any], fields: dict[str, Any], error: str | None) -> None:
    found = step(TOOL | attributes, **fields)
    assert not found.ok
    if error is not None:
        assert found.error == error


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"gen_ai.tool.call.result": "3"},
        {"gen_ai.tool.call.result": "unknown sku"},
        {"gen_ai.tool.call.result": '{"stock": 0, "error": null}'},
        {"gen_ai.tool.status": "success"},
        {"haystack.tool.error": False},
        {"gen_ai.tool.status": ["error"]},
    ],
)
def test_signs_of_none(attributes: dict[str, Any]) -> None:
    found = step(TOOL | attributes)
    assert found.ok
    assert found.error is None


def test_a_paused_call_did_not_happen() -> None:
    message = "(Interrupt(value={'ask': 'approve?'}, id='1'),)"
    signs: list[dict[str, Any]] = [
        {"status": ERROR, "status_message": message},
        {"status": 1, "events": (raised("langgraph.errors.GraphInterrupt", message),)},
    ]
    for fields in signs:
        found = step(TOOL | {"gen_ai.tool.call.id": "c1"}, **fields)
        assert (found.kind, found.tool, found.call_id, found.ok, found.error) == ("other", "check", "c1", True, None)


def test_an_agent_that_hands_over_by_exception_is_well() -> None:
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "triage"}
    found = step(agent | {"error.type": "langgraph.errors.ParentCommand"}, status=ERROR, status_message="Command(…)")
    assert (found.kind, found.ok) == ("agent", True)
    found = step(agent, status=ERROR, status_message="Command(graph='triage:1', goto='worker')")
    assert found.ok


def test_an_exception_that_an_agent_got_over_is_not_its_failure() -> None:
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bot"}
    assert step(agent, events=(raised("ValueError", "unknown sku"),)).ok
    failed = step(agent, events=(raised("ValueError", "unknown sku"),), status=ERROR)
    assert (failed.ok, failed.error) == (False, "unknown sku")


def test_a_result_in_two_halves_is_cut() -> None:
    assert step(TOOL | {"gen_ai.tool.call.result": '{"sku": "SKU-7", "sto'}).cut
    assert not step(TOOL | {"gen_ai.tool.call.result": text({"sku": "SKU-7"})}).cut

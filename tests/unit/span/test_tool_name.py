"""A tool has one name, whoever spells it, and its name tells whether it hands over or ends the run."""

from __future__ import annotations

import pytest

from reach_otel.span.tool_name import name_from_span, tool_of, with_arguments


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("check_inventory", "check_inventory"),
        (" check_inventory ", "check_inventory"),
        ("mcp__support__read_ticket", "read_ticket"),
        ("mcp__support__read__all", "read__all"),
        ("functions.read_ticket", "read_ticket"),
        ("Ask question to coworker", "ask_question_to_coworker"),
        ("transfer_funds", "transfer_funds"),
        ("handoffs_report", "handoffs_report"),
        ("finish_order", "finish_order"),
    ],
)
def test_plain_tools(written: str, name: str) -> None:
    tool = tool_of(written)
    assert (tool.name, tool.kind, tool.to_agent) == (name, "tool", None)


@pytest.mark.parametrize(
    ("written", "name", "to_agent"),
    [
        ("transfer_to_worker", "transfer_to_worker", "worker"),
        ("transfer_to_agent", "transfer_to_agent", None),
        ("handoff", "handoff", None),
        ("hand_off_to_billing", "hand_off_to_billing", "billing"),
        ("handoff_to_agent", "handoff_to_agent", None),
        ("handoff_to_Worker", "handoff_to_Worker", "Worker"),
        ("handoff to worker", "transfer_to_worker", "worker"),
        ("delegate_task_to_member", "delegate_task_to_member", None),
        ("Delegate work to coworker", "delegate_work_to_coworker", None),
        ("delegate_to_researcher", "delegate_to_researcher", "researcher"),
    ],
)
def test_handoffs(written: str, name: str, to_agent: str | None) -> None:
    tool = tool_of(written)
    assert (tool.name, tool.kind, tool.to_agent) == (name, "handoff", to_agent)


@pytest.mark.parametrize(
    "written", ["final_answer", "finish", "final_result", "final_result_Refund", "(merged tools)", "StructuredOutput"]
)
def test_pseudo_tools(written: str) -> None:
    assert tool_of(written).kind == "pseudo"


@pytest.mark.parametrize(
    ("written", "args", "to_agent"),
    [
        ("transfer_to_agent", {"agent_name": "worker"}, "worker"),
        ("handoff", {"to_agent": "worker", "reason": "x"}, "worker"),
        ("delegate_work_to_coworker", {"task": "x", "coworker": "Worker"}, "Worker"),
        ("delegate_task_to_member", {"member_id": "worker", "task": "x"}, "worker"),
        ("Task", {"subagent_type": "worker", "prompt": "x"}, "worker"),
        ("transfer_to_worker", {"agent": "someone else"}, "worker"),
        ("handoff", "worker", None),
    ],
)
def test_the_arguments_tell_who_receives(written: str, args: object, to_agent: str | None) -> None:
    tool = with_arguments(tool_of(written), args)
    assert (tool.kind, tool.to_agent) == ("handoff", to_agent)


def test_a_tool_called_task_that_starts_no_agent_is_a_tool() -> None:
    assert with_arguments(tool_of("Task"), {"title": "x"}).kind == "tool"


@pytest.mark.parametrize(
    ("span_name", "name"),
    [
        ("read_ticket.__call__", "read_ticket"),
        ("read_ticket.run", "read_ticket"),
        ("read_ticket.tool", "read_ticket"),
        ("execute_tool read_ticket", "read_ticket"),
        ("running tool: read_ticket", "read_ticket"),
        ("MCP send tools/call read_ticket", "read_ticket"),
        ("read_ticket", "read_ticket"),
    ],
)
def test_names_of_spans_that_name_no_tool(span_name: str, name: str) -> None:
    assert name_from_span(span_name) == name

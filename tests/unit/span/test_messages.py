"""Messages of every known shape give the same calls, answers, texts and words."""

from __future__ import annotations

from typing import Any

import pytest

from reach_otel.span.conversation import Conversation, role_of
from reach_otel.span.messages import read, read_instructions
from reach_otel.span.step import Answer, Call, Text
from tests.unit.span.spans import text

ARGS = {"sku": "SKU-7"}
STOCK = {"sku": "SKU-7", "stock": 3}
ASKED_OPENAI = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "check", "arguments": text(ARGS)}}],
}

INPUTS: dict[str, Any] = {
    "opentelemetry": [
        {"role": "system", "parts": [{"type": "text", "content": "Be kind."}]},
        {"role": "user", "parts": [{"type": "text", "content": "Check SKU-7."}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "check", "arguments": ARGS}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": text(STOCK)}]},
    ],
    "pydantic-ai": [
        {"role": "system", "parts": [{"type": "text", "content": "Be kind."}]},
        {"role": "user", "parts": [{"type": "text", "content": "Check SKU-7."}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "check", "arguments": text(ARGS)}]},
        {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "name": "check", "result": STOCK}]},
    ],
    "openai chat": [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "Check SKU-7."}]},
        ASKED_OPENAI,
        {"role": "tool", "tool_call_id": "c1", "content": str(STOCK)},
    ],
    "openai responses": [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": [{"type": "input_text", "text": "Check SKU-7."}]},
        {"type": "function_call", "id": "fc_9", "call_id": "c1", "name": "check", "arguments": text(ARGS)},
        {"type": "function_call_output", "call_id": "c1", "output": str(STOCK)},
    ],
    "anthropic": [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Check SKU-7."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "check", "input": ARGS}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": text(STOCK)}]}
            ],
        },
    ],
    "bedrock": [
        {"role": "system", "content": [{"text": "Be kind."}]},
        {"role": "user", "content": [{"text": "Check SKU-7."}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "check", "input": ARGS}}]},
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "c1", "status": "success", "content": [{"text": text(STOCK)}]}}],
        },
    ],
    "gemini": {
        "contents": [
            {"role": "system", "parts": [{"text": "Be kind."}]},
            {"role": "user", "parts": [{"text": "Check SKU-7."}]},
            {"role": "model", "parts": [{"function_call": {"id": "c1", "name": "check", "args": ARGS}}]},
            {"role": "user", "parts": [{"function_response": {"id": "c1", "name": "check", "response": STOCK}}]},
        ]
    },
    "langchain constructors": {
        "messages": [
            [
                {"lc": 1, "id": ["x", "SystemMessage"], "kwargs": {"content": "Be kind.", "type": "system"}},
                {"lc": 1, "id": ["x", "HumanMessage"], "kwargs": {"content": "Check SKU-7."}},
                {
                    "lc": 1,
                    "id": ["x", "AIMessage"],
                    "kwargs": {
                        "content": "",
                        "type": "ai",
                        "tool_calls": [{"id": "c1", "name": "check", "args": ARGS}],
                    },
                },
                {
                    "lc": 1,
                    "id": ["x", "ToolMessage"],
                    "kwargs": {"content": text(STOCK), "type": "tool", "tool_call_id": "c1", "status": "success"},
                },
            ]
        ]
    },
    "langchain dumped": {
        "messages": [
            {"type": "system", "data": {"content": "Be kind.", "type": "system"}},
            {"type": "human", "data": {"content": "Check SKU-7."}},
            {"type": "ai", "data": {"content": "", "tool_calls": [{"id": "c1", "name": "check", "args": ARGS}]}},
            {"type": "tool", "data": {"content": text(STOCK), "tool_call_id": "c1", "name": "check"}},
        ]
    },
    "haystack": {
        "messages": [
            {"role": "system", "meta": {}, "name": None, "content": [{"text": "Be kind."}]},
            {"role": "user", "meta": {}, "name": None, "content": [{"text": "Check SKU-7."}]},
            {
                "role": "assistant",
                "meta": {"model": "m"},
                "content": [{"tool_call": {"tool_name": "check", "arguments": ARGS, "id": "c1"}}],
            },
            {
                "role": "tool",
                "content": [
                    {
                        "tool_call_result": {
                            "result": text(STOCK),
                            "origin": {"tool_name": "check", "arguments": ARGS, "id": "c1"},
                            "error": False,
                        }
                    }
                ],
            },
        ]
    },
    "smolagents": [
        {"role": "MessageRole.SYSTEM", "content": "Be kind."},
        {"role": "MessageRole.USER", "content": "Check SKU-7."},
        {"role": "tool-call", "content": "Calling tools:\n[{'id': 'c1', 'function': {'name': 'check'}}]"},
        {"role": "tool-response", "content": f"Observation:\n{STOCK}"},
    ],
}

OUTPUTS: dict[str, Any] = {
    "opentelemetry": [
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "check", "arguments": ARGS}]}
    ],
    "opentelemetry, arguments as text": [
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "check", "arguments": text(ARGS)}]}
    ],
    "openai chat": ASKED_OPENAI,
    "openai choices": {"id": "x", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": ASKED_OPENAI}]},
    "openai responses": {
        "output": [{"type": "function_call", "id": "fc_9", "call_id": "c1", "name": "check", "arguments": text(ARGS)}]
    },
    "bedrock": [{"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "check", "input": ARGS}}]}],
    "gemini": {"content": {"role": "model", "parts": [{"function_call": {"id": "c1", "name": "check", "args": ARGS}}]}},
    "haystack": {
        "replies": [
            {"role": "assistant", "content": [{"tool_call": {"tool_name": "check", "arguments": ARGS, "id": "c1"}}]}
        ]
    },
    "llama-index": {
        "message": {
            "role": "assistant",
            "blocks": [],
            "additional_kwargs": {
                "tool_calls": [{"id": "c1", "function": {"name": "check", "arguments": text(ARGS)}, "type": "function"}]
            },
        }
    },
    "named by its server": [
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "mcp__x__check"}]}
    ],
}


@pytest.mark.parametrize("raw", INPUTS.values(), ids=INPUTS)
@pytest.mark.parametrize("written", [False, True], ids=["structure", "text"])
def test_input_messages(raw: Any, written: bool) -> None:
    said = Conversation()
    read(text(raw) if written else raw, said, output=False)
    assert said.texts == [Text("system", "Be kind."), Text("user", "Check SKU-7.")]
    assert said.answers == [Answer("c1", "check", STOCK)]
    assert not said.calls
    assert not said.said


@pytest.mark.parametrize("raw", OUTPUTS.values(), ids=OUTPUTS)
@pytest.mark.parametrize("written", [False, True], ids=["structure", "text"])
def test_output_messages_that_ask_for_a_tool(raw: Any, written: bool) -> None:
    said = Conversation()
    read(text(raw) if written else raw, said, output=True, role="assistant")
    (call,) = said.calls
    assert (call.tool, call.id, call.kind) == ("check", "c1", "tool")
    assert call.args in (ARGS, None)
    assert said.output is None


@pytest.mark.parametrize(
    "raw",
    [
        "Done.",
        [{"role": "assistant", "parts": [{"type": "text", "content": "Done."}], "finish_reason": "stop"}],
        [
            {
                "role": "assistant",
                "parts": [{"type": "reasoning", "content": "hm"}, {"type": "text", "content": "Done."}],
            }
        ],
        {"choices": [{"message": {"role": "assistant", "content": "Done. \n"}}]},
        {"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}]},
        {"generations": [], "messages": [{"type": "ai", "data": {"content": "Done."}}]},
        {"message": {"role": "assistant", "blocks": [{"block_type": "text", "text": "Done."}]}},
    ],
)
def test_output_messages_that_answer(raw: Any) -> None:
    said = Conversation()
    read(raw, said, output=True, role="assistant")
    assert said.output == "Done."
    assert not said.calls


def test_a_failed_answer_is_told_by_flag_structure_or_text() -> None:
    said = Conversation()
    read(
        [
            {"role": "tool", "tool_call_id": "a", "content": "unknown sku", "status": "error"},
            {"role": "tool", "tool_call_id": "b", "content": '{"error": "unknown sku"}'},
            {"role": "tool", "tool_call_id": "c", "content": "Error: unknown sku"},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "d", "content": "no", "is_error": True}],
            },
            {"role": "tool", "tool_call_id": "e", "content": "unknown sku"},
        ],
        said,
        output=False,
    )
    assert [(a.call_id, a.ok, a.error) for a in said.answers] == [
        ("a", False, "unknown sku"),
        ("b", False, "unknown sku"),
        ("c", False, "Error: unknown sku"),
        ("d", False, "no"),
        ("e", True, None),
    ]


def test_an_answer_without_an_id_belongs_to_the_oldest_open_call() -> None:
    said = Conversation()
    call = {"role": "assistant", "parts": [{"function_call": {"id": "c1", "name": "check"}}]}
    other = {"role": "assistant", "parts": [{"function_call": {"id": "c2", "name": "ship"}}]}
    answer = {"role": "tool", "name": "ship", "content": "shipped"}
    read([call, other, answer, {"role": "tool", "content": "3"}, {"role": "tool", "content": "?"}], said, output=False)
    assert [(a.call_id, a.tool) for a in said.answers] == [("c2", "ship"), ("c1", "check"), (None, None)]


def test_streamed_calls_count_once_with_their_last_arguments() -> None:
    said = Conversation()
    parts: list[dict[str, Any]] = [
        {"type": "tool_call", "id": "c1", "name": "check", "arguments": args} for args in ({}, ARGS)
    ]
    read([{"role": "assistant", "parts": [part]} for part in parts], said, output=True)
    assert said.calls == [Call("check", "c1", ARGS)]


def test_two_calls_that_share_an_id_and_differ_in_tool_are_two() -> None:
    said = Conversation()
    parts: list[dict[str, Any]] = [
        {"type": "tool_call", "id": "c1", "name": name, "arguments": {}} for name in ("check", "ship")
    ]
    read([{"role": "assistant", "parts": parts}], said, output=True)
    assert [call.tool for call in said.calls] == ["check", "ship"]


def test_a_call_to_a_pseudo_tool_is_the_answer() -> None:
    said = Conversation()
    part = {"type": "tool_call", "id": "c1", "name": "final_answer", "arguments": {"answer": "Done."}}
    read([{"role": "assistant", "parts": [part]}], said, output=True)
    assert said.output == "Done."
    assert not said.calls


def test_a_transfer_is_a_call_of_its_own_kind() -> None:
    said = Conversation()
    part = {"type": "tool_call", "id": "c1", "name": "transfer_to_worker", "arguments": {}}
    read([{"role": "assistant", "parts": [part]}], said, output=True)
    assert said.calls == [Call("transfer_to_worker", "c1", {}, "handoff")]


def test_what_one_agent_quotes_of_another_is_no_input() -> None:
    said = Conversation()
    quoted = "For context: a transcript.\n[triage] called tool `transfer_to_agent` with parameters:\n{'x': 1}"
    read(
        [{"role": "user", "content": quoted}, {"role": "user", "content": "For context: I am Ann."}], said, output=False
    )
    assert said.texts == [Text("user", "For context: I am Ann.")]


def test_results_under_the_role_of_a_user_are_answers() -> None:
    said = Conversation()
    asked = "Calling tools:\n[{'id': 'c1', 'type': 'function', 'function': {'name': 'check', 'arguments': {}}}]"
    failed = "Error:\nError executing tool 'check': no\nNow let's retry: take care not to repeat previous errors! …"
    read(
        [
            {"role": "user", "content": "New task:\nCheck SKU-7."},
            {"role": "assistant", "parts": [{"type": "text", "content": asked}]},
            {"role": "user", "content": f"Observation:\n{STOCK}"},
            {"role": "user", "content": failed},
        ],
        said,
        output=False,
    )
    assert said.texts == [Text("user", "New task:\nCheck SKU-7.")]
    assert [(a.call_id, a.tool, a.result, a.ok) for a in said.answers] == [
        ("c1", "check", STOCK, True),
        (None, None, failed, False),
    ]


def test_reprs_are_no_words() -> None:
    said = Conversation()
    read("[ResponseFunctionToolCall(arguments='{}', name='x')]", said, output=True, role="assistant")
    read(["ChatMessage(role=<MessageRole.USER: 'user'>, blocks=[])"], said, output=False)
    assert not said.said
    assert not said.texts


@pytest.mark.parametrize(
    "raw",
    [
        "Be kind.",
        [{"type": "text", "content": "Be kind."}],
        '[{"text": "Be kind."}]',
        {"parts": [{"text": "Be kind."}]},
    ],
)
def test_system_instructions(raw: Any) -> None:
    said = Conversation()
    read_instructions(raw, said)
    assert said.texts == [Text("system", "Be kind.")]


def test_unknown_roles_are_users() -> None:
    assert role_of("critic") == "user"
    assert role_of(None) == "user"
    assert role_of("AIMessageChunk") == "assistant"
    assert role_of("tool_response") == "tool"

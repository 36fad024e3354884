"""Each family of libraries is read by its attributes, those too of which there is no recording."""

from __future__ import annotations

from typing import Any

import pytest

from reach_otel.span import Event, Tokens
from reach_otel.span.record import resource_of
from tests.unit.span.spans import ERROR, raised, step, text

ARGS = {"sku": "SKU-7"}
STOCK = {"sku": "SKU-7", "stock": 3}
OI = "openinference.span.kind"
OP = "gen_ai.operation.name"
TL = "traceloop.span.kind"


@pytest.mark.parametrize(
    ("kind", "name", "attributes"),
    [
        # OpenTelemetry
        ("agent", "invoke_agent bot", {OP: "invoke_agent", "gen_ai.agent.name": "bot"}),
        ("model", "chat m", {OP: "chat"}),
        ("model", "generate_content m", {OP: "generate_content", "gen_ai.agent.name": "bot"}),
        ("model", "text_completion m", {OP: "text_completion"}),
        ("tool", "execute_tool check", {OP: "execute_tool", "gen_ai.tool.name": "check"}),
        ("retrieval", "retrieval docs", {OP: "retrieval"}),
        ("plan", "plan", {OP: "plan"}),
        ("handoff", "triage → unknown.handoff", {OP: "handoff", TL: "handoff"}),
        ("other", "create_agent bot", {OP: "create_agent", "gen_ai.agent.name": "bot"}),
        ("other", "invoke_workflow team", {OP: "invoke_workflow"}),
        ("other", "embeddings m", {OP: "embeddings"}),
        ("other", "execute_event_loop_cycle", {OP: "execute_event_loop_cycle"}),
        ("other", "invoke_swarm", {OP: "invoke_swarm"}),
        ("other", "unknown", {OP: "unknown", "gen_ai.agent.name": "OpenAI Agent"}),
        ("other", "execute_tool (merged)", {OP: "execute_tool", "gen_ai.tool.name": "(merged tools)"}),
        (
            "model",
            "message.create",
            {OP: "message.create", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 1},
        ),
        # a span that began as an agent's and was written over
        ("agent", "invoke_agent bot", {OP: "generate_content", OI: "LLM", "gen_ai.agent.name": "bot"}),
        # MCP
        (
            "tool",
            "tools/call check",
            {"mcp.method.name": "tools/call", OP: "execute_tool", "gen_ai.tool.name": "check"},
        ),
        ("tool", "MCP send tools/call check", {"mcp.method.name": "tools/call"}),
        ("other", "tools/list", {"mcp.method.name": "tools/list"}),
        ("other", "server/discover", {"mcp.method.name": "server/discover"}),
        # OpenInference
        ("agent", "bot.run", {OI: "AGENT", "input.value": "x"}),
        ("other", "Ticket workflow", {OI: "AGENT"}),
        ("other", "turn", {OI: "CHAIN"}),
        ("model", "ChatOpenAI", {OI: "LLM", "llm.model_name": "m", "llm.token_count.prompt": 1}),
        ("model", "my_llm", {OI: "LLM", "output.value": "hello"}),
        ("other", "OpenAILike._prepare_chat_with_tools", {OI: "LLM", "llm.model_name": "m", "input.value": "{}"}),
        ("tool", "check", {OI: "TOOL", "tool.name": "check"}),
        ("retrieval", "Retriever", {OI: "RETRIEVER"}),
        ("other", "ok_in", {OI: "GUARDRAIL"}),
        ("other", "emb", {OI: "EMBEDDING"}),
        ("agent", "FunctionAgent.run", {OI: "CHAIN", "input.value": "{}"}),
        ("agent", "ReAct.forward", {OI: "CHAIN"}),
        ("other", "BaseWorkflowAgent.run_agent_step", {OI: "CHAIN"}),
        ("agent", "worker", {OI: "CHAIN", "metadata": '{"lc_agent_name": "worker", "langgraph_node": "worker"}'}),
        ("other", "worker", {OI: "CHAIN", "metadata": '{"ls_integration": "langgraph", "langgraph_node": "worker"}'}),
        ("other", "model", {OI: "CHAIN", "metadata": '{"lc_agent_name": "worker", "langgraph_node": "model"}'}),
        ("other", "agent", {OI: "AGENT", "metadata": '{"langgraph_node": "agent"}'}),
        ("agent", "support_agent", {OI: "AGENT", "metadata": "{}"}),
        # OpenLLMetry
        ("agent", "bot.agent", {TL: "agent", OP: "invoke_agent", "gen_ai.agent.name": "bot"}),
        ("other", "bot.workflow", {TL: "workflow", OP: "invoke_agent", "gen_ai.agent.name": "bot"}),
        ("other", "x.task", {TL: "task", OP: "invoke_agent"}),
        ("other", "execute_task model", {OP: "execute_task"}),
        ("other", "goto worker", {OP: "goto"}),
        ("other", "crewai.workflow", {OP: "invoke_agent", "crewai.crew.name": "crew"}),
        ("other", "mcp.server", {TL: "server"}),
        ("tool", "check.tool", {TL: "tool", "traceloop.entity.name": "check"}),
        ("other", "check.tool", {TL: "tool", "traceloop.entity.name": "check", "traceloop.workflow.name": "x.mcp"}),
        ("model", "ChatOpenAI.chat", {"llm.request.type": "chat"}),
        ("other", "embed", {"llm.request.type": "embedding"}),
        (
            "agent",
            "bot.workflow",
            {
                TL: "workflow",
                "traceloop.entity.name": "bot",
                "traceloop.association.properties.lc_agent_name": "bot",
            },
        ),
        # own formats
        ("agent", "haystack.agent.run", {}),
        ("other", "haystack.agent.step", {}),
        ("model", "haystack.agent.step.llm", {}),
        ("tool", "haystack.agent.step.tool", {"haystack.tool.name": "check"}),
        ("model", "haystack.component.run", {"haystack.component.type": "OpenAIChatGenerator"}),
        ("other", "haystack.component.run", {"haystack.component.type": "PromptBuilder"}),
        ("model", "call_llm", {"gen_ai.request.model": "m", "gcp.vertex.agent.llm_request": "{}"}),
        ("agent", "agent_run [bot]", {}),
        ("agent", "agent run", {"agent_name": "bot", "model_name": "m"}),
        ("tool", "running tool", {"gen_ai.tool.name": "check", "tool_arguments": "{}"}),
        # nothing of ours
        ("other", "GET /v1", {"http.request.method": "GET", "gen_ai.request.model": "m"}),
        ("other", "autogen send x", {"messaging.operation": "publish"}),
        ("other", "executor.process worker", {"executor.id": "worker"}),
    ],
)
def test_kinds(kind: str, name: str, attributes: dict[str, Any]) -> None:
    assert step(attributes, name).kind == kind


def test_a_plain_tool_span() -> None:
    found = step(
        {
            OP: "execute_tool",
            "gen_ai.tool.name": "check_inventory",
            "gen_ai.tool.call.id": "c1",
            "gen_ai.agent.name": "bot",
            "gen_ai.conversation.id": "conv-7",
            "gen_ai.tool.call.arguments": text(ARGS),
            "gen_ai.tool.call.result": text(STOCK),
        }
    )
    assert (found.tool, found.call_id, found.agent, found.conversation_id) == ("check_inventory", "c1", "bot", "conv-7")
    assert (found.args, found.result, found.has_args, found.has_result, found.ok) == (ARGS, STOCK, True, True, True)


@pytest.mark.parametrize(
    ("name", "attributes", "events", "call_id"),
    [
        (
            "execute_tool check",  # ADK, first schema
            {
                OP: "execute_tool",
                "gen_ai.tool.name": "check",
                "gen_ai.tool.call.id": "c1",
                "gcp.vertex.agent.tool_call_args": text(ARGS),
                "gcp.vertex.agent.tool_response": text(STOCK),
                "gcp.vertex.agent.llm_request": "{}",
                "gcp.vertex.agent.llm_response": "{}",
            },
            (),
            "c1",
        ),
        (
            "execute_tool check",  # ADK with OpenInference
            {
                OP: "execute_tool",
                OI: "TOOL",
                "tool.name": "check",
                "tool.parameters": text(ARGS),
                "input.value": text(ARGS),
                "output.value": text({"id": "c1", "name": "check", "response": STOCK}),
            },
            (),
            "c1",
        ),
        (
            "execute_tool check",  # strands, old
            {OP: "execute_tool", "gen_ai.tool.name": "check", "gen_ai.tool.call.id": "c1"},
            (
                Event("gen_ai.tool.message", 1, {"role": "tool", "content": text(ARGS), "id": "c1"}),
                Event("gen_ai.choice", 2, {"message": text([{"text": text(STOCK)}]), "id": "c1"}),
            ),
            "c1",
        ),
        (
            "execute_tool check",  # strands, new, in an event
            {OP: "execute_tool", "gen_ai.tool.name": "check"},
            (
                Event(
                    "gen_ai.client.inference.operation.details",
                    1,
                    {
                        "gen_ai.input.messages": text(
                            [
                                {
                                    "role": "tool",
                                    "parts": [{"type": "tool_call", "name": "check", "id": "c1", "arguments": ARGS}],
                                }
                            ]
                        ),
                        "gen_ai.output.messages": text(
                            [
                                {
                                    "role": "tool",
                                    "parts": [
                                        {"type": "tool_call_response", "id": "c1", "response": [{"text": text(STOCK)}]}
                                    ],
                                }
                            ]
                        ),
                    },
                ),
            ),
            "c1",
        ),
        (
            "execute_tool check",  # strands, new, in attributes
            {
                OP: "execute_tool",
                "gen_ai.tool.name": "check",
                "gen_ai.input.messages": text(
                    [{"role": "tool", "parts": [{"type": "tool_call", "name": "check", "id": "c1", "arguments": ARGS}]}]
                ),
                "gen_ai.output.messages": text(
                    [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": STOCK}]}]
                ),
            },
            (),
            "c1",
        ),
        (
            "running tool",  # pydantic-ai, second format
            {
                "gen_ai.tool.name": "check",
                "gen_ai.tool.call.id": "c1",
                "tool_arguments": text(ARGS),
                "tool_response": text(STOCK),
            },
            (),
            "c1",
        ),
        (
            "haystack.agent.step.tool",
            {
                "haystack.tool.name": "check",
                "haystack.agent.step.tool.input": text(ARGS),
                "haystack.agent.step.tool.output": text(STOCK),
            },
            (),
            None,
        ),
        (
            "check.tool",  # OpenLLMetry, old
            {
                TL: "tool",
                "traceloop.entity.name": "check",
                "traceloop.entity.input": text(
                    {"input_str": str(ARGS), "inputs": ARGS, "kwargs": {"tool_call_id": "c1", "color": "green"}}
                ),
                "traceloop.entity.output": text(
                    {
                        "output": {
                            "lc": 1,
                            "id": ["x", "ToolMessage"],
                            "kwargs": {"content": text(STOCK), "type": "tool", "status": "success"},
                        },
                        "kwargs": {},
                    }
                ),
            },
            (),
            "c1",
        ),
        (
            "check.__call__",  # dspy
            {OI: "TOOL", "input.value": text({"kwargs": ARGS}), "output.value": text(STOCK)},
            (),
            None,
        ),
        (
            "check",  # agno
            {OI: "TOOL", "tool.name": "check", "tool.parameters": text(ARGS), "output.value": str(STOCK)},
            (),
            None,
        ),
        (
            "mcp__support__check",  # claude
            {
                OI: "TOOL",
                "tool.name": "mcp__support__check",
                "tool.id": "c1",
                "input.value": text(ARGS),
                "output.value": text([{"type": "text", "text": text(STOCK)}]),
            },
            (),
            "c1",
        ),
        (
            "support_agent.check",  # autogen with OpenInference
            {OI: "TOOL", "tool.name": "check", "input.value": text(ARGS), "output.value": str(STOCK)},
            (),
            None,
        ),
        (
            "execute_tool check",  # agent-framework with OpenInference
            {
                OP: "execute_tool",
                OI: "TOOL",
                "gen_ai.tool.name": "check",
                "tool.name": "check",
                "tool.call_id": "c1",
                "tool.parameters": text(ARGS),
                "gen_ai.tool.call.arguments": text(ARGS),
                "gen_ai.tool.call.result": text(STOCK),
                "input.value": text(ARGS),
                "output.value": text(STOCK),
            },
            (),
            "c1",
        ),
    ],
)
def test_a_tool_call_of_every_family(
    name: str, attributes: dict[str, Any], events: tuple[Event, ...], call_id: str | None
) -> None:
    found = step(attributes, name, events=events)
    assert (found.kind, found.tool, found.call_id) == ("tool", "check", call_id)
    assert (found.args, found.result, found.ok) == (ARGS, STOCK, True)


def test_a_schema_under_the_name_of_parameters_is_no_argument() -> None:
    for schema in (
        {"type": "object", "properties": {"sku": {"type": "string"}}},
        {"sku": {"type": "string", "description": "the unit"}},
    ):
        found = step({OI: "TOOL", "tool.name": "check", "tool.parameters": text(schema)})
        assert not found.has_args


def test_what_adk_does_not_specify_is_absent() -> None:
    found = step(
        {
            OP: "execute_tool",
            "gen_ai.tool.name": "check",
            "gen_ai.tool.call.id": "<not specified>",
            "gcp.vertex.agent.tool_response": '{"result": "<not specified>"}',
        }
    )
    assert (found.call_id, found.has_result, found.result) == (None, False, None)


@pytest.mark.parametrize(
    ("name", "attributes", "tool", "to_agent"),
    [
        (
            "handoff to worker",
            {OI: "TOOL", "input.value": "triage", "output.value": "worker"},
            "transfer_to_worker",
            "worker",
        ),
        (
            "triage → unknown.handoff",
            {OP: "handoff", TL: "handoff", "gen_ai.handoff.from_agent": "triage"},
            "handoff",
            None,
        ),
        (
            "agent_handoff OpenAI Agent",
            {OP: "agent_handoff", "gen_ai.handoff.from_agent": "triage", "gen_ai.handoff.to_agent": "worker"},
            "transfer_to_worker",
            "worker",
        ),
        (
            "execute_tool transfer_to_agent",
            {
                OP: "execute_tool",
                "gen_ai.tool.name": "transfer_to_agent",
                "gen_ai.tool.call.arguments": '{"agent_name": "worker"}',
            },
            "transfer_to_agent",
            "worker",
        ),
        (
            "Delegate work to coworker.run",
            {
                OI: "TOOL",
                "tool.name": "Delegate work to coworker",
                "input.value": '{"coworker": "Worker", "task": "x"}',
            },
            "delegate_work_to_coworker",
            "Worker",
        ),
        (
            "go",
            {OI: "TOOL", "tool.name": "go", "output.value": '{"graph": "__parent__", "update": {}, "goto": "worker"}'},
            "go",
            "worker",
        ),
    ],
)
def test_handoffs(name: str, attributes: dict[str, Any], tool: str, to_agent: str | None) -> None:
    found = step(attributes, name)
    assert (found.kind, found.tool, found.to_agent) == ("handoff", tool, to_agent)


@pytest.mark.parametrize(
    ("attributes", "output"),
    [
        ({"gen_ai.tool.name": "final_answer", "gen_ai.tool.call.arguments": '{"answer": "Done."}'}, "Done."),
        ({"gen_ai.tool.name": "finish", "gen_ai.tool.call.arguments": "{}"}, None),
        (
            {
                "gen_ai.tool.name": "final_result",
                "gen_ai.tool.call.arguments": '"Handle it."',
                "gen_ai.tool.call.result": "Done.",
            },
            "Done.",
        ),
        ({"gen_ai.tool.name": "final_result", "gen_ai.tool.call.arguments": '"Done."'}, "Done."),
    ],
)
def test_pseudo_tools_only_end_the_run(attributes: dict[str, Any], output: str | None) -> None:
    found = step({OP: "execute_tool"} | attributes)
    assert (found.kind, found.output) == ("other", output)


@pytest.mark.parametrize(
    ("name", "attributes", "agent"),
    [
        ("invoke_agent bot", {OP: "invoke_agent", "gen_ai.agent.name": "bot"}, "bot"),
        ("invoke_agent", {OP: "invoke_agent"}, None),
        ("bot.agent", {TL: "agent", "traceloop.entity.name": "bot"}, "bot"),
        ("bot.run", {OI: "AGENT", "input.value": "x"}, "bot"),
        ("ClaudeAgentSDK.query", {OI: "AGENT", "input.value": "x"}, "ClaudeAgentSDK"),
        ("x", {OI: "AGENT", "agent.name": "bot", "graph.node.id": "7f3a"}, "bot"),
        ("x", {OI: "AGENT", "graph.node.name": "bot", "graph.node.id": "7f3a"}, "bot"),
        ("Support Agent.x._execute_core", {OI: "AGENT", "graph.node.id": "Support Agent"}, "Support Agent"),
        ("support_agent", {OI: "AGENT", "metadata": '{"lc_agent_name": "support_agent"}'}, "support_agent"),
        ("bot", {OI: "AGENT", "graph.node.id": "strands_agent", "input.value": "x"}, "strands_agent"),
        ("FunctionAgent.run", {OI: "CHAIN"}, "FunctionAgent"),
        ("agent run", {"agent_name": "bot", "model_name": "m"}, "bot"),
        ("agent_run [bot]", {}, "bot"),
    ],
)
def test_names_of_agents(name: str, attributes: dict[str, Any], agent: str | None) -> None:
    found = step(attributes, name)
    assert (found.kind, found.agent) == ("agent", agent)


@pytest.mark.parametrize(
    ("attributes", "agent"),
    [
        ({}, None),
        ({"gen_ai.agent.name": "bot"}, "bot"),
        ({"gen_ai.agent.name": "OpenAI Agent"}, None),
        ({"metadata": '{"lc_agent_name": "bot"}'}, "bot"),
        ({"traceloop.association.properties.lc_agent_name": "bot"}, "bot"),
    ],
)
def test_the_agent_named_on_a_tool_span(attributes: dict[str, Any], agent: str | None) -> None:
    assert step({OP: "execute_tool", "gen_ai.tool.name": "check"} | attributes).agent == agent


@pytest.mark.parametrize(
    ("attributes", "tokens"),
    [
        ({}, None),
        ({"gen_ai.usage.input_tokens": 110, "gen_ai.usage.output_tokens": 21}, Tokens(110, 21)),
        ({"gen_ai.usage.prompt_tokens": 110, "gen_ai.usage.completion_tokens": 21}, Tokens(110, 21)),
        (
            {
                "llm.token_count.prompt": 110,
                "llm.token_count.completion": 21,
                "llm.token_count.prompt_details.cache_read": 64,
                "llm.token_count.completion_details.reasoning": 8,
            },
            Tokens(110, 21, 64, 8),
        ),
        (
            {
                "gen_ai.usage.input_tokens": "110",
                "gen_ai.usage.output_tokens": 21.0,
                "gen_ai.usage.details.reasoning_tokens": 8,
                "gen_ai.usage.cache_read_input_tokens": 64,
            },
            Tokens(110, 21, 64, 8),
        ),
        # ADK adds the reasoning once more to what LiteLLM already counts
        (
            {
                "gcp.vertex.agent.event_id": "x",
                "gen_ai.request.model": "openai/gpt-4o-mini",
                "gen_ai.usage.input_tokens": 110,
                "gen_ai.usage.output_tokens": 29,
                "gen_ai.usage.reasoning.output_tokens": 8,
            },
            Tokens(110, 21, 0, 8),
        ),
        (
            {
                "gcp.vertex.agent.event_id": "x",
                "gen_ai.request.model": "gemini-2.5-pro",
                "gen_ai.usage.input_tokens": 110,
                "gen_ai.usage.output_tokens": 29,
                "gen_ai.usage.reasoning.output_tokens": 8,
            },
            Tokens(110, 29, 0, 8),
        ),
        ({"gen_ai.usage.input_tokens": -5, "gen_ai.usage.output_tokens": "many"}, None),
        ({"gen_ai.usage.input_tokens": [1], "gen_ai.usage.output_tokens": 3}, Tokens(0, 3)),
    ],
)
def test_tokens(attributes: dict[str, Any], tokens: Tokens | None) -> None:
    assert step({OP: "chat"} | attributes).tokens == tokens


def test_haystack_keeps_model_and_tokens_inside_its_message() -> None:
    reply = {
        "role": "assistant",
        "meta": {
            "model": "gpt-4o-mini",
            "usage": {
                "prompt_tokens": 110,
                "completion_tokens": 21,
                "prompt_tokens_details": {"cached_tokens": 64},
                "completion_tokens_details": {"reasoning_tokens": 8},
            },
        },
        "content": [{"text": "Done."}],
    }
    old = {**reply, "meta": {"usage": {"prompt_tokens": 1, "completion_tokens": 1}}}
    found = step(
        {
            "haystack.agent.step.llm.input": text({"messages": [{"role": "user", "content": [{"text": "Go."}]}, old]}),
            "haystack.agent.step.llm.output": text({"replies": [reply]}),
        },
        "haystack.agent.step.llm",
    )
    assert (found.model, found.tokens, found.output) == ("gpt-4o-mini", Tokens(110, 21, 64, 8), "Done.")
    assert [told.text for told in found.texts] == ["Go."]


def test_adk_first_schema_keeps_the_request_of_gemini() -> None:
    request = {
        "model": "gemini-2.5-pro",
        "config": {"system_instruction": "Be kind."},
        "contents": [{"role": "user", "parts": [{"text": "Go."}]}],
    }
    response = {"content": {"role": "model", "parts": [{"function_call": {"id": "c1", "name": "check", "args": ARGS}}]}}
    found = step(
        {
            "gen_ai.request.model": "gemini-2.5-pro",
            "gcp.vertex.agent.llm_request": text(request),
            "gcp.vertex.agent.llm_response": text(response),
        },
        "call_llm",
    )
    assert [(told.role, told.text) for told in found.texts] == [("system", "Be kind."), ("user", "Go.")]
    assert [(call.tool, call.id, call.args) for call in found.calls] == [("check", "c1", ARGS)]


@pytest.mark.parametrize(
    ("attributes", "told", "output"),
    [
        (
            {
                OP: "invoke_agent",
                "gen_ai.input.messages": text([{"role": "user", "parts": [{"type": "text", "content": "Go."}]}]),
                "gen_ai.output.messages": text(
                    [{"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}]
                ),
            },
            ["Go."],
            "Done.",
        ),
        ({OI: "AGENT", "input.value": "Go.", "output.value": "Done."}, ["Go."], "Done."),
        ({OI: "AGENT", "input.value": text({"task": "Go.", "reset": True}), "output.value": "Done."}, ["Go."], "Done."),
        (
            {
                OI: "AGENT",
                "input.value": text({"messages": [{"role": "user", "content": "Go."}]}),
                "output.value": text({"messages": [{"type": "ai", "data": {"content": "Done."}}]}),
            },
            ["Go."],
            "Done.",
        ),
        ({OI: "AGENT", "input.value": "Go.", "output.value": text({"raw": "Done.", "tokens": 3})}, ["Go."], "Done."),
        ({OI: "AGENT", "input.value": "Go.", "output.value": text({"ticket": 7})}, ["Go."], '{"ticket": 7}'),
        ({OI: "AGENT", "input.value": "Go.", "output.value": "StopEvent(result=AgentOutput(x='y'))"}, ["Go."], None),
        ({OI: "AGENT", "input.value": text({"ctx": "<x.Context object at 0x7f>"}), "output.value": "ok!"}, [], "ok!"),
        ({OI: "AGENT", "input.value": text({"resume": True, "goto": [], "update": None})}, [], None),
        (
            {
                OP: "invoke_agent",
                "pydantic_ai.all_messages": text(
                    [
                        {"role": "user", "parts": [{"type": "text", "content": "Go."}]},
                        {"role": "assistant", "parts": [{"type": "text", "content": "Thinking."}]},
                    ]
                ),
                "final_result": "Done.",
            },
            ["Go."],
            "Done.",
        ),
        (
            {
                TL: "workflow",
                "traceloop.entity.name": "bot",
                "traceloop.association.properties.lc_agent_name": "bot",
                "traceloop.entity.input": text({"inputs": {"messages": [{"role": "user", "content": "Go."}]}}),
                "traceloop.entity.output": text(
                    {"outputs": {"messages": [{"lc": 1, "kwargs": {"type": "ai", "content": "Done."}}]}, "kwargs": {}}
                ),
            },
            ["Go."],
            "Done.",
        ),
    ],
)
def test_what_an_agent_was_told_and_said(attributes: dict[str, Any], told: list[str], output: str | None) -> None:
    found = step(attributes, "x")
    assert found.kind == "agent"
    assert ([text.text for text in found.texts], found.output) == (told, output)
    assert not found.calls
    assert not found.answers


def test_a_retrieval_has_a_query_and_documents() -> None:
    found = step(
        {
            OI: "RETRIEVER",
            "input.value": "broken lamp",
            "retrieval.documents.0.document.id": "d1",
            "retrieval.documents.0.document.content": "How to fix a lamp.",
            "retrieval.documents.1.document.id": "d2",
        },
        "VectorRetriever",
    )
    assert (found.tool, found.args) == ("VectorRetriever", "broken lamp")
    assert found.result == [{"id": "d1", "content": "How to fix a lamp."}, {"id": "d2"}]


def test_a_plan_is_parsed() -> None:
    assert step({OP: "plan", "reach.plan": '[{"tool": "check"}]'}).plan == [{"tool": "check"}]


def test_what_is_ours_on_spans() -> None:
    found = step(
        {OP: "chat", "reach.task": "t", "reach.variant": "v", "reach.run.id": "r", "gen_ai.workflow.name": "w"}
    )
    assert (found.task, found.variant, found.run_id, found.workflow) == ("t", "v", "r", "w")
    assert step({OI: "AGENT"}, "Ticket workflow").workflow == "Ticket workflow"


@pytest.mark.parametrize(
    ("resource", "on_span", "variant", "version", "only_the_span_says"),
    [
        ({}, None, None, None, False),
        ({"reach.variant": "v1"}, None, "v1", None, False),
        ({"reach.variant": " v1\n", "service.version": " 2.0 "}, "  ", "v1", "2.0", False),
        ({"reach.variant": " ", "service.version": "\t"}, " v1 ", "v1", None, True),
        ({}, "v1", "v1", None, True),
        ({"reach.variant": "v1"}, "v2", "v2", None, True),
        ({"reach.variant": "v1"}, "v1", "v1", None, False),
        ({"service.version": "v1"}, "v1", "v1", "v1", False),
        ({"service.version": "v1"}, "v2", "v2", "v1", True),
    ],
)
def test_where_a_variant_stands(
    resource: dict[str, str], on_span: str | None, variant: str | None, version: str | None, only_the_span_says: bool
) -> None:
    """What the span says wins; whether its resource says the same is noted. Blanks around a name are taken off."""
    attributes = {OP: "chat"} if on_span is None else {OP: "chat", "reach.variant": on_span}
    found = step(attributes, resource=resource_of(resource))
    assert (found.variant, found.service_version, found.variant_on_span) == (variant, version, only_the_span_says)


def test_a_failing_tool_of_langchain_gives_the_words_of_its_exception() -> None:
    found = step(
        {OI: "TOOL", "tool.name": "check", "input.value": "SKU7"},
        status=ERROR,
        status_message="ValueError('unknown sku: SKU7')Traceback (most recent call last):\n\n  File …",
        events=(raised("ValueError", "unknown sku: SKU7"),),
    )
    assert (found.ok, found.error, found.args) == (False, "unknown sku: SKU7", "SKU7")

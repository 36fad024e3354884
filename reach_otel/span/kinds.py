"""Decide what kind of step a span is, by its attributes alone wherever they tell."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from reach_otel import names as n
from reach_otel.span.fields import AGENT_NAME
from reach_otel.span.record import Span
from reach_otel.span.step import Kind

OPERATIONS: dict[str, Kind] = {
    "invoke_agent": "agent",
    "chat": "model",
    "generate_content": "model",
    "text_completion": "model",
    "execute_tool": "tool",
    "retrieval": "retrieval",
    "plan": "plan",
    "handoff": "handoff",
    "agent_handoff": "handoff",
    "invoke_workflow": "other",
    "create_agent": "other",
    "embeddings": "other",
    "execute_task": "other",
    "goto": "other",
    "execute_event_loop_cycle": "other",
    "invoke_swarm": "other",
    "invoke_graph": "other",
}

OPENINFERENCE: dict[str, Kind] = {
    "AGENT": "agent",
    "LLM": "model",
    "TOOL": "tool",
    "RETRIEVER": "retrieval",
    "CHAIN": "other",
    "EMBEDDING": "other",
    "RERANKER": "other",
    "GUARDRAIL": "other",
    "EVALUATOR": "other",
    "PROMPT": "other",
}

TRACELOOP: dict[str, Kind] = {
    "agent": "agent",
    "tool": "tool",
    "handoff": "handoff",
    "workflow": "other",
    "task": "other",
    "session": "other",
    "server": "other",
}

REQUESTS: dict[str, Kind] = {"chat": "model", "completion": "model"}

HAYSTACK: dict[str, Kind] = {n.HAYSTACK_RUN: "agent", n.HAYSTACK_LLM: "model", n.HAYSTACK_TOOL: "tool"}

_MODEL_SIGNS = (
    n.OI_PROMPT,
    n.OI_COMPLETION,
    n.OI_FINISH,
    n.OI_INPUT_MESSAGES + "0.message.role",
    n.OI_OUTPUT_MESSAGES + "0.message.role",
    n.OI_INPUT_MESSAGES + "0.message.content",
    n.USAGE_INPUT,
)
"""One of these is on every span that is itself a call of a model, not only a method around one."""

_CONTENT_SIGNS = (n.OI_INPUT, n.OI_OUTPUT, n.OI_PROMPT, n.OI_METADATA)
_LANGCHAIN_AGENT = re.compile(r'"lc_agent_name": ?"([^"\\]+)"')
_LANGGRAPH_NODE = re.compile(r'"langgraph_node": ?"([^"\\]+)"')
_AGENT_RUN = re.compile(r"(\w*Agent|\w*AgentWorkflow|ReAct|CodeAct)\.(?:a?run|a?forward|a?call|__call__)")
_RUN_METHOD = re.compile(
    r"(.+?)\.(?:_?a?run(?:_stream)?|a?call|__call__|query|a?chat|a?execute|on_messages(?:_stream)?)"
)
_GENERIC_NODE = "agent"
_ADK_AGENT = "agent_run ["


def kind_of(span: Span) -> Kind:
    """Give the kind of the step this span makes.

    One span may bear two dialects; a native operation name tells more than a kind that a processor added, but a wrapper
    of OpenLLMetry (workflow, task, server) stays a wrapper whatever operation it names.
    """
    attributes = span.attributes
    operation = attributes.get(n.OPERATION)
    traceloop = attributes.get(n.TL_KIND)
    if traceloop is not None:
        kind = TRACELOOP.get(traceloop) if type(traceloop) is str else None
        if kind == "other":
            return (
                "agent"
                if operation is None and _is_langchain_agent(attributes, attributes.get(n.TL_ENTITY))
                else "other"
            )
        if kind == "tool" and _is_inside_mcp_server(attributes):
            return "other"
    if operation is not None:
        kind = OPERATIONS.get(operation) if type(operation) is str else None
        if kind is not None:
            return _checked(kind, span)
    openinference = attributes.get(n.OI_KIND)
    if openinference is not None:
        return _openinference(openinference, span)
    if traceloop is not None:
        return TRACELOOP.get(traceloop, "other") if type(traceloop) is str else "other"
    method = attributes.get(n.MCP_METHOD)
    if method is not None:
        return "tool" if method == "tools/call" else "other"
    return _by_signs(span)


def _checked(kind: Kind, span: Span) -> Kind:
    """Correct an operation name by what else is on the span."""
    attributes = span.attributes
    if kind == "model":
        # a span that began as an agent's before another library wrote a model call over it keeps name and description
        if n.GEN_AI_AGENT_DESCRIPTION in attributes or span.name.startswith("invoke_agent"):
            return "agent"
    elif kind == "agent":
        if n.CREW_NAME in attributes or n.CREW_ID in attributes:
            return "other"
    elif kind == "tool":
        method = attributes.get(n.MCP_METHOD)
        if method is not None and method != "tools/call":
            return "other"
    return kind


def _openinference(value: Any, span: Span) -> Kind:
    attributes = span.attributes
    kind = OPENINFERENCE.get(value.upper(), "other") if type(value) is str else "other"
    if kind == "other":
        if value != "CHAIN":
            return "other"
        is_agent = _is_langchain_agent(attributes, span.name) or _AGENT_RUN.fullmatch(span.name) is not None
        return "agent" if is_agent else "other"
    if kind == "model":
        # a method around the real call names its model but has neither tokens nor messages of its own
        is_call = n.OI_MODEL not in attributes or any(sign in attributes for sign in _MODEL_SIGNS)
        return "model" if is_call else "other"
    if kind == "agent":
        if not any(key in attributes for key in AGENT_NAME) and not any(key in attributes for key in _CONTENT_SIGNS):
            return "other"  # the wrapper around a whole trace bears nothing but its kind
        node = _find(_LANGGRAPH_NODE, attributes.get(n.OI_METADATA))
        if node == _GENERIC_NODE and span.name == node and langchain_agent(attributes) is None:
            return "other"  # a graph node that asks the model, once a turn
    return kind


def _by_signs(span: Span) -> Kind:
    """Decide for spans that name neither operation nor kind."""
    kind = HAYSTACK.get(span.name)
    if kind is not None:
        return kind
    attributes = span.attributes
    component = attributes.get(n.HAYSTACK_COMPONENT)
    if component is not None:
        return "model" if type(component) is str and component.endswith("Generator") else "other"
    if n.GEN_AI_TOOL_NAME in attributes or n.HAYSTACK_TOOL_NAME in attributes or n.ADK_TOOL_ARGUMENTS in attributes:
        return "tool"
    request = attributes.get(n.TL_REQUEST)
    if request is not None:
        return REQUESTS.get(request, "other") if type(request) is str else "other"
    if n.REQUEST_MODEL in attributes and (
        n.USAGE_INPUT in attributes
        or n.ADK_REQUEST in attributes
        or n.INPUT_MESSAGES in attributes
        or n.OUTPUT_MESSAGES in attributes
        or n.USAGE_PROMPT in attributes
    ):
        return "model"
    if n.PYDANTIC_AGENT in attributes and n.PYDANTIC_MODEL in attributes:
        return "agent"
    return "agent" if span.name.startswith(_ADK_AGENT) else "other"


def langchain_agent(attributes: Mapping[str, Any]) -> str | None:
    """Give the agent that LangChain notes in the metadata of every span beneath it."""
    return _find(_LANGCHAIN_AGENT, attributes.get(n.OI_METADATA)) or attributes.get(n.TL_AGENT)


def _is_langchain_agent(attributes: Mapping[str, Any], name: Any) -> bool:
    return name is not None and langchain_agent(attributes) == name


def _find(pattern: re.Pattern[str], text: Any) -> str | None:
    found = pattern.search(text) if type(text) is str else None
    return found[1] if found is not None else None


def _is_inside_mcp_server(attributes: Mapping[str, Any]) -> bool:
    """Tell the server's own view of a call from the client's, which is not nested with it and shares no call id."""
    workflow = attributes.get(n.TL_WORKFLOW)
    return type(workflow) is str and workflow.endswith(".mcp")


def agent_from_span(name: str) -> str | None:
    """Take an agent's name out of a span name: ``support_agent.run``, ``invoke_agent worker``, ``worker.agent``."""
    name = name.removeprefix("invoke_agent").removeprefix(_ADK_AGENT).removesuffix("]").removesuffix(".agent").strip()
    method = _RUN_METHOD.fullmatch(name)
    return (method[1] if method else name) or None

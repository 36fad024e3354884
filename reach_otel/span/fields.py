"""List, for every field of a step, the attributes it may stand in, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from reach_otel import names as n

REDACTED: Final = "__REDACTED__"
NOT_SPECIFIED: Final = "<not specified>"  # what ADK writes for the id and the result of a call that raised
UNSPECIFIED: Final = frozenset(("", NOT_SPECIFIED, "N/A", "unknown", "None"))

Sources = tuple[str, ...]

AGENT_NAME: Sources = (
    n.GEN_AI_AGENT_NAME,
    n.OI_AGENT_NAME,
    n.OI_NODE_NAME,
    n.OI_NODE_ID,
    n.PYDANTIC_AGENT,
    n.CREW_ROLE,
)
AGENT_OF_STEP: Sources = (n.GEN_AI_AGENT_NAME, n.OI_AGENT_NAME, n.TL_AGENT, n.PYDANTIC_AGENT)
TOOL_NAME: Sources = (n.GEN_AI_TOOL_NAME, n.OI_TOOL_NAME, n.HAYSTACK_TOOL_NAME, n.TL_ENTITY, n.MCP_TOOL_NAME)
TOOL_CALL_ID: Sources = (n.GEN_AI_TOOL_CALL_ID, n.OI_TOOL_ID, n.OI_TOOL_CALL_ID, n.OI_TOOL_CALL_ID_OLD)
TOOL_ARGUMENTS: Sources = (
    n.GEN_AI_TOOL_ARGUMENTS,
    n.OI_INPUT,
    n.TL_INPUT,
    n.PYDANTIC_ARGUMENTS,
    n.ADK_TOOL_ARGUMENTS,
    n.HAYSTACK_TOOL_INPUT,
)
TOOL_RESULT: Sources = (
    n.GEN_AI_TOOL_RESULT,
    n.OI_OUTPUT,
    n.TL_OUTPUT,
    n.PYDANTIC_RESULT,
    n.ADK_TOOL_RESPONSE,
    n.HAYSTACK_TOOL_OUTPUT,
)
QUERY: Sources = (n.RETRIEVAL_QUERY, *TOOL_ARGUMENTS)
DOCUMENTS: Sources = (n.RETRIEVAL_DOCUMENTS, *TOOL_RESULT)
CONVERSATION: Sources = (n.CONVERSATION_ID, n.OI_SESSION, n.TL_THREAD, n.TL_SESSION, n.ADK_SESSION)
WORKFLOW: Sources = (n.GEN_AI_WORKFLOW_NAME, n.TL_WORKFLOW, n.CREW_NAME)
MODEL: Sources = (n.REQUEST_MODEL, n.RESPONSE_MODEL, n.OI_MODEL, n.PYDANTIC_MODEL)

TOKENS_INPUT: Sources = (n.USAGE_INPUT, n.OI_PROMPT, n.USAGE_PROMPT, n.AGGREGATED_INPUT)
TOKENS_OUTPUT: Sources = (n.USAGE_OUTPUT, n.OI_COMPLETION, n.USAGE_COMPLETION, n.AGGREGATED_OUTPUT)
TOKENS_CACHED: Sources = (n.USAGE_CACHED, n.OI_CACHED, n.USAGE_CACHED_OLD, n.USAGE_CACHED_DETAIL, n.AGGREGATED_CACHED)
TOKENS_REASONING: Sources = (
    n.USAGE_REASONING,
    n.OI_REASONING,
    n.USAGE_REASONING_OLD,
    n.USAGE_REASONING_DETAIL,
    n.AGGREGATED_REASONING,
)

INPUT_MESSAGES: Sources = (n.INPUT_MESSAGES, n.HAYSTACK_LLM_INPUT, n.HAYSTACK_COMPONENT_INPUT, n.ADK_REQUEST)
OUTPUT_MESSAGES: Sources = (n.OUTPUT_MESSAGES, n.HAYSTACK_LLM_OUTPUT, n.HAYSTACK_COMPONENT_OUTPUT, n.ADK_RESPONSE)
AGENT_INPUT: Sources = (n.OI_INPUT, n.TL_INPUT, n.HAYSTACK_AGENT_INPUT)
AGENT_OUTPUT: Sources = (n.PYDANTIC_FINAL, n.OI_OUTPUT, n.TL_OUTPUT, n.HAYSTACK_AGENT_OUTPUT)
AGENT_HISTORY: Sources = (n.PYDANTIC_MESSAGES, n.PYDANTIC_MESSAGES_OLD)

FAILURE_FLAGS: tuple[tuple[str, frozenset[Any]], ...] = (
    (n.HAYSTACK_TOOL_ERROR, frozenset((True, "true", "True"))),
    (n.GEN_AI_TOOL_STATUS, frozenset(("error", "failure", "failed"))),
    (n.OI_TOOL_STATUS, frozenset(("error", "failure", "failed"))),
    (n.GEN_AI_TASK_STATUS, frozenset(("failure", "error", "failed"))),
)
"""Attributes that say by one of these values that a tool call failed."""

PLACEHOLDER_AGENTS = frozenset(("OpenAI Agent", "strands_agent"))
"""Names that an instrumentation writes on every span, whichever agent it belongs to."""


def first(attributes: Mapping[str, Any], sources: Sources) -> Any:
    """Give the first value that is there and not blotted out, else ``None``."""
    for key in sources:
        value = attributes.get(key)
        if value is not None and value != REDACTED:
            return value
    return None


def first_text(attributes: Mapping[str, Any], sources: Sources) -> str | None:
    """Give the first value that is text and says something."""
    for key in sources:
        value = attributes.get(key)
        if type(value) is str and value not in UNSPECIFIED and value != REDACTED:
            return value
    return None

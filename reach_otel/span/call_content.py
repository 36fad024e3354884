"""Find the arguments, the result and the id of a tool call, wherever its span keeps them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from reach_otel import names as n
from reach_otel.span import unwrap
from reach_otel.span.conversation import TEXT_CHARS_MAX, Conversation, final_text
from reach_otel.span.fields import (
    DOCUMENTS,
    NOT_SPECIFIED,
    QUERY,
    REDACTED,
    TOOL_ARGUMENTS,
    TOOL_CALL_ID,
    TOOL_RESULT,
    first,
    first_text,
)
from reach_otel.span.indexed import read_documents
from reach_otel.span.messages import read
from reach_otel.span.record import Span

_CALL_ID = re.compile(r'"tool_call_id": ?"([^"\\]+)"')


class CallContent(Struct, gc=False):
    """Raw arguments and result (``None``: not told) and the id of one call."""

    args: Any = None
    result: Any = None
    call_id: str | None = None


def of_call(span: Span) -> CallContent:
    """Look into attributes first, then into messages in events or on the span itself."""
    attributes = span.attributes
    found = CallContent(
        first(attributes, TOOL_ARGUMENTS), first(attributes, TOOL_RESULT), first_text(attributes, TOOL_CALL_ID)
    )
    if found.args is None:
        found.args = _ambiguous_parameters(attributes)
    if found.args is None or found.result is None:
        for event in span.events:
            _from_event(event.name, event.attributes, found)
        _from_messages(attributes, found)
    return found


def of_retrieval(span: Span) -> CallContent:
    """Take the query as arguments and the documents as result."""
    attributes = span.attributes
    result = first(attributes, DOCUMENTS)
    return CallContent(
        first(attributes, QUERY),
        read_documents(attributes) if result is None else result,
        first_text(attributes, TOOL_CALL_ID),
    )


def outcome_of(found: CallContent, attributes: Mapping[str, Any]) -> unwrap.Outcome | None:
    """Unwrap the result, if any; ADK and OpenLLMetry's MCP client put what is no object under ``result``."""
    if found.result is None:
        return None
    wraps = n.ADK_EVENT in attributes or n.ADK_TOOL_RESPONSE in attributes or n.TL_OUTPUT in attributes
    outcome = unwrap.result(found.result, sole_result=wraps)
    if outcome.value == NOT_SPECIFIED:
        found.result = None
        return None
    return outcome


def id_inside(raw_args: Any) -> str | None:
    """Find the call id that LangChain's callback payload holds beside the arguments."""
    found = _CALL_ID.search(raw_args) if type(raw_args) is str and "tool_call_id" in raw_args else None
    return found[1] if found is not None else None


def final_output(args: Any, result: Any) -> str | None:
    """Give what a pseudo-tool hands over: its answer argument, else its result, else its bare argument."""
    said = final_text(args) if isinstance(args, dict) else None
    if said is None:
        said = result if type(result) is str else final_text(result) or final_text(args)
    return said[:TEXT_CHARS_MAX] if said else None


def _ambiguous_parameters(attributes: Mapping[str, Any]) -> Any:
    """``tool.parameters`` holds the arguments in some libraries and the schema in others: take it unless a schema."""
    raw = attributes.get(n.OI_TOOL_PARAMETERS)
    if type(raw) is not str or raw == REDACTED:
        return None
    value = unwrap.arguments(raw)
    if not isinstance(value, dict) or "properties" in value:
        return None
    if value and all(isinstance(item, dict) and "type" in item for item in value.values()):
        return None
    return value


def _from_event(name: str, held: Mapping[str, Any], found: CallContent) -> None:
    if name == n.EVENT_TOOL:
        found.args = held.get("content") if found.args is None else found.args
    elif name == n.EVENT_CHOICE:
        found.result = held.get("message") if found.result is None else found.result
    else:
        _from_messages(held, found)
        return
    call_id = held.get("id")
    if found.call_id is None and type(call_id) is str and call_id:
        found.call_id = call_id


def _from_messages(held: Mapping[str, Any], found: CallContent) -> None:
    """Find them in the call and the response that a tool span keeps as messages of its own."""
    if found.args is None and n.INPUT_MESSAGES in held:
        aside = Conversation()
        read(held[n.INPUT_MESSAGES], aside, output=True, role="assistant")
        if aside.calls:
            found.args, found.call_id = aside.calls[0].args, found.call_id or aside.calls[0].id
    if found.result is None and n.OUTPUT_MESSAGES in held:
        aside = Conversation()
        read(held[n.OUTPUT_MESSAGES], aside, output=False, role="tool")
        if aside.answers:
            found.result, found.call_id = aside.answers[0].result, found.call_id or aside.answers[0].call_id

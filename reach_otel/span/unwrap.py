"""Take arguments and results out of the wrappings that frameworks put around them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from reach_otel.span.value import is_half_json, is_opaque, parse

_PARENT = "__parent__"
"""Where a LangGraph command goes that leaves the agent."""

UNWRAP_MAX = 8
"""More layers than this are no wrapping."""


class Outcome(Struct, gc=False):
    """What a wrapped result turned out to hold: the value, and what its wrapping said about the call."""

    value: Any = None
    call_id: str | None = None
    failed: bool = False
    goto: str | None = None  # the agent that a returned command hands over to
    cut: bool = False


def arguments(raw: Any) -> Any:
    """Give the arguments of a call as the tool got them, parsed and without wrapping.

    Known shapes: an object, JSON in a string (also twice), a Python repr, ``{"args": …, "kwargs": …}``, a LangChain
    callback payload, a LangChain tool call, ``{"tool_name": …, "arguments": …}``, and a bare value. Anything else is
    given as it is.
    """
    value = raw
    for _ in range(UNWRAP_MAX):
        if type(value) is str:
            parsed = parse(value)
            if type(parsed) is str:
                return parsed
            value = parsed
        if not isinstance(value, dict):
            return value
        inner = _inner_arguments(value)
        if inner is value:
            return _without_objects(value)
        value = inner
    return value


def _inner_arguments(value: dict[str, Any]) -> Any:
    """Take one wrapping off; give the same object when there is none."""
    if value.keys().isdisjoint(_ARGUMENT_WRAPPERS):
        return value
    kwargs = value.get("kwargs")
    if isinstance(kwargs, dict):
        if "inputs" in value and "input_str" in value:  # LangChain callback payload
            return value["inputs"] if value["inputs"] is not None else value["input_str"]
        if value.keys() <= _CALL_KEYS:
            positional = value.get("args")
            if kwargs or not positional:
                return kwargs
            return positional[0] if isinstance(positional, list) and len(positional) == 1 else positional
        if "input_str" in value:
            return value["input_str"]
    inner = value.get("arguments", value.get("args"))
    if inner is not None and ("tool_name" in value or "name" in value) and value.keys() <= _TOOL_CALL_KEYS:
        return inner
    return value


_ARGUMENT_WRAPPERS = frozenset(("kwargs", "arguments", "args"))
_CALL_KEYS = frozenset(("args", "kwargs", "sanitize_inputs_outputs"))
_TOOL_CALL_KEYS = frozenset(("tool_name", "name", "arguments", "args", "id", "type", "extra", "meta", "_meta", "task"))


def _without_objects(value: dict[str, Any]) -> dict[str, Any]:
    """Leave out run-time objects (contexts, callbacks) that were passed beside the real arguments."""
    for item in value.values():
        if type(item) is str and item[:1] == "<" and is_opaque(item):
            return {key: item for key, item in value.items() if not is_opaque(item)}
    return value


def result(raw: Any, *, sole_result: bool = False) -> Outcome:
    """Give the result of a call as the tool returned it, parsed and without wrapping.

    ``sole_result`` says that the framework itself wraps what is no object as ``{"result": …}``.
    """
    outcome = Outcome()
    value = raw
    for _ in range(UNWRAP_MAX):
        if type(value) is str:
            parsed = parse(value)
            if type(parsed) is str:
                outcome.value = parsed
                outcome.cut = is_half_json(parsed)
                return outcome
            value = parsed
        if isinstance(value, dict):
            inner = _inner_result(value, outcome, sole_result)
        elif isinstance(value, list) and value:
            inner = _inner_list(value, outcome)
        else:
            break
        if inner is value:
            break
        value = inner
    outcome.value = value
    return outcome


def _inner_result(value: dict[str, Any], outcome: Outcome, sole_result: bool) -> Any:
    """Take one wrapping off; give the same object when there is none."""
    if sole_result and len(value) == 1 and "result" in value:
        return value["result"]
    if value.keys().isdisjoint(_WRAPPER_KEYS):
        return value
    for key, unwrap in _WRAPPERS:
        if key in value:
            inner = unwrap(value, outcome)
            if inner is not value:
                return inner
    return value


def _langchain_message(value: dict[str, Any], outcome: Outcome) -> Any:
    """Open LangChain's ``{"lc": 1, "kwargs": {…}}``, ``{"type": "tool", "data": {…}}`` or a dumped ``ToolMessage``."""
    message = value
    if "lc" in value and isinstance(value.get("kwargs"), dict):
        message = value["kwargs"]
    elif isinstance(value.get("data"), dict) and value.get("type") in ("tool", "ToolMessage"):
        message = value["data"]
    if "content" not in message or (message.get("type") != "tool" and "tool_call_id" not in message):
        return value
    call_id = message.get("tool_call_id")
    if isinstance(call_id, str):
        outcome.call_id = call_id
    outcome.failed = outcome.failed or message.get("status") == "error"
    return message["content"]


def _command(value: dict[str, Any], outcome: Outcome) -> Any:
    """Open a LangGraph ``Command``: it steers; the message for the called tool, if any, is among its updates."""
    if "goto" not in value or "update" not in value:
        return value
    goto, update = value["goto"], value["update"]
    messages = update.get("messages") if isinstance(update, dict) else None
    told: Any = update
    for message in messages if isinstance(messages, list) else ():
        inner = _langchain_message(message, outcome) if isinstance(message, dict) else message
        told = told if inner is message else inner
    if isinstance(goto, str) and goto and value.get("graph") == _PARENT:
        outcome.goto = goto
        return {"goto": goto}
    return told


def _callback_output(value: dict[str, Any], _: Outcome) -> Any:
    """Open ``{"output": …, "kwargs": {…}}`` of a LangChain callback."""
    return value["output"] if "output" in value and value.keys() <= _CALLBACK_KEYS and len(value) > 1 else value


def _function_response(value: dict[str, Any], outcome: Outcome) -> Any:
    """Open Gemini's ``{"id": …, "name": …, "response": {…}}``."""
    if not isinstance(value.get("response"), dict) or "name" not in value or not value.keys() <= _RESPONSE_KEYS:
        return value
    if isinstance(value.get("id"), str):
        outcome.call_id = value["id"]
    response = value["response"]
    return response["result"] if response.keys() == {"result"} else response


def _blocks(value: dict[str, Any], outcome: Outcome) -> Any:
    """Open LlamaIndex' ``ToolOutput``: what the tool returned stands beside its text."""
    if "blocks" not in value or not isinstance(value["blocks"], list):
        return value
    outcome.failed = outcome.failed or value.get("is_error") is True
    returned = value.get("raw_output")
    if isinstance(returned, dict | list | int | float) and not isinstance(returned, bool):
        return returned
    return value["blocks"] or returned


def _content(value: dict[str, Any], outcome: Outcome) -> Any:
    """Open MCP's ``CallToolResult`` and the like: content with an error flag, and perhaps the structure itself."""
    if not value.keys() <= _CONTENT_KEYS:
        return value
    if value.keys().isdisjoint(_CONTENT_MARKS) and not _are_parts(value.get("content")):
        return value
    outcome.failed = outcome.failed or value.get("isError") is True or value.get("is_error") is True
    outcome.failed = outcome.failed or value.get("status") == "error"
    call_id = value.get("toolUseId") or value.get("tool_use_id") or value.get("call_id")
    if isinstance(call_id, str):
        outcome.call_id = call_id
    structured = value.get("structuredContent", value.get("structured_content"))
    if isinstance(structured, dict):
        return structured["result"] if structured.keys() == {"result"} else structured
    return value.get("content", value)


def _are_parts(content: Any) -> bool:
    return (
        isinstance(content, list)
        and bool(content)
        and all(isinstance(item, dict) and "type" in item for item in content)
    )


def _part(value: dict[str, Any], _: Outcome) -> Any:
    """Open one content part on its own: ``{"type": "text", "text": …}``."""
    return value["text"] if "type" in value and _is_text_part(value) else value


def _is_text_part(part: dict[str, Any]) -> bool:
    return type(part.get("text")) is str and part.get("type", "text") in _TEXT_TYPES and part.keys() <= _PART_KEYS


def _named(value: dict[str, Any], outcome: Outcome) -> Any:
    """Open ``{"toolResult": {…}}`` of Bedrock, ``{"tool_call_result": {"result": …, "error": …}}`` of Haystack."""
    for key in ("toolResult", "tool_result", "tool_call_result"):
        inner = value.get(key)
        if isinstance(inner, dict) and len(value) == 1:
            if "origin" in inner and "result" in inner:
                outcome.failed = outcome.failed or inner.get("error") is True
                return inner["result"]
            return inner
    return value


def _flagged_result(value: dict[str, Any], outcome: Outcome) -> Any:
    """Open ``{"result": …, "is_error": …}`` of a client's wrapper."""
    if "result" not in value or not value.keys() <= _FLAGGED_KEYS or len(value) < 2:
        return value
    outcome.failed = outcome.failed or any(value.get(key) is True for key in ("is_error", "isError"))
    return value["result"]


_WRAPPERS: tuple[tuple[str, Callable[[dict[str, Any], Outcome], Any]], ...] = (
    ("lc", _langchain_message),
    ("data", _langchain_message),
    ("tool_call_id", _langchain_message),
    ("goto", _command),
    ("output", _callback_output),
    ("response", _function_response),
    ("blocks", _blocks),
    ("content", _content),
    ("structuredContent", _content),
    ("structured_content", _content),
    ("text", _part),
    ("toolResult", _named),
    ("tool_result", _named),
    ("tool_call_result", _named),
    ("result", _flagged_result),
)
"""What a wrapping is known by, and how it is taken off; the first that fits is taken."""

_WRAPPER_KEYS = frozenset(key for key, _ in _WRAPPERS)
_CALLBACK_KEYS = frozenset(("output", "kwargs", "tags"))
_RESPONSE_KEYS = frozenset(("id", "name", "response", "will_continue", "willContinue", "scheduling", "parts"))
_CONTENT_MARKS = frozenset(
    "isError is_error structuredContent structured_content toolUseId tool_use_id call_id".split()
)
_CONTENT_KEYS = _CONTENT_MARKS | frozenset("content meta _meta annotations name type status".split())
_TEXT_TYPES = ("text", "output_text", "input_text")
_PART_KEYS = frozenset(("type", "text", "annotations", "meta", "_meta", "block_type", "citations", "cache_control"))
_FLAGGED_KEYS = frozenset(("result", "is_error", "isError"))


def _inner_list(value: list[Any], outcome: Outcome) -> Any:
    """Join a list of content parts into what they say; any other list is a result of its own."""
    texts: list[str] = []
    for item in value:
        if not isinstance(item, dict):
            return value
        if _is_text_part(item):
            texts.append(item["text"])
        elif len(value) == 1:
            if item.keys() == {"json"}:
                return item["json"]
            inner = _named(item, outcome)
            return inner if inner is not item else value
        else:
            return value
    return "\n".join(texts)

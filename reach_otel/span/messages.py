"""Read chat messages of any provider's or framework's shape into a conversation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reach_otel.span.conversation import ROLES, Conversation, Role, role_of, string
from reach_otel.span.standard import MESSAGES_MAX, read_standard
from reach_otel.span.value import is_object_repr, parse

_ENVELOPES = ("messages", "contents", "replies", "choices", "inputs", "outputs", "output", "input")
_CONTENT_KEYS = ("content", "blocks", "parts", "text")
_ANSWER_VALUES = ("response", "result", "output", "content")
_ITEMS = frozenset(("function_call", "function_call_output"))
_CALL_PARTS = frozenset(("tool_call", "tool_use", "function_call", "toolCall", "tool-call", "server_tool_call"))
_ANSWER_PARTS = frozenset(
    "tool_call_response tool_result function_call_output tool-result tool_response server_tool_call_response".split()
)
_SILENT_PARTS = frozenset(
    "reasoning thinking redacted_thinking image image_url blob uri file refusal audio input_image".split()
)
_KEYED_PARTS = (
    ("toolUse", True),
    ("tool_call", True),
    ("function_call", True),
    ("functionCall", True),
    ("toolResult", False),
    ("tool_call_result", False),
    ("function_response", False),
    ("functionResponse", False),
)
"""Parts that are told by the key under which they stand: Bedrock, Haystack, Gemini; True for a call."""

_ANSWER_KEYS = frozenset(("toolResult", "tool_use_id", "tool_call_result", "function_response", "functionResponse"))


def read(raw: Any, into: Conversation, *, output: bool, role: Role = "user") -> None:
    """Read a message, a list of messages, JSON text of either, or bare text (taken as said by ``role``)."""
    if type(raw) is str:
        if read_standard(raw, into, output=output):
            return
        raw = parse(raw)
    if isinstance(raw, dict) and "role" not in raw:
        raw = next((raw[key] for key in _ENVELOPES if isinstance(raw.get(key), list | dict) and raw[key]), raw)
    if isinstance(raw, dict):
        _message(raw, into, output, role)
    elif type(raw) is str:
        into.say(raw, role, output=output)
    elif isinstance(raw, list):
        for item in raw[-MESSAGES_MAX:]:
            if isinstance(item, dict):
                _message(item, into, output, role)
            elif isinstance(item, list):  # LangChain batches its prompts
                read(item, into, output=output, role=role)
            elif type(item) is str and not is_object_repr(item):
                into.say(item, role, output=output)


def read_instructions(raw: Any, into: Conversation) -> None:
    """Read system instructions: plain text, a list of parts, or JSON text of these."""
    if type(raw) is str:
        raw = parse(raw)
    if type(raw) is str:
        into.tell("system", raw)
        return
    if isinstance(raw, dict) and isinstance(raw.get("parts"), list):
        raw = raw["parts"]
    _say_parts(raw if isinstance(raw, list) else (raw,), "system", into, False)


def _message(message: dict[str, Any], into: Conversation, output: bool, default: Role) -> None:
    parts = message.get("parts")
    if type(parts) is list and "role" in message:  # OpenTelemetry, Gemini
        _say_parts(parts, role_of(message["role"], default), into, output)
        return
    message, said = _unpack(message)
    role = role_of(said, default)
    kind = message.get("type")
    if type(kind) is str and kind in _ITEMS:
        _part(message, into, output)
        return
    for call in _tool_calls(message):
        into.call(call, output=output)
    content = next((message[key] for key in _CONTENT_KEYS if message.get(key) is not None), None)
    if role == "tool" and not _answers_itself(content):
        if not output:
            into.answer(
                string(message, "tool_call_id", "call_id", "id"),
                string(message, "name", "tool_name"),
                content,
                failed=message.get("status") == "error" or message.get("is_error") is True,
            )
        return
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        _message({"role": content.get("role", said)} | content, into, output, role)
    elif type(content) is str:
        into.say(content, role, output=output)
    elif content is not None:
        _say_parts(content if isinstance(content, list) else (content,), role, into, output)
    if output and isinstance(message.get("meta"), dict):
        into.meta = message["meta"]


def _tool_calls(message: dict[str, Any]) -> list[Any]:
    calls = message.get("tool_calls")
    if not calls:
        extra = message.get("additional_kwargs")
        calls = extra.get("tool_calls") if isinstance(extra, dict) else None
    return calls if isinstance(calls, list) else []


def _say_parts(parts: Iterable[Any], role: Role, into: Conversation, output: bool) -> None:
    """Read the parts of one message; their texts together are what it says."""
    texts = [text for part in parts if (text := _part(part, into, output)) is not None]
    if texts:
        into.say("\n".join(texts), role, output=output)


def _unpack(message: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Open LangChain's serialised forms and the message inside a choice; give the message and its role as written."""
    for _ in range(4):
        if "role" in message:
            return message, message["role"]
        kwargs, data = message.get("kwargs"), message.get("data")
        if "lc" in message and isinstance(kwargs, dict):
            path = message.get("id")
            return kwargs, kwargs.get("type") or (path[-1] if isinstance(path, list) and path else None)
        if isinstance(data, dict) and "type" in message:
            return data, message["type"]
        inner = message.get("message")
        if not isinstance(inner, dict):
            break
        message = inner
    kind = message.get("type")
    return message, message.get("_role") or (kind if type(kind) is str and kind in ROLES else None)


def _answers_itself(content: Any) -> bool:
    """Tell whether the parts of a tool message name the call they answer, so that the message need not."""
    if isinstance(content, dict):
        content = content.get("parts")
    if not isinstance(content, list):
        return False
    return any(isinstance(part, dict) and not part.keys().isdisjoint(_ANSWER_KEYS) for part in content)


def _part(part: Any, into: Conversation, output: bool) -> str | None:
    """Read one part of a message; give its text, if it is one."""
    if not isinstance(part, dict):
        return part if type(part) is str else None
    kind = part.get("type")
    if type(kind) is str and kind != "text":
        if kind in _CALL_PARTS:
            into.call(part, output=output)
            return None
        if kind in _ANSWER_PARTS:
            if not output:
                _answer_part(part, into)
            return None
        if kind in _SILENT_PARTS:
            return None
    elif kind is None:
        for key, is_call in _KEYED_PARTS:
            inner = part.get(key)
            if isinstance(inner, dict):
                if is_call:
                    into.call(inner, output=output)
                elif not output:
                    _keyed_answer(inner, into)
                return None
    text = part.get("content") if type(part.get("content")) is str else part.get("text")
    return text if type(text) is str else None


def _answer_part(part: dict[str, Any], into: Conversation) -> None:
    into.answer(
        string(part, "tool_use_id", "tool_call_id", "call_id", "id"),
        string(part, "name"),
        next((part[key] for key in _ANSWER_VALUES if part.get(key) is not None), None),
        failed=part.get("is_error") is True,
    )


def _keyed_answer(inner: dict[str, Any], into: Conversation) -> None:
    """Read ``toolResult``, ``function_response`` and ``tool_call_result`` parts."""
    origin = inner.get("origin")
    named = origin if isinstance(origin, dict) else inner
    raw = next((inner[key] for key in _ANSWER_VALUES if key in inner), None)
    into.answer(
        string(named, "toolUseId", "id", "call_id"),
        string(named, "name", "tool_name"),
        raw["result"] if isinstance(raw, dict) and raw.keys() == {"result"} else raw,
        failed=inner.get("status") == "error" or inner.get("error") is True,
    )

"""Find what the model or agent of a span was told and said, wherever the span keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reach_otel import names as n
from reach_otel.span.conversation import TEXT_CHARS_MAX, Conversation, Role
from reach_otel.span.fields import AGENT_HISTORY, AGENT_INPUT, AGENT_OUTPUT, INPUT_MESSAGES, OUTPUT_MESSAGES, first
from reach_otel.span.indexed import read_indexed
from reach_otel.span.messages import read, read_instructions
from reach_otel.span.record import Event, Span
from reach_otel.span.value import is_object_repr, is_opaque, parse

EVENT_ROLES: dict[str, Role] = {n.EVENT_SYSTEM: "system", n.EVENT_USER: "user", n.EVENT_TOOL: "tool"}

_NUMBERED = (
    n.OI_INPUT_MESSAGES + "0.message.role",
    n.OI_OUTPUT_MESSAGES + "0.message.role",
    n.TL_PROMPT + "0.role",
    n.TL_COMPLETION + "0.role",
)
_GIVEN_KEYS = ("inputs", "kwargs", "messages", "task", "input", "prompt", "resume")
_FINAL_KEYS = ("raw", "content", "final_output", "final_answer", "answer", "output", "response", "result", "text")
_ANSWER_KEYS = frozenset(("toolResult", "function_response", "functionResponse"))


def of_model(span: Span) -> Conversation:
    """Read the messages of a model call: attributes, numbered attributes, span events, or the raw request and reply.

    A span of two dialects tells everything twice; only the first of these places that holds anything is read.
    """
    attributes = span.attributes
    into = Conversation()
    if of_structured(attributes, into):
        return into
    is_numbered = n.OI_KIND in attributes or any(key in attributes for key in _NUMBERED)
    if is_numbered and read_indexed(attributes, into):
        return into
    if span.events and of_events(span.events, into):
        return into
    if n.OI_KIND in attributes:
        read(first(attributes, (n.OI_INPUT,)), into, output=False)
        read(first(attributes, (n.OI_OUTPUT,)), into, output=True, role="assistant")
    return into


def of_agent(span: Span) -> Conversation:
    """Read what an agent was given and what it gave back; calls and results in its history are those of its models."""
    attributes = span.attributes
    into = Conversation()
    found = of_structured(attributes, into) or (bool(span.events) and of_events(span.events, into))
    if not found:
        history = first(attributes, AGENT_HISTORY)
        if history is not None:
            read(history, into, output=False)
        elif (given := first(attributes, AGENT_INPUT)) is not None:
            _read_given(given, into)
    said = first(attributes, AGENT_OUTPUT)
    if said is not None and (n.PYDANTIC_FINAL in attributes or not into.said):
        text = _final(said)
        into.said = [text.strip()[:TEXT_CHARS_MAX]] if text is not None else into.said
    if not into.said and n.OI_OUTPUT_MESSAGES + "0.message.role" in attributes:
        aside = Conversation()
        read_indexed(attributes, aside)
        into.said = aside.said
    return into


def of_structured(attributes: Mapping[str, Any], into: Conversation) -> bool:
    """Read messages of the new convention, JSON text or structure; tell whether any but instructions were there."""
    instructions = attributes.get(n.SYSTEM_INSTRUCTIONS)
    given, said = first(attributes, INPUT_MESSAGES), first(attributes, OUTPUT_MESSAGES)
    if instructions is None and given is not None and n.ADK_REQUEST in attributes:
        instructions = _instruction_of_request(given)
    if instructions is not None:
        read_instructions(instructions, into)
    if given is not None:
        read(given, into, output=False)
    if said is not None:
        read(said, into, output=True, role="assistant")
    return given is not None or said is not None


def _instruction_of_request(request: Any) -> Any:
    """Find the system prompt in the configuration of a Gemini request."""
    value = parse(request) if type(request) is str else request
    config = value.get("config") if isinstance(value, dict) else None
    return config.get("system_instruction") if isinstance(config, dict) else None


def of_events(events: tuple[Event, ...], into: Conversation) -> bool:
    """Read messages in span events, of the old convention (one a message) or the new (one event with all)."""
    found = False
    for event in events:
        name, held = event.name, event.attributes
        if name in EVENT_ROLES or name == n.EVENT_CHOICE:
            found = of_named(name, held, into) or found
        elif name == n.EVENT_PROMPT:
            read(held.get(n.EVENT_PROMPT_TEXT), into, output=False)
            found = True
        elif name == n.EVENT_COMPLETION:
            read(held.get(n.EVENT_COMPLETION_TEXT), into, output=True, role="assistant")
            found = True
        elif n.INPUT_MESSAGES in held or n.OUTPUT_MESSAGES in held:
            found = of_structured(held, into) or found
    return found


def of_named(name: str, fields: Mapping[str, Any], into: Conversation) -> bool:
    """Read one ``gen_ai.<role>.message`` or ``gen_ai.choice``, of which an event or a record's body has the fields."""
    if name == n.EVENT_CHOICE:
        _read_choice(fields, into)
        return True
    role = EVENT_ROLES.get(name)
    if role is None:
        return False
    original = fields.get("content")
    content = parse(original) if type(original) is str else original
    if role == "tool" and not _names_its_calls(content):
        read({**fields, "role": "tool", "content": content}, into, output=False)
    elif isinstance(content, list):
        read({"role": role, "content": content}, into, output=False)
    elif isinstance(content, dict) and isinstance(content.get("parts"), list):
        read({"role": role, **content}, into, output=False)
    elif type(original) is str:
        into.tell("system" if role == "system" else "user", original)
    return True


def _read_choice(fields: Mapping[str, Any], into: Conversation) -> None:
    message = fields.get("message", fields.get("content"))
    if type(message) is not str:
        read(dict(fields), into, output=True, role="assistant")
        return
    parts = parse(message)
    if isinstance(parts, list) and not any(isinstance(part, dict) and "role" in part for part in parts):
        read({"role": "assistant", "content": parts}, into, output=True)
    else:
        read(message, into, output=True, role="assistant")


def _names_its_calls(content: Any) -> bool:
    """Tell whether content is a list of parts that name the calls they answer."""
    if isinstance(content, dict):
        content = content.get("parts")
    return isinstance(content, list) and any(
        isinstance(part, dict) and not part.keys().isdisjoint(_ANSWER_KEYS) for part in content
    )


def _read_given(raw: Any, into: Conversation) -> None:
    """Read an agent's input: messages in whatever wrapping, a task in words, or the text as it stands."""
    value = parse(raw) if type(raw) is str else raw
    for _ in range(4):
        inner = next((value[key] for key in _GIVEN_KEYS if value.get(key)), None) if isinstance(value, dict) else None
        if inner is None:
            break
        value = inner
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        read(value, into, output=False)
        if into.texts:
            return
    if type(value) is str:
        into.tell("user", value)
    elif isinstance(value, list) or (isinstance(value, dict) and not _is_program_state(value)):
        into.tell("user", raw if type(raw) is str else str(raw))


def _is_program_state(value: dict[str, Any]) -> bool:
    """Tell whether an object holds run-time objects or steers a graph: that is no text which anybody told the agent."""
    if "goto" in value and "resume" in value:
        return True
    return any(type(item) is str and (is_opaque(item) or is_object_repr(item)) for item in value.values())


def _final(raw: Any) -> str | None:
    """Read an agent's output: the last words of its messages, the field that holds the answer, or the text itself."""
    value = parse(raw) if type(raw) is str else raw
    inner = value.get("outputs", value) if isinstance(value, dict) else value
    has_messages = isinstance(inner, dict) and isinstance(inner.get("messages"), list)
    if isinstance(inner, dict) and not has_messages:
        for key in _FINAL_KEYS:
            text = inner.get(key)
            if type(text) is str and text:
                return text
    if isinstance(inner, dict | list):
        aside = Conversation()
        read(inner, aside, output=True, role="assistant")
        if aside.said:
            return aside.said[-1]
        if has_messages or inner is not value:
            return None
    text = raw if type(raw) is str else str(raw)
    return None if is_object_repr(text) or not text.strip() else text

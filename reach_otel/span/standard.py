"""Read messages that are spelled by the book of OpenTelemetry, several times faster than those of unknown shape."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

from reach_otel.span.conversation import ROLES, Conversation, role_of

MESSAGES_MAX = 5_000
_BEGINNINGS = ('[{"role"', '[{"parts"')


class _Part(Struct, gc=False):
    """A part of a message, with the fields that matter in input messages."""

    type: Literal["text", "tool_call", "tool_call_response", "reasoning"]
    content: Any = None
    id: str | None = None
    name: str | None = None
    response: Any = None
    result: Any = None  # what pydantic-ai calls the response


class _Message(Struct, gc=False):
    role: str
    parts: list[_Part]


class _OutputPart(_Part, gc=False):
    arguments: Any = None


class _OutputMessage(Struct, gc=False):
    role: str
    parts: list[_OutputPart]


_decode_input = msgspec.json.Decoder(list[_Message]).decode
_decode_output = msgspec.json.Decoder(list[_OutputMessage]).decode


def read_standard(raw: str, into: Conversation, *, output: bool) -> bool:
    """Read the JSON text of a list of messages; says no, and leaves no trace, where it is spelled in another way."""
    if not raw.startswith(_BEGINNINGS):
        return False
    messages: list[_Message] | list[_OutputMessage]
    try:
        messages = _decode_output(raw) if output else _decode_input(raw)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    for message in messages[-MESSAGES_MAX:]:
        role = ROLES.get(message.role) or role_of(message.role)
        said: str | None = None
        for part in message.parts:
            kind = part.type
            if kind == "text":
                if type(part.content) is str:
                    said = part.content if said is None else f"{said}\n{part.content}"
            elif kind == "tool_call":
                if isinstance(part, _OutputPart):
                    if part.name:
                        into.new_call(part.name, part.id, part.arguments)
                elif part.id and part.name:
                    into.asked[part.id] = part.name
            elif kind == "tool_call_response" and not output:
                into.answer(part.id, part.name, part.result if part.response is None else part.response)
        if said is not None:
            into.say(said, role, output=output)
    return True

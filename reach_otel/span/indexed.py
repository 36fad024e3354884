"""Put messages together that are spread over numbered attributes (OpenInference, old OpenLLMetry)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from reach_otel.names import OI_DOCUMENTS, OI_INPUT_MESSAGES, OI_OUTPUT_MESSAGES, TL_COMPLETION, TL_PROMPT
from reach_otel.span.conversation import Conversation
from reach_otel.span.messages import read

_INPUT = (OI_INPUT_MESSAGES, TL_PROMPT)
_OUTPUT = (OI_OUTPUT_MESSAGES, TL_COMPLETION)
_LEAVES = {
    "tool_call.id": "id",
    "tool_call.function.name": "name",
    "tool_call.function.arguments": "arguments",
    "id": "id",
    "name": "name",
    "arguments": "arguments",
}
LAST = 1_000_000_000
"""Where a part goes whose number is none."""


class _Place(NamedTuple):
    """Where in which message an attribute belongs."""

    is_output: bool
    message: int
    what: Literal["field", "call", "piece"]
    part: int
    name: str


class _Message(Struct, gc=False):
    fields: dict[str, Any] = {}
    calls: dict[int, dict[str, Any]] = {}
    pieces: dict[int, Any] = {}


@lru_cache(maxsize=8192)
def _place(key: str) -> _Place | None:
    """Read the name of an attribute; the names are the same on every span, so each is read once."""
    for prefix in (*_INPUT, *_OUTPUT):
        if key.startswith(prefix):
            break
    else:
        return None
    is_output = prefix in _OUTPUT
    index, _, field = key[len(prefix) :].partition(".")
    field = field.removeprefix("message.")
    if field in ("role", "content", "tool_call_id", "name"):
        return _Place(is_output, _number(index), "field", 0, field)
    head, _, rest = field.partition(".")
    part, _, leaf = rest.partition(".")
    if head == "tool_calls" and leaf in _LEAVES:
        return _Place(is_output, _number(index), "call", _number(part), _LEAVES[leaf])
    if head == "content" or (head == "contents" and leaf == "message_content.text"):
        return _Place(is_output, _number(index), "piece", _number(part), "text")
    return None


def read_indexed(attributes: Mapping[str, Any], into: Conversation) -> bool:
    """Read all numbered message attributes in one pass; tell whether there were any."""
    inputs: dict[int, _Message] = {}
    outputs: dict[int, _Message] = {}
    for key, value in attributes.items():
        if key[:4] != "llm." and key[:7] != "gen_ai.":
            continue
        place = _place(key)
        if place is None:
            continue
        is_output, index, what, part, name = place
        table = outputs if is_output else inputs
        message = table.get(index)
        if message is None:
            message = table[index] = _Message()
        if what == "field":
            message.fields[name] = value
        elif what == "piece":
            message.pieces[part] = value
        elif is_output or name != "arguments":  # what an earlier message asked for was read when it was new
            call = message.calls.get(part)
            if call is None:
                call = message.calls[part] = {}
            call[name] = value
    for index in sorted(inputs):
        read(_plain(inputs[index]), into, output=False)
    for index in sorted(outputs):
        read(_plain(outputs[index]), into, output=True, role="assistant")
    return bool(inputs or outputs)


def _plain(message: _Message) -> dict[str, Any]:
    """Turn the collected pieces into one message of the usual shape."""
    fields = message.fields
    if message.calls:
        fields["tool_calls"] = [message.calls[part] for part in sorted(message.calls)]
    if message.pieces and not fields.get("content"):
        texts = [text for part in sorted(message.pieces) if isinstance(text := message.pieces[part], str)]
        fields["content"] = "\n".join(texts)
    return fields


def _number(index: str) -> int:
    return int(index) if index.isdecimal() and len(index) < 10 else LAST


def read_documents(attributes: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Collect retrieved documents (``retrieval.documents.{i}.document.{field}``); ``None`` when there are none."""
    documents: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if key.startswith(OI_DOCUMENTS):
            index, _, field = key[len(OI_DOCUMENTS) :].partition(".")
            documents.setdefault(_number(index), {})[field.removeprefix("document.")] = value
    return [documents[index] for index in sorted(documents)] or None

"""Collect what the messages of one span say: calls asked for, answers to calls, texts told, words said."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct

from reach_otel.span import unwrap
from reach_otel.span.errors_text import failed_by_structure, failed_by_text, reason_of
from reach_otel.span.step import Answer, Call, Text
from reach_otel.span.tool_name import tool_of, with_arguments
from reach_otel.span.value import is_object_repr, parse

Role = Literal["system", "user", "assistant", "tool"]

TEXT_CHARS_MAX = 65_536
REPEATED_CHARS_MAX = 4_096

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "systemmessage": "system",
    "user": "user",
    "human": "user",
    "humanmessage": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "aimessage": "assistant",
    "aimessagechunk": "assistant",
    "tool-call": "assistant",
    "tool": "tool",
    "function": "tool",
    "toolmessage": "tool",
    "tool-response": "tool",
}

_CALLING, _OBSERVED = "Calling tools:", "Observation:\n"
_FAILED, _RETRY = "Error:\n", "Now let's retry: take care not to repeat previous errors!"
"""What smolagents writes before the calls, the results and the failures of an earlier turn, as text."""

_QUOTING = "For context:"
_QUOTED = re.compile(r"^\[[^\]\n]+\] (?:said:|called tool |`[^`\n]+` tool returned)", re.MULTILINE)
"""How ADK quotes to one agent what another did, as a message of role user: nobody told it, no value in it is new."""

_ANSWER_ARGUMENTS = ("answer", "final_answer", "response", "output", "result", "text", "content")


def _is_observation(text: str) -> bool:
    """Tell whether smolagents gives a result under the role of a user, which model servers know better than its own."""
    return text.startswith(_OBSERVED) or (text.startswith(_FAILED) and _RETRY in text)


def role_of(value: Any, default: Role = "user") -> Role:
    """Read a role in any spelling: ``MessageRole.SYSTEM``, ``HumanMessage``, ``ai``."""
    if not isinstance(value, str):
        return default
    role = ROLES.get(value)
    return role if role is not None else ROLES.get(value.rpartition(".")[2].lower().replace("_", "-"), default)


class Conversation(Struct, gc=False):
    """What the messages of one span say.

    ``calls`` and ``said`` come from output messages; ``answers`` and ``texts`` from input messages.
    """

    calls: list[Call] = []
    answers: list[Answer] = []
    texts: list[Text] = []
    said: list[str] = []
    meta: dict[str, Any] = {}  # model and usage, where a framework keeps them inside its message
    asked: dict[str, str] = {}  # tool name by call id, of the calls in input messages that have no answer yet

    @property
    def output(self) -> str | None:
        """What the last message with text says."""
        return self.said[-1] if self.said else None

    def say(self, text: str, role: Role, *, output: bool) -> None:
        """Note the text of a message, if its role and side make it count."""
        if role == "assistant":
            if output:
                if text and not text.isspace() and text != '""' and not is_object_repr(text):
                    self.said.append(text[:TEXT_CHARS_MAX].strip())
            elif text.startswith(_CALLING):
                calls = parse(text.removeprefix(_CALLING).strip())
                for call in calls if isinstance(calls, list) else ():
                    self.call(call, output=False)
        elif role != "tool" and not output:
            if role == "user" and _is_observation(text):
                self.answer(None, None, text)
            else:
                self.tell(role, text)

    def tell(self, role: Literal["system", "user"], text: str) -> None:
        """Note something the model or agent was told."""
        if text and not text.isspace() and not (text.startswith(_QUOTING) and _QUOTED.search(text)):
            self.texts.append(Text(role, text[:TEXT_CHARS_MAX]))

    def call(self, raw: Any, *, output: bool) -> None:
        """Read a call: in an output message it is new; in an input message it says what a later answer belongs to."""
        if not isinstance(raw, dict):
            return
        function = raw.get("function")
        inner = function if isinstance(function, dict) else raw
        name = string(inner, "name", "tool_name", "toolName")
        if name is None:
            return
        is_item = raw.get("type") == "function_call"  # whose own id is not the call's
        call_id = string(raw, *(("call_id", "id") if is_item else ("id", "call_id", "toolUseId", "tool_id")))
        if output:
            given = next((inner[key] for key in _CALL_ARGUMENTS if key in inner), None)
            self.new_call(name, call_id, given)
        elif call_id is not None:
            self.asked[call_id] = name

    def new_call(self, name: str, call_id: str | None, raw_args: Any) -> None:
        """Note a call that the model asks for; one to a pseudo-tool is rather its answer."""
        args = unwrap.arguments(raw_args) if raw_args is not None else None
        tool = with_arguments(tool_of(name), args)
        if tool.kind == "pseudo":
            if text := final_text(args):
                self.said.append(text)
            return
        new = Call(tool.name, call_id, args, "handoff" if tool.kind == "handoff" else "tool")
        if call_id is not None:
            for place, known in enumerate(self.calls):
                if known.id == call_id and known.tool == new.tool:  # streamed: each message holds more of the same call
                    self.calls[place] = new
                    return
        self.calls.append(new)

    def answer(self, call_id: str | None, tool: str | None, raw: Any, *, failed: bool = False) -> None:
        """Note the result of an earlier call; one without an id answers the oldest open call (of its tool)."""
        asked = self.asked
        if call_id is not None:
            tool = asked.pop(call_id, None) or tool
            if type(raw) is str and len(raw) <= REPEATED_CHARS_MAX and not failed:
                self.answers.append(_repeated(call_id, tool, raw))
                return
        answer = _settle(call_id, tool, raw)
        if answer.call_id is None:
            call_id = next((open_id for open_id, name in asked.items() if tool is None or name == tool), None)
            if call_id is not None:
                name = asked.pop(call_id)
                answer = Answer(call_id, tool_of(name).name, answer.result, answer.ok, answer.error)
        if failed and answer.ok:
            answer = Answer(answer.call_id, answer.tool, answer.result, False, reason_of(answer.result))
        self.answers.append(answer)


_CALL_ARGUMENTS = ("arguments", "args", "input", "parameters", "tool_kwargs")


def _settle(call_id: str | None, tool: str | None, raw: Any) -> Answer:
    """Unwrap an answer, and say whether the call went well."""
    outcome = unwrap.result(raw)
    value = outcome.value
    if type(value) is str and value.startswith(_OBSERVED):
        value = unwrap.result(value.removeprefix(_OBSERVED).strip()).value
    by_text = type(value) is str and not outcome.failed and failed_by_text(value)
    failed = outcome.failed or by_text or (type(value) is not str and failed_by_structure(value))
    return Answer(
        call_id or outcome.call_id,
        tool_of(tool).name if tool else None,
        value,
        not failed,
        reason_of(value) if failed else None,
        by_text,
    )


_repeated = lru_cache(maxsize=2048)(_settle)
"""Each model call repeats the answers of all earlier ones: the same one need be neither parsed nor kept twice."""


def final_text(args: Any) -> str | None:
    """Give the answer that stands in the arguments of a pseudo-tool."""
    if isinstance(args, dict):
        return string(args, *_ANSWER_ARGUMENTS)
    return args[:TEXT_CHARS_MAX] if isinstance(args, str) and args else None


def string(mapping: dict[str, Any], *keys: str) -> str | None:
    """Give the first value that is text and not empty."""
    for key in keys:
        value = mapping.get(key)
        if type(value) is str and value:
            return value
    return None

"""Hold one normalised span: the only form in which the engine sees the world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

Kind = Literal["agent", "model", "tool", "plan", "handoff", "retrieval", "other", "content"]
"""Kinds of SPEC section 2; ``content`` is the text of a model step that came apart from it, in a log record."""


class Call(Struct, frozen=True, gc=False):
    """A tool call as a model asked for it, in its output message."""

    tool: str
    id: str | None = None
    args: Any = None
    kind: Literal["tool", "handoff", "retrieval"] = "tool"


class Answer(Struct, frozen=True, gc=False):
    """The result of an earlier tool call as it was given back to a model, in its input messages."""

    call_id: str | None = None
    tool: str | None = None
    result: Any = None
    ok: bool = True
    error: str | None = None
    by_text: bool = False  # failed, but only by the words of its result: a task may judge otherwise


class Text(Struct, frozen=True, gc=False):
    """Something a model or agent was told by the user or by its system prompt."""

    role: Literal["system", "user"]
    text: str


class Tokens(Struct, frozen=True, gc=False):
    """Token counts of one model call (or, on an agent step, their repeated sum)."""

    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0


class Step(Struct, frozen=True, gc=False):
    """One normalised span.

    Times are Unix nanoseconds. ``args`` and ``result`` are parsed values (JSON in JSON is unwrapped) or text;
    ``None`` means absent. ``has_args`` / ``has_result`` tell an absent value from a null one. ``tokens`` on an agent
    step repeats the sum of its model steps and counts only when these carry none.
    """

    kind: Kind
    trace_id: str
    span_id: str
    start_ns: int
    end_ns: int
    parent_id: str | None = None
    parent_remote: bool | None = None  # None: the sender did not say
    name: str = ""  # span name, bounded; for people, never for deciding
    agent: str | None = None  # agent: its own name; else the agent named on the span itself, if any
    tool: str | None = None  # tool, retrieval, handoff
    call_id: str | None = None
    to_agent: str | None = None  # handoff: the receiver, where it is told
    args: Any = None
    result: Any = None
    has_args: bool = False
    has_result: bool = False
    ok: bool = True
    error: str | None = None  # first line of the error text, bounded
    calls: tuple[Call, ...] = ()  # model: what it asked for; pseudo-tools left out
    answers: tuple[Answer, ...] = ()  # model: results in its input messages
    texts: tuple[Text, ...] = ()  # agent, model: user and system texts it was given
    output: str | None = None  # agent, model: the text it gave; absent while it only asks for tools
    plan: Any = None  # plan: list of planned steps
    model: str | None = None
    tokens: Tokens | None = None
    cut: bool = False  # result said to be truncated, or JSON cut in half by the tool itself
    run_id: str | None = None  # set by an explicit run
    conversation_id: str | None = None
    task: str | None = None  # reach.task on span or resource
    variant: str | None = None  # reach.variant
    workflow: str | None = None
    service: str | None = None
    service_version: str | None = None
    attributes: Mapping[str, Any] | None = None  # kept only where a task's conditions ask for them
    by_text: bool = False  # tool: failed, but only by the words of its result: a task may judge otherwise
    masked: int = 0  # values that a Collector's redaction processor masked on the span, by its own summary
    sampled: bool | None = None  # None: the sender did not say
    variant_on_span: bool = False  # the span alone names the variant: its resource says another one, or none


ACTION_KINDS = frozenset(("tool", "handoff", "retrieval"))
"""Kinds of step by which an agent acts."""

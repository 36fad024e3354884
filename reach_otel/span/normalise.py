"""Turn foreign spans and log records into steps, one at a time and each on its own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from reach_otel import names as n
from reach_otel.span import content, unwrap
from reach_otel.span.call_content import final_output, id_inside, of_call, of_retrieval, outcome_of
from reach_otel.span.conversation import Conversation
from reach_otel.span.errors_text import DEFAULT_PATTERNS
from reach_otel.span.fields import (
    AGENT_NAME,
    AGENT_OF_STEP,
    CONVERSATION,
    MODEL,
    PLACEHOLDER_AGENTS,
    TOOL_NAME,
    UNSPECIFIED,
    WORKFLOW,
    first,
    first_text,
)
from reach_otel.span.health import Patterns, health_of, health_of_call
from reach_otel.span.kinds import agent_from_span, kind_of, langchain_agent
from reach_otel.span.masked import masked_of, masked_of_log
from reach_otel.span.record import STATUS_ERROR, LogRecord, Span, trimmed
from reach_otel.span.step import Kind, Step, Tokens
from reach_otel.span.tool_name import Tool, name_from_span, tool_of, with_arguments
from reach_otel.span.usage import tokens_of


def normalise(
    span: Span, *, keep_attributes: bool = False, error_patterns: Patterns = DEFAULT_PATTERNS
) -> tuple[Step, ...]:
    """Give the step that a span is; a wrapper or a span of something else is one of kind ``other``, for the tree.

    Looks at this span alone and never raises. ``keep_attributes`` keeps the raw attributes for conditions that ask for
    them; ``error_patterns`` are those by which a result that is bare text is a failure. A span that this package sent
    about a run is no part of one and gives nothing.
    """
    if span.scope == n.EVALUATION_SCOPE and span.name == n.EVALUATE_SPAN:
        return ()
    kind = kind_of(span)
    try:
        if kind == "model":
            return (_model(span, keep_attributes),)
        if kind == "agent":
            return (_agent(span, keep_attributes),)
        if kind in _CALLS:
            return (_call(span, kind, keep_attributes, error_patterns),)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, RecursionError):
        # Whatever a sender puts into a span, the tree must keep its node; tests that try everything hold this unused.
        kind = "other"
    return (_other(span, kind, keep_attributes),)


_CALLS = frozenset(("tool", "handoff", "retrieval"))


def normalise_log(record: LogRecord) -> tuple[Step, ...]:
    """Give the messages in a log record as a step of kind ``content``, whose parent is their span; else nothing."""
    if record.scope == n.EVALUATION_SCOPE and record.name == n.EVALUATION_RESULT_EVENT:
        return ()  # our own
    said = Conversation()
    if not _read_log(record, said) or not (said.calls or said.answers or said.texts or said.said):
        return ()
    resource = record.resource
    identity = (record.name, record.time_ns, record.attributes, record.body)
    digest = hashlib.blake2b(msgspec.json.encode(identity, enc_hook=str, order="sorted"), digest_size=6).hexdigest()
    step = Step(
        kind="content",
        trace_id=record.trace_id,
        span_id=f"{record.span_id}#{digest}",
        parent_id=record.span_id,
        start_ns=record.time_ns,
        end_ns=record.time_ns,
        name=record.name,
        agent=first_text(record.attributes, AGENT_OF_STEP),
        calls=tuple(said.calls),
        answers=tuple(said.answers),
        texts=tuple(said.texts),
        output=said.output,
        conversation_id=first_text(record.attributes, CONVERSATION),
        service=resource.service,
        service_version=resource.service_version,
        masked=masked_of_log(record),
    )
    return (step,)


def _read_log(record: LogRecord, into: Conversation) -> bool:
    """Read a record of the new convention (all messages, in attributes or body) or of the old (one, in the body)."""
    body = record.body
    held = body if isinstance(body, dict) else {} if body is None else {"content": body}
    for place in (record.attributes, held):
        if n.INPUT_MESSAGES in place or n.OUTPUT_MESSAGES in place:
            return content.of_structured(place, into)
    return content.of_named(record.name, held, into)


def _call(span: Span, kind: Kind, keep_attributes: bool, patterns: Patterns) -> Step:
    """Make a tool, handoff or retrieval step; a pseudo-tool or a call that was put off is of kind ``other``."""
    attributes = span.attributes
    found = of_retrieval(span) if kind == "retrieval" else of_call(span)
    args = unwrap.arguments(found.args) if found.args is not None else None
    outcome = outcome_of(found, attributes)
    tool = with_arguments(_tool_named(span, kind), args)
    health = health_of_call(span, outcome, patterns)
    ok, error, to_agent, output = health.ok, health.error, None, None
    if outcome is None:
        outcome = _NOTHING
    if tool.kind == "pseudo":
        kind, output = "other", final_output(args, outcome.value)
    elif health.steering == "pause":
        kind = "other"  # it did not happen: it runs again, in another trace
    elif kind == "handoff" or tool.kind == "handoff" or outcome.goto is not None:
        kind, to_agent = "handoff", outcome.goto or _named(attributes.get(n.HANDOFF_TO)) or tool.to_agent
    return _step(
        span,
        kind,
        keep_attributes,
        _agent_of_step(attributes),
        tool.name,
        found.call_id or outcome.call_id or id_inside(found.args),
        to_agent,
        args,
        outcome.value,
        found.args is not None,
        found.result is not None,
        ok,
        error,
        output=output,
        cut=outcome.cut,
        by_text=health.by_text,
    )


_NOTHING = unwrap.Outcome()


def _model(span: Span, keep_attributes: bool) -> Step:
    attributes = span.attributes
    said = content.of_model(span)
    health = health_of(span)
    return _step(
        span,
        "model",
        keep_attributes,
        _agent_of_step(attributes),
        ok=health.ok,
        error=health.error,
        said=said,
        model=first_text(attributes, MODEL) or _named(said.meta.get("model")),
        tokens=tokens_of(attributes, said.meta.get("usage")),
    )


def _agent(span: Span, keep_attributes: bool) -> Step:
    attributes = span.attributes
    health = health_of(span)
    return _step(
        span,
        "agent",
        keep_attributes,
        _agent_name(span),
        ok=health.ok,
        error=health.error,
        said=content.of_agent(span),
        model=first_text(attributes, MODEL),
        tokens=tokens_of(attributes),
    )


def _other(span: Span, kind: Kind, keep_attributes: bool) -> Step:
    attributes = span.attributes
    if kind == "plan":
        raw = first(attributes, (n.REACH_PLAN, n.OUTPUT_MESSAGES, n.OI_OUTPUT))
        plan = unwrap.result(raw).value if raw is not None else None
        return _step(span, "plan", keep_attributes, _agent_of_step(attributes), plan=plan)
    workflow = span.name if attributes.get(n.OI_KIND) == "AGENT" else None  # the wrapper of a trace is named after it
    return _step(span, "other", keep_attributes, ok=span.status != STATUS_ERROR, workflow=workflow)


def _step(
    span: Span,
    kind: Kind,
    keep_attributes: bool,
    agent: str | None = None,
    tool: str | None = None,
    call_id: str | None = None,
    to_agent: str | None = None,
    args: Any = None,
    result: Any = None,
    has_args: bool = False,
    has_result: bool = False,
    ok: bool = True,
    error: str | None = None,
    said: Conversation | None = None,
    output: str | None = None,
    plan: Any = None,
    model: str | None = None,
    tokens: Tokens | None = None,
    cut: bool = False,
    workflow: str | None = None,
    by_text: bool = False,
) -> Step:
    """Fill in what every step has, whatever its kind."""
    attributes, resource = span.attributes, span.resource
    variant = trimmed(_named(attributes[n.REACH_VARIANT])) if n.REACH_VARIANT in attributes else None
    heard = said is not None and kind != "agent"
    return Step(  # by position, in the order of declaration: by keyword it would cost three times as much
        kind,
        span.trace_id,
        span.span_id,
        span.start_ns,
        span.end_ns,
        span.parent_id,
        span.parent_remote,
        span.name,
        agent,
        tool,
        call_id,
        to_agent,
        args,
        result,
        has_args,
        has_result,
        ok,
        error,
        tuple(said.calls) if said is not None and heard else (),
        tuple(said.answers) if said is not None and heard else (),
        tuple(said.texts) if said is not None else (),
        said.output if said is not None else output,
        plan,
        model,
        tokens,
        cut,
        _named(attributes.get(n.REACH_RUN_ID)),
        first_text(attributes, CONVERSATION),
        _named(attributes.get(n.REACH_TASK)) or resource.task,
        variant or resource.variant,
        first_text(attributes, WORKFLOW) or workflow,
        resource.service,
        resource.service_version,
        attributes if keep_attributes else None,
        by_text,
        masked_of(span),
        span.sampled,
        variant is not None and variant not in (resource.variant, resource.service_version),
    )


def _tool_named(span: Span, kind: Kind) -> Tool:
    """Name the tool: by an attribute, by the receiver of a handoff, at last by the span."""
    attributes = span.attributes
    name = first_text(attributes, TOOL_NAME)
    if kind == "handoff" and (name is None or attributes.get(n.OPERATION) == "handoff"):
        to_agent = _named(attributes.get(n.HANDOFF_TO))
        if to_agent is None or to_agent in UNSPECIFIED:
            return Tool("handoff", "handoff")
        return Tool(f"transfer_to_{to_agent}", "handoff", to_agent)
    if name is not None:
        return tool_of(name)
    if kind == "retrieval":
        return Tool(_named(attributes.get(n.DATA_SOURCE_ID)) or span.name)
    return tool_of(name_from_span(span.name))


def _agent_name(span: Span) -> str | None:
    attributes = span.attributes
    name = first_text(attributes, AGENT_NAME)
    if name is not None and name not in PLACEHOLDER_AGENTS:
        return name
    said = langchain_agent(attributes)
    if said is None and attributes.get(n.TL_KIND) in ("agent", "workflow"):
        said = _named(attributes.get(n.TL_ENTITY))
    return said or name or agent_from_span(span.name)


def _agent_of_step(attributes: Mapping[str, Any]) -> str | None:
    """Give the agent named on the span itself; placeholders name none."""
    name = first_text(attributes, AGENT_OF_STEP)
    if name is None:
        return langchain_agent(attributes) if n.OI_METADATA in attributes else None
    return None if name in PLACEHOLDER_AGENTS else name


def _named(value: Any) -> str | None:
    return value if type(value) is str and value else None

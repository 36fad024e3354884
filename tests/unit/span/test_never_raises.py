"""Whatever a span holds, it becomes a step; and the fields of a step stand where the builder puts them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from reach_otel import names
from reach_otel.span import Event, LogRecord, Span, Step, normalise, normalise_log, read_spans_json
from reach_otel.span.conversation import Conversation
from reach_otel.span.kinds import OPENINFERENCE, OPERATIONS, TRACELOOP, kind_of
from reach_otel.span.messages import read
from reach_otel.span.unwrap import arguments, result
from reach_otel.span.value import parse
from tests.unit.span.spans import span

KEYS = sorted(
    value for name, value in vars(names).items() if name.isupper() and isinstance(value, str) and "." in value
)
NUMBERED = [
    f"{prefix}{number}.message.{field}"
    for prefix in (names.OI_INPUT_MESSAGES, names.OI_OUTPUT_MESSAGES)
    for number in ("0", "1", "x")
    for field in ("role", "content", "tool_calls.0.tool_call.id", "contents.0.message_content.text", "tool_calls")
]
WORDS = st.sampled_from(
    [*OPERATIONS, *OPENINFERENCE, *TRACELOOP, "tools/call", "check", "handoff", "final_answer", "m", "", "__REDACTED__"]
)
FIELDS = st.sampled_from(
    (
        "role content parts type text tool_calls id name arguments args kwargs data lc message messages response "
        "result goto update blocks function tool_call_id status error is_error output outputs input toolUse"
    ).split()
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            FIELDS,
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
VALUES = JSON | JSON.map(json.dumps) | JSON.map(str) | st.text(max_size=20)
ATTRIBUTES = st.dictionaries(st.sampled_from(KEYS + NUMBERED), VALUES, max_size=10)
EVENTS = st.lists(
    st.builds(
        Event,
        st.sampled_from([names.EVENT_CHOICE, names.EVENT_TOOL, names.EVENT_USER, names.EXCEPTION_EVENT, "x"]),
        st.just(1),
        st.dictionaries(
            st.sampled_from(
                ["content", "message", "id", names.INPUT_MESSAGES, names.EXCEPTION_TYPE, names.EXCEPTION_MESSAGE]
            ),
            VALUES,
            max_size=3,
        ),
    ),
    max_size=3,
).map(tuple)


@given(attributes=ATTRIBUTES, events=EVENTS, operation=WORDS, status=st.integers(0, 2), message=st.text(max_size=20))
def test_any_span_becomes_a_step(
    attributes: dict[str, Any], events: tuple[Event, ...], operation: str, status: int, message: str
) -> None:
    tried = span({names.OPERATION: operation} | attributes, events=events, status=status, status_message=message)
    (made,) = normalise(tried)
    assert made.span_id == "b" * 16
    # what is read without an accident keeps its kind; a call at least its tool
    kind = kind_of(tried)
    assert made.kind == kind or made.tool is not None
    msgspec.json.encode(made)


@given(body=JSON, attributes=ATTRIBUTES, name=st.sampled_from([names.EVENT_CHOICE, names.EVENT_TOOL, "x"]))
def test_any_log_record_becomes_steps(body: Any, attributes: dict[str, Any], name: str) -> None:
    for made in normalise_log(LogRecord("a" * 32, "b" * 16, name, 1, attributes, body)):
        assert made.kind == "content"


@given(raw=VALUES, output=st.booleans())
def test_any_message_is_read(raw: Any, output: bool) -> None:
    read(raw, Conversation(), output=output)


@given(raw=VALUES)
def test_any_value_is_unwrapped(raw: Any) -> None:
    arguments(raw)
    result(raw, sole_result=True)


@given(text=st.text(max_size=60) | JSON.map(str) | st.text(alphabet="[]{}()'\",:1 ", max_size=40))
def test_any_text_is_parsed(text: str) -> None:
    parse(text)


@given(body=JSON)
def test_any_body_is_read_or_refused(body: Any) -> None:
    whole = {"resourceSpans": [{"scopeSpans": [{"spans": [body]}]}]}
    spans, faults = read_spans_json(json.dumps(whole))
    assert len(spans) + faults.dropped == 1


def test_every_field_of_a_step_stands_in_its_place() -> None:
    """Steps are built by position."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "check",
        "gen_ai.tool.call.id": "call",
        "gen_ai.agent.name": "agent",
        "gen_ai.tool.call.arguments": '{"a": 1}',
        "gen_ai.tool.call.result": '{"error": "no", "cut',
        "gen_ai.conversation.id": "conversation",
        "gen_ai.workflow.name": "workflow",
        "error.type": "error",
        "reach.run.id": "run",
        "reach.task": "task",
        "reach.variant": "variant",
    }
    tool = Span("t" * 32, "s" * 16, "name", 1, 2, attributes, "p" * 16, True)
    (made,) = normalise(tool, keep_attributes=True)
    assert made == Step(
        kind="tool",
        trace_id="t" * 32,
        span_id="s" * 16,
        start_ns=1,
        end_ns=2,
        parent_id="p" * 16,
        parent_remote=True,
        name="name",
        agent="agent",
        tool="check",
        call_id="call",
        args={"a": 1},
        result='{"error": "no", "cut',
        has_args=True,
        has_result=True,
        ok=False,
        error='{"error": "no", "cut',
        cut=True,
        run_id="run",
        conversation_id="conversation",
        task="task",
        variant="variant",
        workflow="workflow",
        attributes=attributes,
        variant_on_span=True,
    )
    assert normalise(tool)[0].attributes is None

"""Check what is read of a Collector's summary of what it masked, whatever the form in which the spans come."""

from __future__ import annotations

import json
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

from reach_otel.span import (
    Event,
    SdkReader,
    Step,
    normalise,
    normalise_log,
    read_logs_json,
    read_logs_protobuf,
    read_spans_json,
    read_spans_protobuf,
)
from reach_otel.span.masked import MASKED_MAX
from tests.unit.span.spans import record, step

DEBUG: dict[str, Any] = {
    "redaction.masked.keys": "gen_ai.tool.call.arguments,user.email",
    "redaction.masked.count": 2,
    "redaction.redacted.count": 5,
    "redaction.allowed.count": 6,
    "redaction.ignored.count": 7,
}
EVENT: dict[str, Any] = {"redaction.masked.count": 3}
TOOL: dict[str, Any] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}


def from_sdk() -> list[Step]:
    made = TracerProvider(shutdown_on_exit=False).get_tracer("t").start_span("look", attributes=TOOL | DEBUG)
    made.add_event("said", EVENT)
    made.end()
    assert isinstance(made, ReadableSpan)
    read = SdkReader().span(made)
    assert read is not None
    return list(normalise(read))


def from_protobuf() -> list[Step]:
    request = ExportTraceServiceRequest()
    raw = (
        request.resource_spans.add()
        .scope_spans.add()
        .spans.add(trace_id=b"\1" * 16, span_id=b"\2" * 8, name="look", start_time_unix_nano=1, end_time_unix_nano=2)
    )
    event = raw.events.add(name="said")
    for target, attributes in ((raw, TOOL | DEBUG), (event, EVENT)):
        for key, value in attributes.items():
            held = target.attributes.add(key=key).value
            if isinstance(value, int):
                held.int_value = value
            else:
                held.string_value = str(value)
    spans, _ = read_spans_protobuf(request.SerializeToString())
    return [one for span in spans for one in normalise(span)]


def from_json() -> list[Step]:
    def pairs(attributes: dict[str, Any]) -> list[Any]:
        kinds = {int: "intValue", str: "stringValue"}
        return [{"key": key, "value": {kinds[type(value)]: str(value)}} for key, value in attributes.items()]

    raw = {"traceId": "1" * 32, "spanId": "2" * 16, "name": "look", "startTimeUnixNano": 1, "endTimeUnixNano": 2}
    raw |= {"attributes": pairs(TOOL | DEBUG), "events": [{"name": "said", "attributes": pairs(EVENT)}]}
    spans, _ = read_spans_json(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [raw]}]}]}))
    return [one for span in spans for one in normalise(span)]


@pytest.mark.parametrize("read", [from_sdk, from_protobuf, from_json])
def test_masked_values_of_a_span_and_its_events_are_added_up(read: Any) -> None:
    """Whoever reads the span; what the processor removed, let pass or left alone does not count."""
    [made] = read()
    assert (made.kind, made.tool, made.masked) == ("tool", "look", 5)


@pytest.mark.parametrize("operation", ["execute_tool", "chat", "invoke_agent", "plan", "retrieval", "handoff", "x"])
def test_every_kind_of_step_says_so(operation: str) -> None:
    """Also a span that is nothing but a wrapper."""
    assert step({"gen_ai.operation.name": operation, **DEBUG}).masked == 2
    assert step({"gen_ai.operation.name": operation}).masked == 0


@pytest.mark.parametrize("count", ["2", True, 2.0, -1, None, [2]])
def test_a_summary_that_is_no_count_is_nothing(count: Any) -> None:
    """The processor writes whole numbers."""
    assert step({**TOOL, "redaction.masked.count": count}, events=(Event("e", 1, {}),)).masked == 0


def test_a_summary_is_bounded() -> None:
    """Anybody can send one, and a counter never goes down again."""
    assert step({**TOOL, "redaction.masked.count": 1 << 62}).masked == MASKED_MAX
    said = record("gen_ai.user.message", {"content": "hi"}, {"redaction.body.masked.count": 1 << 62})
    assert [made.masked for made in normalise_log(said)] == [MASKED_MAX]


def test_masked_values_of_a_log_record_are_those_of_attributes_and_body() -> None:
    """The processor counts the two apart."""
    attributes = {"redaction.masked.count": 2, "redaction.body.masked.count": 3, "redaction.body.redacted.count": 9}
    [made] = normalise_log(record("gen_ai.user.message", {"content": "hi"}, attributes))
    assert (made.kind, made.masked) == ("content", 5)


# What this package sends about a run


OWN, NAME, EVENT_NAME = "reach_otel.evaluation", "reach.evaluate", "gen_ai.evaluation.result"


@pytest.mark.parametrize(
    ("scope", "name", "is_own"), [(OWN, NAME, True), (OWN, "other", False), ("app", NAME, False), ("", NAME, False)]
)
def test_our_own_evaluation_span_is_no_step(scope: str, name: str, is_own: bool) -> None:
    """In all three forms; only scope and name together make it ours."""
    provider = TracerProvider(shutdown_on_exit=False)
    live = provider.get_tracer(scope).start_span(name)
    live.end()
    assert isinstance(live, ReadableSpan)
    request = ExportTraceServiceRequest()
    scoped = request.resource_spans.add().scope_spans.add()
    scoped.scope.name = scope
    scoped.spans.add(trace_id=b"\1" * 16, span_id=b"\2" * 8, name=name, end_time_unix_nano=2)
    raw = {"traceId": "1" * 32, "spanId": "2" * 16, "name": name, "endTimeUnixNano": 2}
    body = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": scope}, "spans": [raw]}]}]}
    (proto,), _ = read_spans_protobuf(request.SerializeToString())
    (plain,), _ = read_spans_json(json.dumps(body))
    for span in (SdkReader().span(live), proto, plain):
        assert span is not None
        assert len(normalise(span)) == (not is_own)


@pytest.mark.parametrize(("scope", "is_own"), [(OWN, True), ("app", False)])
def test_our_own_evaluation_event_is_no_step(scope: str, is_own: bool) -> None:
    """Not even if it bears what else would be messages; one of somebody else is read as before."""
    messages = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "hi"}]}])
    request = ExportLogsServiceRequest()
    scoped = request.resource_logs.add().scope_logs.add()
    scoped.scope.name = scope
    log = scoped.log_records.add(trace_id=b"\1" * 16, span_id=b"\2" * 8, event_name=EVENT_NAME, time_unix_nano=5)
    log.attributes.add(key="gen_ai.input.messages").value.string_value = messages
    raw = {
        "traceId": "1" * 32,
        "spanId": "2" * 16,
        "eventName": EVENT_NAME,
        "attributes": [{"key": "gen_ai.input.messages", "value": {"stringValue": messages}}],
    }
    body = {"resourceLogs": [{"scopeLogs": [{"scope": {"name": scope}, "logRecords": [raw]}]}]}
    (proto,), _ = read_logs_protobuf(request.SerializeToString())
    (plain,), _ = read_logs_json(json.dumps(body))
    for read in (proto, plain):
        assert len(normalise_log(read)) == (not is_own)

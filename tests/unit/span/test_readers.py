"""Three readers give the same span; what is bad is counted by reason and costs nothing else."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource as SdkResource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from reach_otel.errors import InputError
from reach_otel.span import (
    Limits,
    SdkReader,
    Span,
    read_logs_json,
    read_logs_protobuf,
    read_spans_json,
    read_spans_protobuf,
)

TRACE, SPAN, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"


def raw_span(**fields: Any) -> dict[str, Any]:
    made = {
        "traceId": TRACE,
        "spanId": SPAN,
        "parentSpanId": PARENT,
        "name": "execute_tool check",
        "kind": 3,
        "startTimeUnixNano": "1000",
        "endTimeUnixNano": "2000",
        "flags": 768,
        "attributes": [
            {"key": "s", "value": {"stringValue": "text"}},
            {"key": "empty", "value": {"stringValue": ""}},
            {"key": "i", "value": {"intValue": "110"}},
            {"key": "zero", "value": {"intValue": "0"}},
            {"key": "d", "value": {"doubleValue": 0.5}},
            {"key": "b", "value": {"boolValue": True}},
            {"key": "no", "value": {"boolValue": False}},
            {"key": "list", "value": {"arrayValue": {"values": [{"stringValue": "x"}, {"intValue": "1"}]}}},
            {
                "key": "map",
                "value": {"kvlistValue": {"values": [{"key": "k", "value": {"arrayValue": {"values": []}}}]}},
            },
        ],
        "status": {"code": 2, "message": "unknown sku"},
        "events": [
            {
                "name": "exception",
                "timeUnixNano": "1500",
                "attributes": [{"key": "exception.type", "value": {"stringValue": "ValueError"}}],
            }
        ],
        "links": [{"traceId": TRACE, "spanId": PARENT}],
    }
    return made | fields


def request(*spans: Any) -> dict[str, Any]:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "lib"}, "spans": list(spans)}]}]}


def as_json(*spans: Any) -> bytes:
    return json.dumps(request(*spans)).encode()


def as_protobuf(*spans: Any) -> bytes:
    message = ExportTraceServiceRequest()
    group = message.resource_spans.add()
    group.resource.attributes.add(key="service.name").value.string_value = "shop"
    scoped = group.scope_spans.add()
    scoped.scope.name = "lib"
    for raw in spans:
        _fill(scoped.spans.add(), raw)
    return message.SerializeToString()


def _fill(span: Any, raw: dict[str, Any]) -> None:
    span.trace_id, span.span_id = bytes.fromhex(raw["traceId"]), bytes.fromhex(raw["spanId"])
    span.parent_span_id = bytes.fromhex(raw.get("parentSpanId") or "")
    span.name, span.kind, span.flags = raw["name"], raw["kind"], raw["flags"]
    span.start_time_unix_nano, span.end_time_unix_nano = int(raw["startTimeUnixNano"]), int(raw["endTimeUnixNano"])
    span.status.code, span.status.message = raw["status"]["code"], raw["status"]["message"]
    for pair in raw["attributes"]:
        _value(span.attributes.add(key=pair["key"]).value, pair["value"])
    for event in raw["events"]:
        made = span.events.add(name=event["name"], time_unix_nano=int(event["timeUnixNano"]))
        for pair in event["attributes"]:
            _value(made.attributes.add(key=pair["key"]).value, pair["value"])
    for link in raw["links"]:
        span.links.add(trace_id=bytes.fromhex(link["traceId"]), span_id=bytes.fromhex(link["spanId"]))


def _value(target: Any, raw: dict[str, Any]) -> None:
    ((kind, value),) = raw.items()
    match kind:
        case "stringValue":
            target.string_value = value
        case "intValue":
            target.int_value = int(value)
        case "doubleValue":
            target.double_value = value
        case "boolValue":
            target.bool_value = value
        case "arrayValue":
            target.array_value.SetInParent()
            for item in value["values"]:
                _value(target.array_value.values.add(), item)
        case "kvlistValue":
            for pair in value["values"]:
                _value(target.kvlist_value.values.add(key=pair["key"]).value, pair["value"])


BOTH = pytest.mark.parametrize(
    ("write", "read"), [(as_json, read_spans_json), (as_protobuf, read_spans_protobuf)], ids=["json", "protobuf"]
)


@BOTH
def test_everything_of_a_span(write: Callable[..., bytes], read: Callable[..., Any]) -> None:
    (span,), faults = read(write(raw_span()))
    assert not faults
    assert (span.trace_id, span.span_id, span.parent_id, span.parent_remote) == (TRACE, SPAN, PARENT, True)
    assert (span.name, span.kind, span.start_ns, span.end_ns) == ("execute_tool check", 3, 1000, 2000)
    assert span.attributes == {
        "s": "text",
        "empty": "",
        "i": 110,
        "zero": 0,
        "d": 0.5,
        "b": True,
        "no": False,
        "list": ["x", 1],
        "map": {"k": []},
    }
    assert (span.status, span.status_message, span.scope) == (2, "unknown sku", "lib")
    assert [(e.name, e.time_ns, e.attributes) for e in span.events] == [
        ("exception", 1500, {"exception.type": "ValueError"})
    ]
    assert span.links == ((TRACE, PARENT),)
    assert span.resource.service == "shop"


@BOTH
@pytest.mark.parametrize(
    ("flags", "sampled"), [(0, None), (0x300, None), (1, True), (0x301, True), (0x303, True), (0x302, False)]
)
def test_whether_a_span_was_sampled(
    write: Callable[..., bytes], read: Callable[..., Any], flags: int, sampled: bool | None
) -> None:
    """The low byte says so where it says anything: many exporters leave it at zero."""
    (span,), _ = read(write(raw_span(flags=flags)))
    assert span.sampled is sampled


@BOTH
def test_one_bad_span_never_loses_the_others(write: Callable[..., bytes], read: Callable[..., Any]) -> None:
    spans, faults = read(
        write(
            raw_span(),
            raw_span(traceId="0" * 32),
            raw_span(spanId="0" * 16),
            raw_span(traceId="ab"),
            raw_span(endTimeUnixNano="0"),
            raw_span(spanId="a" * 16, startTimeUnixNano="3000"),
            raw_span(spanId="c" * 16, parentSpanId="", flags=0),
        )
    )
    assert [span.span_id for span in spans] == [SPAN, "a" * 16, "c" * 16]
    assert faults == {"zero_id": 2, "bad_id": 1, "no_time": 1, "negative_duration": 1}
    assert faults.dropped == 4
    assert (spans[1].start_ns, spans[1].end_ns) == (2000, 2000)
    assert (spans[2].parent_id, spans[2].parent_remote) == (None, None)


@BOTH
def test_limits_are_held_and_counted(write: Callable[..., bytes], read: Callable[..., Any]) -> None:
    deep: dict[str, Any] = {"stringValue": "x"}
    for _ in range(6):
        deep = {"arrayValue": {"values": [deep]}}
    pairs = [
        {"key": "deep", "value": deep},
        {"key": "long", "value": {"stringValue": "y" * 30}},
        {"key": "wide", "value": {"arrayValue": {"values": [{"intValue": str(n)} for n in range(1, 9)]}}},
        {"key": "beyond", "value": {"stringValue": "z"}},
    ]
    event = {"name": "e", "timeUnixNano": "1", "attributes": []}
    limits = Limits(
        attributes_max=3,
        attribute_chars_max=20,
        attribute_depth_max=4,
        array_items_max=5,
        events_max=2,
        name_chars_max=7,
    )
    (span,), faults = read(write(raw_span(attributes=pairs, events=[event] * 3)), limits)
    assert span.attributes == {"deep": [[[[None]]]], "long": "y" * 20, "wide": [1, 2, 3, 4, 5]}
    assert (span.name, len(span.events)) == ("execute", 2)
    assert faults == {"too_many": 3, "too_deep": 1, "too_long": 1}


def test_json_in_other_spellings() -> None:
    raw = {
        "trace_id": base64.b64encode(bytes.fromhex(TRACE)).decode(),
        "span_id": base64.b64encode(bytes.fromhex(SPAN)).decode(),
        "parent_span_id": "",
        "name": "x",
        "kind": "SPAN_KIND_CLIENT",
        "start_time_unix_nano": 1000,
        "end_time_unix_nano": 2000,
        "status": {"code": "STATUS_CODE_ERROR"},
        "attributes": [
            {"key": "a", "value": {"string_value": "x"}},
            {"key": "b", "value": {"int_value": 3}},
            {"key": "c", "value": {"array_value": {"values": [{"bool_value": True}]}}},
            {"key": "d", "value": {"bytes_value": base64.b64encode(b"\x01\x02").decode()}},
            {"key": "e", "value": {}},
            {"key": "f"},
        ],
    }
    body = {"resource_spans": [{"scope_spans": [{"spans": [raw]}]}]}
    (span,), faults = read_spans_json(json.dumps(body))
    assert not faults
    assert (span.trace_id, span.span_id, span.parent_id, span.kind, span.status) == (TRACE, SPAN, None, 3, 2)
    assert span.attributes == {"a": "x", "b": 3, "c": [True], "d": "0102", "e": None}


def test_spans_that_cannot_be_read_at_all() -> None:
    bad: list[Any] = [
        None,
        7,
        "span",
        {},
        raw_span(startTimeUnixNano="soon"),
        raw_span(attributes=[7]),
        raw_span(attributes={"a": 1}),
        raw_span(status=[1]),
        raw_span(traceId=7),
        raw_span(traceId="z" * 32),
        raw_span(endTimeUnixNano=2**70),
        raw_span(events=[7]),
        raw_span(links=7),
    ]
    spans, faults = read_spans_json(as_json(raw_span(), *bad))
    assert len(spans) == 1
    assert faults.dropped == len(bad)


@pytest.mark.parametrize("resource", [7, [], {"attributes": 7}, {"attributes": [7]}, {}])
def test_spans_of_an_unreadable_sender_are_kept(resource: Any) -> None:
    body = request(raw_span())
    body["resourceSpans"][0]["resource"] = resource
    body["resourceSpans"][0]["scopeSpans"][0]["scope"] = resource
    (span,), _ = read_spans_json(json.dumps(body))
    assert (span.resource.service, span.scope) == (None, "")


def test_invalid_utf8_in_json_is_mended() -> None:
    (span,), faults = read_spans_json(as_json(raw_span(name="café")).replace(b"caf\\u00e9", b"caf\xe9"))
    assert (span.name, faults) == ("caf\ufffd", {"invalid_utf8": 1})


def test_invalid_utf8_in_protobuf_costs_only_the_field() -> None:
    marked = raw_span(spanId="a" * 16, attributes=[*raw_span()["attributes"], _pair("mark", "MARK")])
    body = as_protobuf(raw_span(), marked).replace(b"MARK", b"M\xff\xfeK")
    (first, second), faults = read_spans_protobuf(body)
    assert len(first.attributes) == 9
    assert "mark" not in second.attributes
    assert second.attributes["s"] == "text"
    assert faults == {"invalid_utf8": 1}


def _pair(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b"\xff", b'{"resourceSpans": 7}', b'{"resourceSpans": [7]}'])
def test_a_malformed_json_body(body: bytes) -> None:
    with pytest.raises(InputError, match="OTLP/JSON body"):
        read_spans_json(body)


@pytest.mark.parametrize("body", [b"\xff", b"\x0a\xff\xff\xff\xff\xff", b"not protobuf at all", b"\x0a\x05ab"])
def test_a_malformed_protobuf_body(body: bytes) -> None:
    with pytest.raises(InputError, match="OTLP protobuf body"):
        read_spans_protobuf(body)


def test_an_empty_request_is_no_fault() -> None:
    assert read_spans_json("{}") == ([], {})
    assert read_spans_protobuf(b"") == ([], {})
    assert read_logs_json('{"resourceSpans": []}') == ([], {})


def test_log_records_of_both_forms() -> None:
    body = {
        "resourceLogs": [
            {
                "scopeLogs": [
                    {
                        "logRecords": [
                            {
                                "traceId": TRACE,
                                "spanId": SPAN,
                                "timeUnixNano": "5",
                                "eventName": "gen_ai.user.message",
                                "body": {
                                    "kvlistValue": {"values": [{"key": "content", "value": {"stringValue": "hi"}}]}
                                },
                            },
                            {"body": {"stringValue": "belongs to no span"}},
                            {"traceId": "0" * 32, "spanId": SPAN},
                            {
                                "traceId": TRACE,
                                "spanId": SPAN,
                                "observedTimeUnixNano": "6",
                                "attributes": [_pair("event.name", "gen_ai.choice")],
                            },
                        ]
                    }
                ]
            }
        ]
    }
    records, faults = read_logs_json(json.dumps(body))
    assert [(r.name, r.time_ns, r.body) for r in records] == [
        ("gen_ai.user.message", 5, {"content": "hi"}),
        ("gen_ai.choice", 6, None),
    ]
    assert faults == {"zero_id": 1}

    message = ExportLogsServiceRequest()
    record = message.resource_logs.add().scope_logs.add().log_records.add()
    record.trace_id, record.span_id = bytes.fromhex(TRACE), bytes.fromhex(SPAN)
    record.time_unix_nano, record.event_name = 5, "gen_ai.user.message"
    record.body.kvlist_value.values.add(key="content").value.string_value = "hi"
    message.resource_logs[0].scope_logs[0].log_records.add().body.string_value = "belongs to no span"
    (found,), faults = read_logs_protobuf(message.SerializeToString())
    assert (found.trace_id, found.span_id, found.name, found.time_ns) == (TRACE, SPAN, "gen_ai.user.message", 5)
    assert (found.body, faults) == ({"content": "hi"}, {})


def test_spans_of_the_sdk() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(resource=SdkResource({"service.name": "shop", "service.version": "2", "reach.task": "t"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("lib")
    with (
        tracer.start_as_current_span("outer") as outer,
        tracer.start_as_current_span("inner", kind=SpanKind.CLIENT) as inner,
    ):
        inner.set_attributes({"s": "text", "i": 110, "list": ["x", "y"], "long": "z" * 30})
        inner.record_exception(ValueError("unknown sku"))
        inner.set_status(Status(StatusCode.ERROR, "unknown sku"))
    reader = SdkReader(Limits(attribute_chars_max=20))
    found_inner, found_outer = (reader.span(span) for span in exporter.get_finished_spans())
    assert found_inner is not None
    assert found_outer is not None
    assert found_inner.span_id == f"{inner.get_span_context().span_id:016x}"
    assert found_inner.parent_id == found_outer.span_id == f"{outer.get_span_context().span_id:016x}"
    assert (found_inner.parent_remote, found_outer.parent_remote, found_outer.parent_id) == (False, None, None)
    assert (found_inner.kind, found_outer.kind) == (3, 1)
    assert (found_inner.status, found_inner.status_message, found_outer.status) == (2, "unknown sku", 0)
    assert found_inner.attributes == {"s": "text", "i": 110, "list": ["x", "y"], "long": "z" * 20}
    assert found_inner.events[0].attributes["exception.type"] == "ValueError"
    assert found_inner.resource is found_outer.resource
    resource = found_inner.resource
    assert (resource.service, resource.service_version, resource.task) == ("shop", "2", "t")
    assert found_inner.scope == "lib"
    assert "too_long" in reader.faults


def test_a_bad_span_of_the_sdk_is_counted() -> None:
    reader = SdkReader()
    context = SpanContext(int(TRACE, 16), int(SPAN, 16), is_remote=False, trace_flags=TraceFlags(1))
    assert reader.span(ReadableSpan("x", context=None, start_time=1, end_time=2)) is None
    assert reader.span(ReadableSpan("x", context=context, start_time=1)) is None
    assert reader.span(ReadableSpan(None, context=context, start_time=1, end_time=2)) is None  # type: ignore[arg-type]
    good = reader.span(ReadableSpan("x", context=context, start_time=2, end_time=1))
    assert isinstance(good, Span)
    assert good.sampled is True
    recorded = SpanContext(int(TRACE, 16), int(SPAN, 16), is_remote=False, trace_flags=TraceFlags(0))
    only_recorded = reader.span(ReadableSpan("x", context=recorded, start_time=1, end_time=2))
    assert only_recorded is not None
    assert only_recorded.sampled is False
    assert reader.faults == {"zero_id": 1, "no_time": 1, "unreadable": 1, "negative_duration": 1}

"""Throw hostile bodies of both types at the service: it answers as documented, keeps nothing, and goes on scoring."""

from __future__ import annotations

import gzip
import json
import resource
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from starlette.testclient import TestClient

from reach_otel.service.app import create_app
from reach_otel.settings import ServeSettings, Settings
from tests.support.otlp import Trace

TASK = """
task: shop
match: {agent: bot}
grounded: ["*_id"]
milestones:
  - {id: read, verify: {tool: read_ticket, result: {ok: true}}, used: true}
  - {id: update, depends_on: [read], verify: {tool: update_ticket, when: 'result.ok'}}
"""
MIB = 1 << 20
BODY_MAX, DECOMPRESSED_MAX = MIB, 2 * MIB
SPANS_MAX = 1_000
GROWTH_MIB = 64
DOCUMENTED = frozenset((200, 400, 401, 408, 413, 415, 429, 503))
TYPES = ("application/x-protobuf", "application/json")
PATHS = ("/v1/traces", "/v1/logs")


class Target:
    """A service in this process, with small limits."""

    def __init__(self, folder: Path) -> None:
        (folder / "shop.task.yaml").write_text(TASK, encoding="utf-8")
        serve = ServeSettings(
            database=str(folder / "fuzz.db"),
            body_max=BODY_MAX,
            decompressed_max=DECOMPRESSED_MAX,
            spans_max=SPANS_MAX,
        )
        self.app = create_app(serve, Settings(tasks=(str(folder),), grace=0.0, runs_max=200))
        self.service = self.app.state.service
        self.client = TestClient(self.app, base_url="http://localhost")

    def post(self, path: str, media: str, body: bytes, encoding: str | None = None) -> int:
        """Send a body; gives the status, which must be a documented one with a readable reason."""
        headers = {"Content-Type": media} | ({"Content-Encoding": encoding} if encoding else {})
        answer = self.client.post(path, content=body, headers=headers)
        assert answer.status_code in DOCUMENTED, (answer.status_code, answer.content[:500])
        if answer.status_code in (429, 503):
            assert answer.headers["Retry-After"].isdecimal()
        if media == "application/json":
            said = json.loads(answer.content)
            assert answer.status_code == 200 or said["message"]
        return int(answer.status_code)

    def assert_well(self) -> None:
        """Nothing is held, nothing has failed, and a good run still gets its verdict."""
        deadline = time.monotonic() + 30
        while self.service.scorer.room.spans and time.monotonic() < deadline:
            time.sleep(0.005)
        assert self.service.intake.budget.held == 0
        assert self.service.scorer.room.spans == 0
        assert self.service.scorer.room.size == 0
        assert sum(self.service.scorer.health.errors.values()) == 0
        assert sum(self.service.journal.errors.values()) == 0
        assert self.service.history.unwritten == 0
        assert self.client.get("/readyz").json() == {"ready": True, "reasons": []}


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with tempfile.TemporaryDirectory() as folder:
        found = Target(Path(folder))
        with found.client:
            yield found
            found.assert_well()


def good_json() -> bytes:
    trace = Trace("good")
    trace.call("read_ticket", {"ticket_id": "T-1"}, {"ok": True, "text": "ünï 漢字"})
    trace.call("update_ticket", {"ticket_id": "T-1"}, error="broken")
    return trace.end(user="T-1", says="done").line().encode()


def good_protobuf() -> bytes:
    from tests.bench.workload import GenAiRun, requests

    return requests([GenAiRun(2).spans()])[0]


GOOD = {"application/json": good_json(), "application/x-protobuf": good_protobuf()}

media = st.sampled_from(TYPES)
paths = st.sampled_from(PATHS)


@given(media, paths, st.binary(max_size=2_000))
def test_random_bytes(target: Target, media: str, path: str, body: bytes) -> None:
    """Noise is refused or read as nothing."""
    target.post(path, media, body)


@given(media, paths, st.integers(min_value=0, max_value=10_000))
def test_truncated(target: Target, media: str, path: str, length: int) -> None:
    """A body that ends early is refused, or read as far as it goes."""
    body = GOOD[media]
    target.post(path, media, body[: length % len(body)])


@given(media, paths, st.lists(st.tuples(st.integers(min_value=0), st.integers(0, 255)), min_size=1, max_size=20))
def test_damaged(target: Target, media: str, path: str, changes: list[tuple[int, int]]) -> None:
    """A body with bytes changed at random is refused, or the spans that are still good are taken."""
    body = bytearray(GOOD[media])
    for at, value in changes:
        body[at % len(body)] = value
    target.post(path, media, bytes(body))


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
trees = st.recursive(leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner))
times: st.SearchStrategy[Any] = st.one_of(
    st.integers(-(2**70), 2**70),
    st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**64 - 1, "0", "-1", "1e9", "", "now", None, True, 1.5, [], {}]),
)
ids: st.SearchStrategy[Any] = st.sampled_from(
    ["", "0" * 32, "0" * 16, "f" * 32, "f" * 16, "zz", 7, None, [], "AAAAAAAAAAE=", "\ud7ff" * 16]
)
keys = st.sampled_from(
    ["gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.tool.call.arguments", "gen_ai.input.messages", "reach.task"]
)
texts = st.sampled_from(["execute_tool", "invoke_agent", "chat", "read_ticket", '{"ok":', "[" * 500, "\x00", "1e999"])
values = st.fixed_dictionaries({"stringValue": texts}) | trees
attributes = st.lists(st.fixed_dictionaries({"key": keys | leaves, "value": values}), max_size=5) | trees
spans = st.fixed_dictionaries(
    {},
    optional={
        "traceId": ids,
        "spanId": ids,
        "parentSpanId": ids,
        "name": leaves,
        "kind": leaves,
        "startTimeUnixNano": times,
        "endTimeUnixNano": times,
        "attributes": attributes,
        "status": trees,
        "events": trees,
        "links": trees,
        "flags": leaves,
        "timeUnixNano": times,
        "body": values,
        "eventName": leaves,
    },
)


@given(paths, st.lists(spans | trees, max_size=5), trees)
def test_wrong_types(target: Target, path: str, items: list[Any], resource: Any) -> None:
    """Every field may be of any type, any time and any id: bad spans are left out, the request is answered."""
    groups, scopes, key = (
        ("resourceSpans", "scopeSpans", "spans")
        if path == "/v1/traces"
        else ("resourceLogs", "scopeLogs", "logRecords")
    )
    body = {groups: [{"resource": resource, scopes: [{"scope": resource, key: items}]}]}
    target.post(path, "application/json", json.dumps(body).encode())


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.binary(max_size=20), st.binary(max_size=10))
def test_time_travel_and_odd_ids(target: Target, start: int, end: int, trace: bytes, span: bytes) -> None:
    """Spans before the epoch, in the far future, ending before they start, with ids of any length."""
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for trace_id, span_id in ((trace, span), (trace.ljust(16, b"\1")[:16], span.ljust(8, b"\1")[:8])):
        made = scope.spans.add(
            trace_id=trace_id, span_id=span_id, start_time_unix_nano=start, end_time_unix_nano=end, name="x"
        )
        made.attributes.add(key="gen_ai.operation.name").value.string_value = "invoke_agent"
    target.post("/v1/traces", TYPES[0], request.SerializeToString())


def deep_json(depth: int) -> bytes:
    return b'{"resourceSpans":' + b"[" * depth + b"]" * depth + b"}"


def deep_value(depth: int) -> AnyValue:
    value = AnyValue(string_value="x")
    for _ in range(depth):
        outer = AnyValue()
        outer.array_value.values.add().CopyFrom(value)
        value = outer
    return value


def deep_protobuf(depth: int) -> bytes:
    request = ExportTraceServiceRequest()
    span = (
        request.resource_spans.add()
        .scope_spans.add()
        .spans.add(trace_id=b"\1" * 16, span_id=b"\1" * 8, end_time_unix_nano=10**18, name="x")
    )
    span.attributes.add(key="x").value.CopyFrom(deep_value(depth))
    return bytes(request.SerializeToString())


def nested_json_text(depth: int) -> bytes:
    trace = Trace("deep")
    trace.call("read_ticket", "[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth)
    return trace.end().line().encode()


def many_spans(count: int, each: bytes) -> bytes:
    """Write a request by hand, with so many spans of a few bytes."""
    spans = (b"\x12" + bytes([len(each)]) + each) * count
    scope = b"\x12" + varint(len(spans)) + spans
    return b"\x0a" + varint(len(scope)) + scope


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def bomb(compressor: Any, filler: bytes = b" ") -> bytes:
    """Compress 200 MiB without ever holding them."""
    piece = filler * MIB
    return b"".join(compressor.compress(piece) for _ in range(200)) + bytes(compressor.flush())


HOSTILE: dict[str, tuple[str, Callable[[], bytes], str | None, int | None]] = {
    "deep JSON": (TYPES[1], lambda: deep_json(100_000), None, 400),
    "deep JSON that is read": (TYPES[1], lambda: deep_json(500), None, None),
    "deep protobuf": (TYPES[0], lambda: deep_protobuf(30), None, None),
    "too deep protobuf": (TYPES[0], lambda: deep_protobuf(90), None, None),
    "JSON in JSON, deep": (TYPES[1], lambda: nested_json_text(50_000), None, 200),
    "huge text": (TYPES[1], lambda: json.dumps({"x": "y" * (BODY_MAX - 100)}).encode(), None, 200),
    "body too long": (TYPES[1], lambda: b" " * (BODY_MAX + 1), None, 413),
    "announced too long": (TYPES[0], lambda: b"\x00" * (4 * BODY_MAX), None, 413),
    "zip bomb": (TYPES[1], lambda: bomb(zlib.compressobj(wbits=31)), "gzip", 413),
    "zip bomb in members": (TYPES[1], lambda: gzip.compress(b" " * MIB) * 200, "gzip", 413),
    "deflate bomb": (TYPES[0], lambda: bomb(zlib.compressobj(), b"\x00"), "deflate", 413),
    "zstd bomb": (TYPES[0], lambda: bomb(zstd.ZstdCompressor(), b"\x00"), "zstd", 413),
    "gzip cut": (TYPES[1], lambda: gzip.compress(GOOD[TYPES[1]])[:-9], "gzip", 400),
    "zstd cut": (TYPES[1], lambda: zstd.compress(GOOD[TYPES[1]])[:-3], "zstd", 400),
    "no gzip": (TYPES[1], lambda: GOOD[TYPES[1]], "gzip", 400),
    "no zstd": (TYPES[1], lambda: GOOD[TYPES[1]], "zstd", 400),
    "garbage after gzip": (TYPES[1], lambda: gzip.compress(GOOD[TYPES[1]]) + b"x" * 50, "gzip", 400),
    "unknown encoding": (TYPES[1], lambda: GOOD[TYPES[1]], "br", 415),
    "two encodings": (TYPES[1], lambda: GOOD[TYPES[1]], "gzip, gzip", 415),
    "a million empty spans": (TYPES[0], lambda: many_spans(300_000, b""), None, 413),
    "a million empty spans, small": (TYPES[0], lambda: gzip.compress(many_spans(900_000, b"")), "gzip", 413),
    "spans without ids": (TYPES[0], lambda: many_spans(SPANS_MAX, b"\x2a\x01x"), None, 200),
    "many spans in JSON": (
        TYPES[1],
        lambda: b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + b",".join([b"{}"] * 5_000) + b"]}]}]}",
        None,
        413,
    ),
    "not UTF-8": (TYPES[1], lambda: GOOD[TYPES[1]].replace("ü".encode(), b"\xff\xfe"), None, 200),
    "half a surrogate pair": (TYPES[1], lambda: GOOD[TYPES[1]].replace(b'"shop"', b'"\\ud800"'), None, None),
    "number without end": (
        TYPES[1],
        lambda: GOOD[TYPES[1]].replace(b'"ok\\": true', b'"ok\\": ' + b"9" * 5_000),
        None,
        None,
    ),
    "empty": (TYPES[0], lambda: b"", None, 200),
    "empty JSON": (TYPES[1], lambda: b"", None, 400),
    "a JSON list": (TYPES[1], lambda: b"[]", None, 400),
    "byte order mark": (TYPES[1], lambda: b"\xef\xbb\xbf" + GOOD[TYPES[1]], None, None),
    "logs as traces": (TYPES[0], lambda: ExportLogsServiceRequest().SerializeToString(), None, 200),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile(target: Target, name: str) -> None:
    """Each known trick is answered as documented, on both addresses."""
    media, make, encoding, expected = HOSTILE[name]
    body = make()
    for path in PATHS:
        status = target.post(path, media, body, encoding)
        if expected is not None and path == "/v1/traces":
            assert status == expected
    target.assert_well()


def test_nothing_grows(target: Target) -> None:
    """Hostile bodies sent again and again do not make the process grow, nor do bombs for a moment."""
    bodies = [(media, make(), encoding) for media, make, encoding, _ in HOSTILE.values()]

    def send() -> None:
        for media, body, encoding in bodies:
            target.post("/v1/traces", media, body, encoding)

    send()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(3):
        send()
    target.assert_well()
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) / 1024
    assert grown_mib < GROWTH_MIB


def test_a_good_run_is_scored_after_all_that(target: Target) -> None:
    """Whatever came before, a good run gets its right verdict."""
    trace = Trace("after all")
    trace.call("read_ticket", {"ticket_id": "T-1"}, {"ok": True, "customer": "K-4711"})
    trace.call("update_ticket", {"ticket_id": "T-1", "to": "K-4711"}, {"ok": True})
    assert target.post("/v1/traces", TYPES[1], trace.end(user="T-1", says="done").line().encode()) == 200
    for _ in range(100):
        answer = target.client.get(f"/api/runs/{trace.trace_id}")
        if answer.status_code == 200 and answer.json()["final"]:
            break
        time.sleep(0.05)
    assert answer.json()["scores"]["depth"] == 1.0

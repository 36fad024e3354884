"""Check the answers to OTLP over HTTP: success, partial success, and each refusal as the OTLP specification has it."""

from __future__ import annotations

import gzip
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from backports import zstd
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from starlette.testclient import TestClient

from reach_otel.service.app import Service, create_app
from reach_otel.settings import ServeSettings, Settings
from tests.support.otlp import Trace

JSON = "application/json"
PROTOBUF = "application/x-protobuf"


class Rig:
    def __init__(self, folder: Path, **settings: Any) -> None:
        app = create_app(ServeSettings(database=str(folder / "x.db"), **settings), Settings(grace=0.05))
        self.service: Service = app.state.service
        self.client = TestClient(app, base_url="http://localhost")

    def post(self, body: bytes, media: str = JSON, path: str = "/v1/traces", **headers: str) -> Any:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post(path, content=body, headers={"Content-Type": media, **named})

    def runs(self) -> list[str]:
        """Name the open runs, once all that was acknowledged is scored."""
        deadline = time.monotonic() + 10
        while self.service.scorer.room.spans:
            assert time.monotonic() < deadline
            time.sleep(0.002)
        return [run.run_id for run in self.service.scorer.call(lambda engine: engine.runs())]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    made: list[Rig] = []

    def build(**settings: Any) -> Rig:
        rig = Rig(tmp_path, **settings)
        rig.client.__enter__()
        made.append(rig)
        while rig.service.scorer.is_replaying:
            time.sleep(0.002)
        return rig

    yield build
    for rig in made:
        rig.client.__exit__(None, None, None)


def open_run(name: str = "a") -> Trace:
    trace = Trace(name)
    trace.call("look", {"x": 1}, {"ok": True}, parent="f" * 16)
    return trace


def protobuf(*ids: bytes) -> bytes:
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for span_id in ids:
        span = scope.spans.add(trace_id=b"\1" * 16, span_id=span_id, name="execute_tool look", end_time_unix_nano=9)
        span.attributes.add(key="gen_ai.operation.name").value.string_value = "execute_tool"
    return bytes(request.SerializeToString())


def test_success_has_the_type_of_the_request(make: Callable[..., Rig]) -> None:
    """JSON is answered with an empty object, protobuf with an empty message; the spans are scored."""
    rig = make()
    answer = rig.post(open_run().line().encode(), "application/json; charset=utf-8")
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, JSON, b"{}")
    answer = rig.post(protobuf(b"\1" * 8), PROTOBUF)
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, PROTOBUF, b"")
    assert len(rig.runs()) == 2


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("zstd", zstd.compress)])
def test_compressed_bodies_are_read(make: Callable[..., Rig], encoding: str, pack: Callable[[bytes], bytes]) -> None:
    """Both compressions that exporters use are understood."""
    rig = make()
    assert rig.post(pack(open_run().line().encode()), Content_Encoding=encoding).status_code == 200
    assert len(rig.runs()) == 1


def test_bad_spans_are_told_and_the_others_are_taken(make: Callable[..., Rig]) -> None:
    """Partial success says how many were left out and why, in both types."""
    rig = make()
    answer = rig.post(protobuf(b"\1" * 8, b"", bytes(8)), PROTOBUF)
    assert answer.status_code == 200
    told = ExportTraceServiceResponse.FromString(answer.content).partial_success
    assert (told.rejected_spans, told.error_message) == (2, "left out: 1 bad_id, 1 zero_id")
    assert len(rig.runs()) == 1
    trace = open_run()
    trace.spans.append({"name": "no ids"})
    told_json = rig.post(trace.line().encode()).json()
    assert told_json["partialSuccess"]["rejectedSpans"] == "1"
    assert told_json["partialSuccess"]["errorMessage"].startswith("left out: 1 ")
    metrics = rig.client.get("/metrics").text
    assert 'reach_scorer_spans_dropped_total{reason="zero_id"} 1.0' in metrics


def test_logs_are_taken_too(make: Callable[..., Rig]) -> None:
    """A record of a span is read; one that has a bad id is told in the response for logs."""
    rig = make()
    record = {
        "traceId": "1" * 32,
        "spanId": "2" * 16,
        "timeUnixNano": "5",
        "eventName": "gen_ai.user.message",
        "body": {"stringValue": "hello"},
    }
    bad = {**record, "spanId": "xyz"}
    body = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record, bad]}]}]}).encode()
    told = rig.post(body, path="/v1/logs").json()
    assert told["partialSuccess"]["rejectedLogRecords"] == "1"
    answer = rig.post(b"", PROTOBUF, "/v1/logs")
    assert ExportLogsServiceResponse.FromString(answer.content) == ExportLogsServiceResponse()


@pytest.mark.parametrize(
    ("body", "media", "headers", "status"),
    [
        (b"{", JSON, {}, 400),
        (b"\xff\xff\xff", PROTOBUF, {}, 400),
        (b"{}", JSON, {"Content_Encoding": "gzip"}, 400),
        (b"{}", JSON, {"Content_Encoding": "br"}, 415),
        (b"x" * 3_000, JSON, {}, 413),
        (gzip.compress(b" " * 10_000), JSON, {"Content_Encoding": "gzip"}, 413),
        (protobuf(*(bytes([n]) * 8 for n in range(1, 8))), PROTOBUF, {}, 413),
    ],
)
def test_a_refusal_is_a_status_in_the_type_of_the_request(
    make: Callable[..., Rig], body: bytes, media: str, headers: dict[str, str], status: int
) -> None:
    """Exporters show the reason: it comes as google.rpc.Status, and nothing of the request is taken."""
    rig = make(body_max=2_000, decompressed_max=4_000, spans_max=5)
    answer = rig.post(body, media, **headers)
    assert (answer.status_code, answer.headers["content-type"]) == (status, media)
    said = answer.json() if media == JSON else Status.FromString(answer.content)
    code, message = (said["code"], said["message"]) if media == JSON else (said.code, said.message)
    assert code == 3
    assert len(message) > 10
    assert "Retry-After" not in answer.headers
    assert rig.runs() == []
    assert f'reach_service_requests_total{{code="{status}",signal="traces"}} 1.0' in rig.client.get("/metrics").text


@pytest.mark.parametrize("media", ["text/plain", "", "application/x-www-form-urlencoded", "application/jsonx"])
def test_other_types_are_refused(make: Callable[..., Rig], media: str) -> None:
    """What a page of another site can send without being asked is refused by its type."""
    answer = make().post(b"{}", media)
    assert (answer.status_code, answer.headers["content-type"]) == (415, JSON)
    assert "want application/x-protobuf or application/json" in answer.json()["message"]


def test_a_missing_token_is_refused(make: Callable[..., Rig]) -> None:
    """401 says how to do better, and comes before the body is looked at."""
    rig = make(ingest_token="in-secret")
    answer = rig.post(b"{")
    assert (answer.status_code, answer.headers["www-authenticate"], answer.json()["code"]) == (401, "Bearer", 16)
    assert rig.post(b"{}", Authorization="Bearer in-secret").status_code == 200


def test_a_full_queue_is_told_with_retry_after(make: Callable[..., Rig]) -> None:
    """503 until there is room again; what was acknowledged before is scored."""
    rig = make(queue_spans=2)
    gate = threading.Event()
    rig.service.scorer._ask(lambda _: gate.wait(10))
    assert rig.post(open_run("a").line().encode()).status_code == 200
    assert rig.post(open_run("b").line().encode()).status_code == 200
    answer = rig.post(open_run("c").line().encode())
    assert (answer.status_code, answer.headers["retry-after"], answer.json()["code"]) == (503, "1", 14)
    readiness = rig.client.get("/readyz")
    assert (readiness.status_code, readiness.json()) == (503, {"ready": False, "reasons": ["the queue is full"]})
    assert rig.client.get("/healthz").status_code == 200
    gate.set()
    assert len(rig.runs()) == 2
    assert rig.post(open_run("c").line().encode()).status_code == 200
    assert rig.client.get("/readyz").status_code == 200


def test_a_stopping_service_refuses(make: Callable[..., Rig]) -> None:
    """Once told to stop, nothing is taken, and readiness says so."""
    rig = make()
    rig.service.stop_taking()
    assert rig.post(open_run().line().encode()).status_code == 503
    assert rig.client.get("/readyz").json()["reasons"] == ["the service is stopping"]


def test_what_this_package_sent_about_a_run_is_neither_scored_nor_kept(make: Callable[..., Rig]) -> None:
    """A Collector may send it round; it counts as nothing at all. An evaluation of somebody else is taken as before."""
    rig = make()
    trace = open_run()
    assert rig.post(trace.line().encode()).status_code == 200
    span = {"traceId": trace.trace_id, "spanId": "e" * 16, "name": "reach.evaluate", "endTimeUnixNano": "9"}
    scope = {"name": "reach_otel.evaluation"}
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"scope": scope, "spans": [span]}]}]}).encode()
    event = {
        "traceId": trace.trace_id,
        "spanId": trace.root,
        "eventName": "gen_ai.evaluation.result",
        "attributes": [{"key": "gen_ai.evaluation.name", "value": {"stringValue": "reach.depth"}}],
    }
    logs = json.dumps({"resourceLogs": [{"scopeLogs": [{"scope": scope, "logRecords": [event]}]}]}).encode()
    for _ in range(2):
        assert rig.post(body).json() == {}
        assert rig.post(logs, path="/v1/logs").json() == {}
    assert rig.runs() == [trace.trace_id]
    assert rig.service.scorer.health.received == 1
    rows = rig.service.journal.run(lambda c: c.execute("SELECT count(*) FROM journal").fetchone()[0]).result(10)
    assert rows == 1
    metrics = rig.client.get("/metrics").text
    assert "reach_scorer_duplicates_total 0.0" in metrics
    assert "reach_scorer_late_span_age_seconds_count 0.0" in metrics
    assert not rig.service.scorer.health.dropped().total()


def test_a_run_under_way_at_the_first_start_is_counted(
    make: Callable[..., Rig], caplog: pytest.LogCaptureFixture
) -> None:
    """Not scored: a part of it may be elsewhere. One of the past is scored; a restart with the file is no new start."""
    caplog.set_level(logging.INFO, "reach_otel.publish.notice")
    rig = make()
    since_ns = rig.service.journal.since_ns
    assert since_ns is not None

    def post(name: str, start: float, end: float) -> None:
        trace = Trace(name)
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bot"}
        trace.offset_ns = since_ns
        trace.span("invoke_agent bot", attributes, start=start, end=end, span_id=trace.root)
        assert rig.post(trace.line().encode()).status_code == 200

    def counted() -> tuple[float, float]:
        lines = rig.client.get("/metrics").text.splitlines()
        runs = sum(float(line.split()[-1]) for line in lines if line.startswith("reach_runs_total{"))
        found = 'reach_scorer_incomplete_runs_total{reason="began_before"} '
        return runs, sum(float(line.removeprefix(found)) for line in lines if line.startswith(found))

    def until(expected: tuple[float, float]) -> None:
        deadline = time.monotonic() + 10
        while counted() != expected:
            assert time.monotonic() < deadline, counted()
            time.sleep(0.02)

    post("under way", -1, 1)
    post("past", -2, -1)
    post("now", 0.5, 1)
    until((2, 1))
    [told] = [record for record in caplog.records if record.name == "reach_otel.publish.notice"]
    assert told.levelno == logging.INFO
    assert "reach_scorer_incomplete_runs_total counts" in told.getMessage()
    rig.client.__exit__(None, None, None)
    rig = make()
    assert rig.service.journal.since_ns == since_ns
    post("between", 0.5, 3)
    until((1, 0))
    assert rig.client.get("/api/runs").json()["runs"]


def test_a_failing_journal_is_told_and_scoring_goes_on(make: Callable[..., Rig]) -> None:
    """Spans are acknowledged and scored; readiness and metrics say that they are not kept."""
    rig = make()
    journal = rig.service.journal
    pages = journal.run(lambda c: c.execute("PRAGMA page_count").fetchone()[0]).result()
    journal.run(lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchall()).result()
    trace = open_run()
    trace.call("look", {"x": "y" * 200_000}, parent="f" * 16)
    assert rig.post(trace.line().encode()).status_code == 200
    (run,) = rig.runs()
    assert rig.client.get(f"/api/runs/{run}").json()["actions"]["effective"] == 2
    readiness = rig.client.get("/readyz")
    assert readiness.status_code == 503
    assert readiness.json()["reasons"] == ["the journal fails: database or disk is full"]
    metrics = rig.client.get("/metrics").text
    assert 'reach_service_journal_errors_total{stage="append"} 1.0' in metrics
    assert "reach_service_unjournalled_spans_total 2.0" in metrics
    assert "reach_service_ready 0.0" in metrics


def test_a_value_that_no_journal_can_hold_is_not_acknowledged(
    make: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A span is either kept or told as left out."""
    from reach_otel.errors import InputError
    from reach_otel.service import decode, journal_rows

    def rows_of(steps: Any) -> Any:
        if any(step.tool == "odd" for step in steps):
            raise InputError("of the test")
        return journal_rows.rows_of(steps)

    monkeypatch.setattr(decode, "rows_of", rows_of)
    rig = make()
    trace = open_run()
    trace.call("odd", {"x": 1}, parent="f" * 16)
    told = rig.post(trace.line().encode()).json()["partialSuccess"]
    assert told == {"rejectedSpans": "1", "errorMessage": "left out: 1 unwritable"}
    assert len(rig.runs()) == 1
    assert rig.service.scorer.call(lambda engine: engine.runs())[0].actions == 1


def test_variant_and_mask_are_applied(tmp_path: Path) -> None:
    """Spans that do not say their variant get the one of the settings."""
    app = create_app(ServeSettings(database=str(tmp_path / "x.db")), Settings(variant="v7"))
    with TestClient(app, base_url="http://localhost") as client:
        client.post("/v1/traces", content=open_run().line(), headers={"Content-Type": JSON})
        shown = client.get(f"/api/runs/{open_run().trace_id}").json()
    assert shown["variant"] == "v7"


def test_a_body_larger_than_announced_limits_is_not_waited_for(make: Callable[..., Rig]) -> None:
    """A length beyond the limit is refused without reading the body."""
    rig = make(body_max=100)
    answer = rig.client.post("/v1/traces", content=iter(()), headers={"Content-Type": JSON, "Content-Length": "999999"})
    assert answer.status_code == 413

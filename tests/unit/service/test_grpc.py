"""Check OTLP over gRPC: success, partial success, and refusals with the details that senders act on."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from reach_otel.errors import StateError
from reach_otel.service import otlp_grpc
from reach_otel.service.app import Service
from reach_otel.settings import ServeSettings, Settings

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
LOGS = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
Send = Callable[..., Awaitable[bytes]]


def request(*ids: bytes) -> bytes:
    made = ExportTraceServiceRequest()
    scope = made.resource_spans.add().scope_spans.add()
    for span_id in ids:
        span = scope.spans.add(trace_id=b"\1" * 16, span_id=span_id, parent_span_id=b"\7" * 8, end_time_unix_nano=9)
        span.attributes.add(key="gen_ai.operation.name").value.string_value = "execute_tool"
    return bytes(made.SerializeToString())


def serve(folder: Path, story: Callable[[Service, Send], Awaitable[None]], **settings: Any) -> None:
    """Run a story against a service that listens on gRPC."""

    async def run() -> None:
        serving = ServeSettings(database=str(folder / "x.db"), grpc_port=0, **settings)
        service = Service(serving, Settings())
        service.start()
        server = await otlp_grpc.start(service, serving)
        try:
            async with grpc.aio.insecure_channel(server.address) as channel:

                async def send(body: bytes, method: str = TRACES, **options: Any) -> bytes:
                    call: Any = channel.unary_unary(method)
                    return bytes(await call(body, timeout=10, **options))

                await story(service, send)
        finally:
            await server.stop(1)
            service.stop_taking()
            await asyncio.to_thread(service.close)

    asyncio.run(run())


def wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def details(error: grpc.aio.AioRpcError) -> list[Any]:
    trailing = dict(error.trailing_metadata() or ())
    return list(Status.FromString(trailing[otlp_grpc.DETAILS]).details) if otlp_grpc.DETAILS in trailing else []


def test_spans_and_logs_are_taken(tmp_path: Path) -> None:
    """Both services answer; what was left out is told."""

    async def story(service: Service, send: Send) -> None:
        assert await send(request(b"\1" * 8)) == b""
        told = ExportTraceServiceResponse.FromString(await send(request(b"\2" * 8, b"bad"))).partial_success
        assert (told.rejected_spans, told.error_message) == (1, "left out: 1 bad_id")
        answer = await send(ExportLogsServiceRequest().SerializeToString(), LOGS)
        assert ExportLogsServiceResponse.FromString(answer) == ExportLogsServiceResponse()
        assert await send(request(b"\3" * 8), compression=grpc.Compression.Gzip) == b""
        await asyncio.to_thread(wait, lambda: not service.scorer.room.spans)
        (run,) = await service.scorer.acall(lambda engine: engine.runs())
        assert run.actions == 3

    serve(tmp_path, story)


def test_a_full_queue_is_resource_exhausted_with_retry_info(tmp_path: Path) -> None:
    """Senders may try again only where RetryInfo says so."""

    async def story(service: Service, send: Send) -> None:
        gate = threading.Event()
        await asyncio.to_thread(wait, lambda: not service.scorer.is_replaying)
        service.scorer._ask(lambda _: gate.wait(10))
        await send(request(b"\1" * 8))
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await send(request(b"\2" * 8))
        gate.set()
        assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        (detail,) = details(raised.value)
        retry = RetryInfo()
        assert detail.Unpack(retry)
        assert retry.retry_delay.seconds == 1

    serve(tmp_path, story, queue_spans=1)


@pytest.mark.parametrize(
    ("body", "code"), [(b"\xff\xff", "INVALID_ARGUMENT"), (request(*[b"\1" * 8] * 9), "INVALID_ARGUMENT")]
)
def test_what_cannot_be_taken_is_not_to_be_sent_again(tmp_path: Path, body: bytes, code: str) -> None:
    """A refusal for good has no RetryInfo."""

    async def story(_: Service, send: Send) -> None:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await send(body)
        assert raised.value.code().name == code
        assert details(raised.value) == []

    serve(tmp_path, story, spans_max=5)


def test_a_message_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    """Also where it is small before it is unpacked."""

    async def story(_: Service, send: Send) -> None:
        for compression in (grpc.Compression.NoCompression, grpc.Compression.Gzip):
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await send(b"\x00" * 100_000, compression=compression)
            assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert details(raised.value) == []

    serve(tmp_path, story, decompressed_max=50_000)


def test_the_token_is_asked_for(tmp_path: Path) -> None:
    """UNAUTHENTICATED without it, and counted by that name."""

    async def story(service: Service, send: Send) -> None:
        for metadata in ((), (("authorization", "Bearer other"),)):
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await send(request(b"\1" * 8), metadata=metadata)
            assert raised.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert await send(request(b"\1" * 8), metadata=(("authorization", "Bearer in-secret"),)) == b""
        counted = {
            tuple(sample.labels.values()): sample.value
            for family in service.telemetry.collect()
            for sample in family.samples
            if sample.name == "reach_service_requests_total"
        }
        assert counted["traces", "UNAUTHENTICATED"] == 2
        assert counted["traces", "OK"] == 1

    serve(tmp_path, story, ingest_token="in-secret")


def test_other_methods_are_unknown(tmp_path: Path) -> None:
    """Metrics are not taken."""

    async def story(_: Service, send: Send) -> None:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await send(b"", "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export")
        assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED

    serve(tmp_path, story)


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    """The message names it, and what to do."""

    async def story(service: Service, _: Send) -> None:
        server = await otlp_grpc.start(service, ServeSettings(grpc_port=0))
        port = int(server.address.rpartition(":")[2])
        with pytest.raises(StateError, match=f":{port} cannot be listened on; choose another --grpc-port"):
            await otlp_grpc.start(service, ServeSettings(grpc_port=port))
        await server.stop(0)

    serve(tmp_path, story)

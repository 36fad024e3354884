"""Let stock exporters of two languages send runs to the service, and compare with a replay of the same spans."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from reach_otel.offline.replay import replay
from reach_otel.task import load
from tests.support.compare import assert_same
from tests.support.service import Served

pytestmark = pytest.mark.e2e

NODE = Path(__file__).parent / "node"
HOW_TO = "install Node.js with npm and let it reach a package registry (npm config set registry ...)"
TASK = """
task: shop
match: {agent: bot}
grounded: [sku, id, customer]
milestones:
  - {id: read, verify: {tool: read_ticket, result: {ok: true}}, used: true}
  - {id: stock, depends_on: [read], verify: {tool: check_inventory, when: 'result.stock > 0'}}
  - {id: update, depends_on: [stock], verify: {tool: update_ticket, result: {ok: true}}}
traps:
  - {id: refunded, verify: {tool: refund}}
"""
TOKENS = {"REACH_SERVE_INGEST_TOKEN": "in-secret", "REACH_SERVE_READ_TOKEN": "out-secret"}


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    (folder / "shop.task.yaml").write_text(TASK, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def served(tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    flags = ("--task", str(tasks), "--grpc-port", "0", "--set", "grace=0.5", "--set", "show_content=on")
    with Served(tmp_path_factory.mktemp("service"), *flags) as service:
        yield service


def act(provider: TracerProvider) -> str:
    """Be an agent that gets over one failure; gives the trace id."""
    tracer = provider.get_tracer("agent")

    def call(tool: str, args: Any, result: Any = None, error: str | None = None) -> None:
        with tracer.start_as_current_span(f"execute_tool {tool}", record_exception=False) as span:
            span.set_attribute("gen_ai.operation.name", "execute_tool")
            span.set_attribute("gen_ai.tool.name", tool)
            span.set_attribute("gen_ai.tool.call.arguments", json.dumps(args))
            if error is not None:
                span.record_exception(RuntimeError(error))
                span.set_status(StatusCode.ERROR, error)
            else:
                span.set_attribute("gen_ai.tool.call.result", json.dumps(result))

    with tracer.start_as_current_span("invoke_agent bot") as root:
        said = [{"role": "user", "parts": [{"type": "text", "content": "Ship S-1234 for T-77, schön"}]}]
        root.set_attribute("gen_ai.operation.name", "invoke_agent")
        root.set_attribute("gen_ai.agent.name", "bot")
        root.set_attribute("gen_ai.input.messages", json.dumps(said, ensure_ascii=False))
        call("read_ticket", {"id": "T-77"}, {"ok": True, "note": "customer K-4711 waits"})
        call("check_inventory", {"sku": "S-1234"}, error="inventory is down")
        call("check_inventory", {"sku": "S-1234"}, {"ok": True, "stock": 3})
        call("update_ticket", {"id": "T-77", "customer": "K-4711"}, {"ok": True})
        done = [{"role": "assistant", "parts": [{"type": "text", "content": "Done."}], "finish_reason": "stop"}]
        root.set_attribute("gen_ai.output.messages", json.dumps(done))
        return f"{root.get_span_context().trace_id:032x}"


def shown(served: Served, run: str) -> dict[str, Any]:
    """Give the record of a run once it has its verdict."""

    def answer() -> dict[str, Any] | None:
        status, _, body = served.ask("GET", f"/api/runs/{run}")
        found = json.loads(body) if status == 200 else {}
        return found if found.get("final") else None

    served.until(lambda: answer() is not None, f"the verdict on {run}")
    found = answer()
    assert found is not None
    return found


def assert_equals_replay(record: dict[str, Any], spans: Path, tasks: Path) -> None:
    (expected,) = replay([spans], load([tasks]), steps=True)
    fields = msgspec.to_builtins(expected)
    assert len(fields["steps"]) == 5
    assert fields["scores"]["depth"] == 1.0
    assert fields["scores"]["digestion"] == 1.0
    assert_same({name: record.get(name, "(absent)") for name in fields}, fields)


EXPORTERS: dict[str, Callable[[Served], SpanExporter]] = {
    "http": lambda served: HttpExporter(f"{served.address}/v1/traces"),
    "http-gzip": lambda served: HttpExporter(f"{served.address}/v1/traces", compression=Compression.Gzip),
    "grpc": lambda served: GrpcExporter(served.grpc, insecure=True),
}


@pytest.mark.parametrize("kind", EXPORTERS)
def test_python_exporter_gives_the_same_record_as_replay(
    kind: str, served: Served, tasks: Path, tmp_path: Path
) -> None:
    """What the stock Python exporter sends is scored as a replay of the very spans, in every field and step."""
    kept = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource.create({"service.name": "shop", "service.version": "1.0"}))
    provider.add_span_processor(SimpleSpanProcessor(kept))
    provider.add_span_processor(BatchSpanProcessor(EXPORTERS[kind](served)))
    run = act(provider)
    provider.shutdown()
    file = tmp_path / "spans.pb"
    file.write_bytes(encode_spans(kept.get_finished_spans()).SerializeToString())
    assert_equals_replay(shown(served, run), file, tasks)


class Recorder:
    """Stand between an exporter and the service, and keep the bodies as they went by."""

    def __init__(self, served: Served, folder: Path) -> None:
        recorder = self
        self.bodies: list[Path] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.chunks() if "Content-Length" not in self.headers else self.rfile.read(self.length())
                plain = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
                file = folder / f"body-{len(recorder.bodies)}"
                file.write_bytes(plain)
                recorder.bodies.append(file)
                there = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
                wanted = ("Content-Type", "Content-Encoding", "Authorization")
                there.request("POST", self.path, body, {n: self.headers[n] for n in wanted if n in self.headers})
                answer = there.getresponse()
                text = answer.read()
                there.close()
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.headers["Content-Type"])
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def length(self) -> int:
                return int(self.headers["Content-Length"])

            def chunks(self) -> bytes:
                parts = []
                while size := int(self.rfile.readline(), 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(parts)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1/traces"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture(scope="module")
def node_agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the stock Node.js exporters into a folder of their own; without them the test cannot run."""
    folder = tmp_path_factory.mktemp("node")
    for name in ("package.json", "agent.js"):
        shutil.copy(NODE / name, folder)
    npm = shutil.which("npm")
    trouble = "npm is not there"
    if npm is not None and shutil.which("node") is not None:
        command = [npm, "install", "--no-audit", "--no-fund", "--silent", "--ignore-scripts"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode == 0:
            return folder / "agent.js"
        trouble = (done.stderr or done.stdout).strip()[-500:]
    if os.environ.get("CI"):
        pytest.fail(f"the exporters of Node.js cannot be installed: {trouble}; {HOW_TO}")
    pytest.skip(f"the exporters of Node.js cannot be installed: {trouble}; {HOW_TO}")


@pytest.mark.slow
@pytest.mark.parametrize(("form", "compression"), [("proto", "none"), ("proto", "gzip"), ("http", "none")])
def test_node_exporter_gives_the_same_record_as_replay(
    form: str, compression: str, node_agent: Path, served: Served, tasks: Path, tmp_path: Path
) -> None:
    """What the stock Node.js exporter sends, protobuf or JSON, is scored as a replay of the same bodies."""
    recorder = Recorder(served, tmp_path)
    try:
        done = subprocess.run(
            ["node", str(node_agent), form, recorder.url, compression],
            cwd=node_agent.parent,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        recorder.close()
    assert done.returncode == 0, done.stderr
    (body,) = recorder.bodies
    assert_equals_replay(shown(served, done.stdout.strip()), body, tasks)


def test_tokens_are_asked_for_on_every_way_in(tasks: Path, tmp_path: Path) -> None:
    """Without its token nobody sends or reads; with it both work, over HTTP and gRPC."""
    with Served(tmp_path, "--task", str(tasks), "--grpc-port", "0", "--set", "grace=0.1", env=TOKENS) as served:
        body = encode_spans([]).SerializeToString()
        protobuf = {"Content-Type": "application/x-protobuf"}
        assert served.ask("POST", "/v1/traces", body, protobuf)[0] == 401
        wrong = {**protobuf, "Authorization": "Bearer out-secret"}
        assert served.ask("POST", "/v1/traces", body, wrong)[0] == 401
        for path in ("/api/runs", "/metrics", "/api/events"):
            assert served.ask("GET", path)[0] == 401, path
            assert served.ask("GET", path, headers={"Authorization": "Bearer in-secret"})[0] == 401, path
        assert served.ask("GET", "/healthz")[0] == 200
        served.until(lambda: served.ask("GET", "/readyz")[0] == 200, "readiness")
        read = {"Authorization": "Bearer out-secret"}
        assert served.ask("GET", "/api/runs", headers=read)[0] == 200
        runs = []
        for exporter in (
            HttpExporter(f"{served.address}/v1/traces", headers={"Authorization": "Bearer in-secret"}),
            GrpcExporter(served.grpc, insecure=True, headers=(("authorization", "Bearer in-secret"),)),
        ):
            provider = TracerProvider()
            provider.add_span_processor(SimpleSpanProcessor(exporter))
            runs.append(act(provider))
            provider.shutdown()
        for run in runs:
            served.until(lambda run=run: served.ask("GET", f"/api/runs/{run}", headers=read)[0] == 200, "both runs")

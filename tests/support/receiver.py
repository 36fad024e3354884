"""Take OTLP over HTTP as a store of traces and logs does, and keep what came in plain values."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Came:
    """One span or log record; ``parent`` is of spans, and ``start_ns`` the time of a record."""

    name: str
    trace_id: str
    span_id: str
    parent: str
    start_ns: int
    end_ns: int
    flags: int
    scope: str
    attributes: dict[str, Any]
    resource: dict[str, Any] = field(repr=False)


class Receiver:
    """An OTLP/HTTP receiver on a free port; a context manager that ends it. ``status`` is what it answers."""

    def __init__(self, *, status: int = 200) -> None:
        self.status = status
        self.bodies: list[tuple[str, bytes]] = []
        self.tokens: list[str | None] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.tokens.append(self.headers["Authorization"])
                receiver.bodies.append((self.path, body))
                self.send_response(receiver.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def __enter__(self) -> Receiver:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def spans(self, name: str | None = None) -> list[Came]:
        """Give the spans in order of arrival, all or those of a name."""
        return [span for path, body in list(self.bodies) if path == "/v1/traces" for span in spans_of(body, name)]

    def logs(self, name: str | None = None) -> list[Came]:
        """Give the log records likewise."""
        return [log for path, body in list(self.bodies) if path == "/v1/logs" for log in logs_of(body, name)]

    def until(self, condition: Callable[[], object], seconds: float = 20) -> None:
        """Wait for something to become true."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain; came {self.spans()} {self.logs()}"
            time.sleep(0.02)


@contextmanager
def hole() -> Iterator[str]:
    """Give the URL of what takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(50)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def spans_of(body: bytes, name: str | None = None) -> list[Came]:
    """Read the spans of one request."""
    return [
        Came(
            raw.name,
            raw.trace_id.hex(),
            raw.span_id.hex(),
            raw.parent_span_id.hex(),
            raw.start_time_unix_nano,
            raw.end_time_unix_nano,
            raw.flags,
            scoped.scope.name,
            _plain(raw.attributes),
            _plain(group.resource.attributes),
        )
        for group in ExportTraceServiceRequest.FromString(body).resource_spans
        for scoped in group.scope_spans
        for raw in scoped.spans
        if name in (None, raw.name)
    ]


def logs_of(body: bytes, name: str | None = None) -> list[Came]:
    """Read the log records of one request."""
    return [
        Came(
            raw.event_name,
            raw.trace_id.hex(),
            raw.span_id.hex(),
            "",
            raw.time_unix_nano,
            raw.time_unix_nano,
            raw.flags,
            scoped.scope.name,
            _plain(raw.attributes),
            _plain(group.resource.attributes),
        )
        for group in ExportLogsServiceRequest.FromString(body).resource_logs
        for scoped in group.scope_logs
        for raw in scoped.log_records
        if name in (None, raw.event_name)
    ]


def _plain(attributes: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in attributes}


def _value(raw: Any) -> Any:
    kind = raw.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in raw.array_value.values]
    return getattr(raw, kind) if kind else None

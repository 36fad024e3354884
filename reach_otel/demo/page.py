"""Serve the live page beside the demo: the real service, on loopback, fed by the agents' own spans over OTLP."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from reach_otel.service.app import create_app
from reach_otel.settings import PortRange, ServeSettings, Settings

HOST = "127.0.0.1"
BATCH_SECONDS = 0.2
START_SECONDS = 15.0
STOP_SECONDS = 10.0

logger = logging.getLogger(__name__)


@contextmanager
def served(task_file: Path, ports: PortRange | None) -> Iterator[str | None]:
    """Serve while the ``with`` block lasts; give the page's address, ``None`` where no port is free or wanted.

    The history is in a temporary folder. To be entered once the process has its tracer provider, and left when its
    agents have ended: what they said last is still sent.
    """
    listener = _listen(ports) if ports is not None else None
    if listener is None:
        yield None
        return
    port = listener.getsockname()[1]
    with listener, TemporaryDirectory(prefix="reach-otel-demo-") as folder:
        settings = ServeSettings(host=HOST, port=port, database=str(Path(folder) / "runs.db"))
        app = create_app(settings, Settings(tasks=(str(task_file),)))
        config = uvicorn.Config(app, log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],), name="demo-page", daemon=True)
        thread.start()
        sender = None
        try:
            _wait(server, thread)
            sender = _send_to(f"http://{HOST}:{port}/v1/traces")
            yield f"http://{HOST}:{port}/"
        finally:
            if sender is not None:
                sender.shutdown()  # type: ignore[no-untyped-call]
            server.should_exit = True
            thread.join(STOP_SECONDS)


def _listen(ports: PortRange) -> socket.socket | None:
    for port in ports.ports():
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
            listener.listen()
        except OSError:
            listener.close()
            continue
        return listener
    logger.warning("no port of %s is free on %s: the demo has no page", ports, HOST)
    return None


def _wait(server: uvicorn.Server, thread: threading.Thread) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not server.started and thread.is_alive() and time.monotonic() < deadline:
        time.sleep(0.02)


def _send_to(endpoint: str) -> BatchSpanProcessor | None:
    """Let the process's tracer provider send its spans there too."""
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        return None
    sender = BatchSpanProcessor(OTLPSpanExporter(endpoint, timeout=2), schedule_delay_millis=BATCH_SECONDS * 1e3)
    provider.add_span_processor(sender)
    return sender

"""Start the Collector with the configuration files of this repository, as a user does, and send to it."""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from tests.support.programs import need
from tools.stack import ports
from tools.stack.process import DIRECT, Part, answers

FOLDER: Final = Path(__file__).parents[2] / "collector"
KEY: Final = "a key for tests, of at least 32 bytes"
PATIENCE_SECONDS: Final = 60.0
JSON: Final = {"Content-Type": "application/json"}

_TO_A_FILE: Final = """
exporters: {file/store: {path: "${env:STORE_FILE}", append: true, flush_interval: 200ms}}
service: {pipelines: {traces/store: {exporters: [file/store]}}}
"""
"""Laid over a configuration: a file is the trace store."""

Signal = Literal["traces", "logs"]


class Collector:
    """A Collector with a folder for its queue; a context manager that ends it.

    ``files`` are names in ``collector/``; ``scorers`` are the OTLP/gRPC addresses of scorers.
    """

    def __init__(
        self,
        folder: Path,
        *files: str,
        scorers: Sequence[str],
        env: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.store = folder / "store.jsonl"
        self.headers = headers or {}
        self.port, self._grpc_port, self._health, self._metrics = ports.choose_any("abcd").values()
        self.grpc = f"127.0.0.1:{self._grpc_port}"
        self._env = {
            "OTLP_HTTP_PORT": str(self.port),
            "OTLP_GRPC_PORT": str(self._grpc_port),
            "HEALTH_ENDPOINT": f"127.0.0.1:{self._health}",
            "METRICS_PORT": str(self._metrics),
            "STORAGE_DIR": str(folder / "queue"),
            "STORE_FILE": str(self.store),
            "REDACTION_KEY": KEY,
            **(env or {}),
        }
        overlay = folder / "store.yaml"
        overlay.write_text(_TO_A_FILE, encoding="utf-8")
        self._command = [str(need("otelcol")), *(f"--config=file:{FOLDER / name}" for name in files)]
        if "queue.yaml" not in files:
            self._command.append(f"--config=file:{overlay}")
        self.start(scorers)

    def start(self, scorers: Sequence[str]) -> None:
        """Start it, also again and with other scorers."""
        env = {**self._env, "SCORER_ENDPOINT": scorers[0], "SCORERS": f"[{', '.join(scorers)}]"}
        ready = answers(f"http://127.0.0.1:{self._health}/")
        self.part = Part("collector", self._command, self.folder / "collector.log", env=env, is_ready=ready)
        self.part.start()
        self.part.wait()

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *_: object) -> None:
        self.part.stop()

    def ask(self, signal: Signal, body: bytes) -> int:
        """Send one request; gives the status."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("POST", f"/v1/{signal}", body, {**JSON, **self.headers})
            return connection.getresponse().status
        finally:
            connection.close()

    def send(self, signal: Signal, body: bytes) -> None:
        """Send one request until it is acknowledged, as exporters do."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                status = self.ask(signal, body)
            except (OSError, http.client.HTTPException):
                status = 0
            if status == 200:
                return
            assert status in (0, 429, 503), status
            assert time.monotonic() < deadline, "the Collector does not take it"
            time.sleep(0.05)

    def metrics(self) -> dict[tuple[str, str], float]:
        """Give its own metrics by name and labels."""
        with DIRECT.open(urllib.request.Request(f"http://127.0.0.1:{self._metrics}/metrics"), timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        found = (re.fullmatch(r"(\w+)(\{.*\})? (\S+)", line) for line in lines if not line.startswith("#"))
        return {(match[1], match[2] or ""): float(match[3]) for match in found if match}

    def metric(self, name: str, *parts: str) -> float:
        """Add up the samples of a metric of which the labels have all of these parts."""
        samples = self.metrics().items()
        return sum(value for (key, labels), value in samples if key == name and all(part in labels for part in parts))

    def waiting(self) -> float:
        """Give the bytes that wait to be sent to scorers."""
        queues = ("load_balancing", "otlp_grpc/scorer")
        return sum(self.metric("otelcol_exporter_queue_size", f'exporter="{queue}"') for queue in queues)

    def stored(self, trace_id: str) -> list[dict[str, Any]]:
        """Give the spans of a trace in the trace store."""
        text = self.store.read_text(encoding="utf-8") if self.store.exists() else ""
        lines = text[: text.rfind("\n") + 1].splitlines()  # the last one may be half written
        return [
            span
            for line in lines
            if trace_id in line
            for resource in json.loads(line)["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
            if span["traceId"] == trace_id
        ]


def until(condition: Callable[[], bool], what: str, patience_seconds: float = PATIENCE_SECONDS) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + patience_seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)

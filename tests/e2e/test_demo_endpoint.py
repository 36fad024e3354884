"""Let the demo's agents send their spans to a service, as agents in production do, and to what is none."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.service import Served

pytestmark = pytest.mark.e2e

DEMO = [sys.executable, "-m", "reach_otel.cli.main", "demo"]
TASK = "reach_otel/demo/ticket.task.yaml"
PATIENCE_SECONDS = 60.0


def demo(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*DEMO, *options], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)


@contextmanager
def answering(*codes: int, later_seconds: float = 0.0) -> Iterator[str]:
    """Serve something that answers POST with these codes in turn, and then always with the last one.

    After the first answer it takes ``later_seconds`` for each.
    """
    left = list(codes)
    asked = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if asked.is_set():
                time.sleep(later_seconds)
            asked.set()
            self.send_response(left.pop(0) if len(left) > 1 else left[0])
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def test_every_run_that_it_tells_of_arrives(tmp_path: Path) -> None:
    """Also those that ended last: each run that is printed has a verdict in the service, and none is printed here."""
    with Served(tmp_path, "--task", TASK, "--set", "grace=0.2") as service:
        agents = subprocess.Popen(
            [*DEMO, "--endpoint", service.address, "--agents", "3", "--pace", "0.1", "--degrade-after", "1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "OTEL_BSP_SCHEDULE_DELAY": "200"},
            text=True,
        )
        try:
            service.until(lambda: service.metrics().get("reach_runs_total", 0) >= 5, "some verdicts")
            agents.send_signal(signal.SIGINT)
            out, err = agents.communicate(timeout=PATIENCE_SECONDS)
        finally:
            agents.kill()
        assert (agents.returncode, err) == (0, "")
        runs = re.findall(r" s  ([0-9a-f]{32})  ", out)
        assert len(runs) >= 5
        service.until(lambda: service.metrics()["reach_runs_total"] >= len(runs), "the last verdicts")
        assert service.metrics()["reach_runs_total"] == len(runs)
        for run in runs:
            assert service.get(f"/api/runs/{run}")["task"] == "ticket-handling"
    assert f"3 agents send their spans to {service.address}; nothing is scored here" in out
    assert "DEGRADED" in out
    assert f"{len(runs)} runs: " in out
    assert "all spans were sent" in out
    assert not re.search(r"depth|purity|high-layer", out)


def test_where_nothing_answers_it_says_so() -> None:
    """One message with the address and what to start, exit code 2, no traceback."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # taken, and nobody listens
        address = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        done = demo("--endpoint", address)
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(rf"reach-otel: --endpoint {address}: nothing answers there \(.*refused.*\n", done.stderr)
    assert "reach-otel serve" in done.stderr


@pytest.mark.parametrize(("code", "says"), [(401, "set REACH_TOKEN"), (404, "takes no OTLP at /v1/traces")])
def test_what_refuses_spans_is_told_of_at_once(code: int, says: str) -> None:
    """With what to change; the agents do not even start."""
    with answering(code) as address:
        done = demo("--endpoint", address)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stdout == ""


def test_lost_spans_are_told_of() -> None:
    """Spans that are refused later are not lost silently: a line says so at the end, and the exit code is 1."""
    with answering(200, 400) as address:
        done = demo("--endpoint", address, "--duration", "1", "--pace", "0.1")
    assert done.returncode == 1
    assert re.search(r"LOST: .*400", done.stdout)
    assert "all spans were sent" not in done.stdout


def test_the_last_runs_are_told_of_when_they_end() -> None:
    """With the time at which the agents ended, however long the sending of the last spans takes after that."""
    with answering(200, later_seconds=2.0) as address:
        done = demo("--endpoint", address, "--duration", "1", "--pace", "0.1")
    assert (done.returncode, done.stderr) == (0, "")
    runs = [
        float(seconds)
        for seconds in re.findall(r"^ *([\d.]+) s  [a-z ]+ [\d.]+ s  [0-9a-f]{32}  ", done.stdout, re.MULTILINE)
    ]
    (ended,) = re.findall(r"^ *([\d.]+) s  (\d+) runs: .*, in 0:00:0\d$", done.stdout, re.MULTILINE)
    (sent,) = re.findall(r"^ *([\d.]+) s  all spans were sent$", done.stdout, re.MULTILINE)
    assert len(runs) == int(ended[1])
    assert max(runs) <= float(ended[0])
    assert float(sent) >= float(ended[0]) + 1.9


def test_a_password_in_the_address_is_not_printed() -> None:
    """It is refused, with the way to give a token."""
    done = demo("--endpoint", "http://me:s3cret@127.0.0.1:4318")
    assert done.returncode == 2
    assert "give a token by REACH_TOKEN instead" in done.stderr
    assert "s3cret" not in done.stdout + done.stderr


def test_what_speaks_no_http_is_told_of() -> None:
    """As a gRPC port may answer: one message, no traceback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = threading.Event()

        def answer() -> None:
            while not ended.is_set():
                connection, _ = server.accept()
                with connection:
                    connection.recv(65_536)
                    connection.sendall(b"\x00\x00\x06 no HTTP\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        try:
            done = demo("--endpoint", f"http://127.0.0.1:{server.getsockname()[1]}")
        finally:
            ended.set()
            socket.create_connection(server.getsockname()).close()
            thread.join(PATIENCE_SECONDS)
    assert done.returncode == 2
    assert "nothing answers there" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_address_that_is_none_is_a_wrong_option() -> None:
    """As for every other setting of that kind."""
    done = demo("--endpoint", "collector:4318")
    assert done.returncode == 2
    assert "endpoint" in done.stderr
    assert "Traceback" not in done.stderr

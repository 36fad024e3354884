"""The demo serves the live page beside its terminal, from the first run to the last, and takes it down clean."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from typing import Any

import pytest

pytestmark = pytest.mark.e2e

DEMO = [sys.executable, "-m", "reach_otel.cli.main", "demo", "--plain", "--metrics-port", "none"]
PATIENCE_SECONDS = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def runs(port: int) -> list[dict[str, Any]]:
    """Return the finished runs that the page's API has; none while nothing listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/runs?live=false", timeout=5) as answer:
            found: list[dict[str, Any]] = json.load(answer)["runs"]
            return found
    except OSError:
        return []


def test_the_page_shows_the_runs_of_the_demo() -> None:
    """Its address is printed, finished runs are there with their verdict, and Ctrl-C ends all with nothing to say."""
    port = free_port()
    demo = subprocess.Popen(
        [*DEMO, "--page-port", str(port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (found := runs(port)):
            assert time.monotonic() < deadline
            assert demo.poll() is None
            time.sleep(0.2)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
            page = answer.read().decode()
        assert found[0]["task"] == "ticket-handling"
        assert found[-1]["run"] in page
        demo.send_signal(signal.SIGINT)
        out, err = demo.communicate(timeout=PATIENCE_SECONDS)
    finally:
        demo.kill()
    assert (demo.returncode, err) == (0, "")
    assert f"http://127.0.0.1:{port}/" in out


def test_a_port_that_is_taken_costs_the_page_alone() -> None:
    """Of a range the first free port is taken; without one the demo says so and goes on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [*DEMO, "--duration", "1"]
        alone = subprocess.run([*command, "--page-port", str(port)], capture_output=True, text=True, check=True)
        assert f"no port of {port} is free" in alone.stderr
        ranged = subprocess.run(
            [*command, "--page-port", f"{port}-{min(65_535, port + 20)}"], capture_output=True, text=True, check=True
        )
    found = re.search(r"http://127\.0\.0\.1:(\d+)/", ranged.stdout)
    assert found is not None
    assert int(found[1]) > port


def test_a_port_that_is_none_is_refused() -> None:
    """The message names the option and what it wants."""
    done = subprocess.run([*DEMO, "--page-port", "here"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--page-port: found 'here', want a port" in done.stderr

"""Run the demo as a user does: in a terminal and without one, until the time is up and until Ctrl-C."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable

import pytest
from prometheus_client.parser import text_string_to_metric_families

pytestmark = pytest.mark.e2e

DEMO = [sys.executable, "-m", "reach_otel.cli.main", "demo"]
PATIENCE_SECONDS = 60.0
SERIES = (
    "reach_run_depth_ratio",
    "reach_run_purity_ratio",
    "reach_run_digestion_ratio",
    "reach_run_score_ratio",
    "reach_milestone_reached",
    "reach_high_layer_expected",
    "reach_high_layer_reached",
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.1)


def scraped(port: int) -> dict[str, float]:
    """Return the sum of every sample's values, by name; empty while nothing listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
    except OSError:
        return {}
    values: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            values[sample.name] = values.get(sample.name, 0.0) + sample.value
    return values


def test_without_a_terminal_it_prints_lines_and_ends_clean_on_ctrl_c() -> None:
    """Live numbers are at the metrics address while it runs; Ctrl-C gives a summary, exit code 0 and no traceback."""
    port = free_port()
    demo = subprocess.Popen(
        [*DEMO, "--metrics-port", str(port), "--agents", "6"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        # a verdict shows in /metrics before its line is printed, so wait for more than the first one
        until(lambda: scraped(port).get("reach_run_depth_ratio_count", 0) >= 6, "some verdicts in /metrics")
        values = scraped(port)
        for name in SERIES:
            assert any(found.startswith(name) for found in values), name
        demo.send_signal(signal.SIGINT)
        out, err = demo.communicate(timeout=PATIENCE_SECONDS)
    finally:
        demo.kill()
    assert demo.returncode == 0
    assert err == ""
    assert f"127.0.0.1:{port}/metrics" in out
    assert "what the agents did, and what the scores say of it" in out
    assert re.search(r"\d+\.\d s  (success|partial|failed) ", out)


def test_in_a_terminal_it_shows_runs_on_their_way_and_ends_clean() -> None:
    """The live view draws running and finished runs, and leaves the terminal with the summary alone."""
    ours, theirs = pty.openpty()
    demo = subprocess.Popen(
        [*DEMO, "--metrics-port", "none", "--duration", "8"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "110", "LINES": "36"},
        close_fds=True,
    )
    os.close(theirs)
    drawn = bytearray()
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        while time.monotonic() < deadline:
            if not select.select([ours], [], [], 1.0)[0]:
                continue
            try:
                chunk = os.read(ours, 65_536)
            except OSError:  # the other end is closed
                break
            if not chunk:
                break
            drawn += chunk
        assert demo.wait(timeout=10) == 0
    finally:
        demo.kill()
        os.close(ours)
    live, _, after = drawn.decode(errors="replace").partition("\x1b[?1049l")
    assert "\x1b[?1049h" in live
    for words in ("Running", "Finished", "read_ticket", "high-layer reach", "reached"):
        assert words in live
    assert "what the agents did" in after
    assert "Traceback" not in live + after


@pytest.mark.slow
def test_high_layer_reach_falls_below_one_half_when_degraded() -> None:
    """The mark comes by itself once the agents get worse, and goes when they get better."""
    command = [*DEMO, "--metrics-port", "none", "--agents", "8", "--duration", "55"]
    done = subprocess.run(
        [*command, "--degrade-after", "12", "--recover-after", "34"], capture_output=True, text=True, check=True
    )
    marks = [
        (float(at), float(reach)) for at, reach in re.findall(r"([\d.]+) s  high-layer reach ([\d.]+)", done.stdout)
    ]
    assert [reach for at, reach in marks if at < 13][-1] >= 0.5
    assert min(reach for at, reach in marks if 25 < at < 42) < 0.5
    assert "HIGH RISK" in done.stdout
    assert marks[-1][1] > 0.5

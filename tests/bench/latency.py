"""Measure how long after the end of its root span a run's verdict stands in ``/metrics``, over HTTP."""

from __future__ import annotations

import re
import time
import urllib.request
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import TracerProvider

from reach_otel.instrument import Reach
from reach_otel.settings import PortRange, Settings
from tests.bench.agent_thread import ATTRIBUTES
from tests.bench.workload import TASK

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

GOAL_MS = 100.0
WAIT_SECONDS_MAX = 10.0
_RUNS = re.compile(rb"^reach_runs_total\{.*\} ([0-9.e+]+)", re.MULTILINE)


def measure(*, runs: int = 7, grace_seconds: float = 0.5) -> float:
    """Give the median milliseconds beyond ``grace`` from a root's end to the first scrape that counts its run."""
    provider = TracerProvider()
    tracer = provider.get_tracer("bench")
    with TemporaryDirectory() as folder:
        Path(folder, "bench.task.yaml").write_text(TASK, encoding="utf-8")
        settings = Settings(tasks=(folder,), grace=grace_seconds, metrics_port=PortRange(0, 0))
        reach = Reach(settings, provider, None)
    try:
        address = reach.metrics_address
        if address is None:
            raise RuntimeError("no port to serve metrics on")
        return median(_one(tracer, address) - grace_seconds for _ in range(runs)) * 1e3
    finally:
        reach.shutdown()


def _one(tracer: Tracer, address: str) -> float:
    before = _closed(address)
    with tracer.start_as_current_span(
        "invoke_agent bench_agent",
        attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bench_agent"},
    ):
        for _ in range(5):
            tracer.start_span("execute_tool check_inventory", attributes=ATTRIBUTES).end()
    ended = time.perf_counter()
    while _closed(address) == before:
        if time.perf_counter() - ended > WAIT_SECONDS_MAX:
            raise TimeoutError("the verdict never came")
        time.sleep(0.002)
    return time.perf_counter() - ended


def _closed(address: str) -> float:
    with urllib.request.urlopen(address, timeout=WAIT_SECONDS_MAX) as answer:
        return sum(float(number) for number in _RUNS.findall(answer.read()))

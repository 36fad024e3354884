"""Measure the service as a process: rate over loopback with the journal, time to the verdict, memory of open runs."""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tests.bench.scoring import bodies_of_open_runs
from tests.bench.service_path import walk
from tests.bench.timing import cpu_seconds
from tests.bench.workload import TASK, GenAiRun, requests
from tests.support.service import PROTOBUF, Served

if TYPE_CHECKING:
    from collections.abc import Iterable

GOAL = 0.5
GRACE_SECONDS = 0.3
GOAL_MS = 100.0
GOAL_MIB = 500
SENDERS = 4
_RUNS = re.compile(rb"^reach_runs_total\{.*\} ([0-9.e+]+)", re.MULTILINE)


@dataclass(frozen=True)
class Rate:
    """Hold one measurement; ``ratio`` is of processor time, so that it speaks of one core."""

    ratio: float
    micros: float  # of processor time a span, of the whole process
    spans_a_second: float  # as seen from outside


def rate(*, runs: int = 1_200, rounds: int = 3) -> Rate:
    """Send runs of 8 actions as fast as the service takes them, against bare decoding of the same bodies."""
    found = [_rate_once(runs) for _ in range(rounds)]
    return Rate(*(median(getattr(one, name) for one in found) for name in ("ratio", "micros", "spans_a_second")))


def _rate_once(runs: int) -> Rate:
    bodies = requests([GenAiRun(8, seed=n).spans() for n in range(runs)])
    with _service("--set", f"grace={GRACE_SECONDS}") as served:
        _send(served, requests([GenAiRun(8, seed=n).spans() for n in range(50)]))  # warm up
        _settle(served, 50)
        before, started = served.metrics(), time.perf_counter()
        _send(served, bodies)
        _settle(served, 50 + runs)
        seconds = time.perf_counter() - started
        after = served.metrics()
    spans = sum(walk(body) for body in bodies)
    bare = median(cpu_seconds(lambda: [walk(body) for body in bodies]) for _ in range(3))
    spent = after["process_cpu_seconds_total"] - before["process_cpu_seconds_total"]
    return Rate(bare / spent, spent / spans * 1e6, spans / seconds)


def latency(*, runs: int = 7, grace_seconds: float = 0.5) -> float:
    """Give the median milliseconds beyond ``grace`` from a root's arrival to the first scrape that counts its run."""
    with _service("--set", f"grace={grace_seconds}") as served:
        return median(_late(served, n) - grace_seconds for n in range(runs)) * 1e3


def _late(served: Served, seed: int) -> float:
    (body,) = requests([GenAiRun(5, seed=seed).spans()])
    before = _closed(served)
    connection = served.connect()
    connection.request("POST", "/v1/traces", body, PROTOBUF)
    connection.getresponse().read()
    arrived = time.perf_counter()
    connection.close()
    while _closed(served) == before:
        if time.perf_counter() - arrived > 10:
            raise TimeoutError("the verdict never came")
        time.sleep(0.002)
    return time.perf_counter() - arrived


@dataclass(frozen=True)
class Memory:
    """Hold the figures of one measurement; MiB are resident memory of the process above its idle state."""

    runs: int
    actions: int
    mib: float


def memory(*, runs: int = 50_000, actions: int = 5) -> Memory:
    """Open runs through the service and see how much its process grows."""
    with _service() as served:
        _send(served, list(bodies_of_open_runs(20, actions)))
        _idle(served)
        before = _resident_mib(served)
        _send(served, bodies_of_open_runs(runs, actions))
        _idle(served)
        return Memory(runs, actions, _resident_mib(served) - before)


@contextmanager
def _service(*flags: str) -> Iterator[Served]:
    with TemporaryDirectory() as folder:
        tasks = Path(folder, "tasks")
        tasks.mkdir()
        (tasks / "bench.task.yaml").write_text(TASK, encoding="utf-8")
        with Served(Path(folder), "--task", str(tasks), *flags) as served:
            yield served


def _send(served: Served, bodies: Iterable[bytes]) -> None:
    """Send bodies on some connections side by side, again where the service is full."""
    lock, left = threading.Lock(), iter(bodies)
    failed: list[str] = []

    def send() -> None:
        connection = served.connect()
        while True:
            with lock:
                body = next(left, None)
            if body is None:
                connection.close()
                return
            if status := _post(connection, body):
                failed.append(f"answered {status}")
                return

    threads = [threading.Thread(target=send) for _ in range(SENDERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise RuntimeError(failed[0])


def _post(connection: http.client.HTTPConnection, body: bytes) -> int:
    """Send one body until it is taken; gives 0, or a status that does not go away."""
    while True:
        connection.request("POST", "/v1/traces", body, PROTOBUF)
        answer = connection.getresponse()
        answer.read()
        if answer.status == 200:
            return 0
        if answer.status not in (429, 503):
            return answer.status
        time.sleep(0.05)


def _settle(served: Served, runs: int) -> None:
    # /api/system, as a scrape would cost as much as some hundred spans
    served.until(lambda: served.get("/api/system")["verdicts"]["total"] >= runs, "all verdicts", 300.0)


def _idle(served: Served) -> None:
    served.until(lambda: served.metrics()["reach_scorer_queue_spans"] == 0, "an empty queue", 300.0)


def _closed(served: Served) -> float:
    return sum(float(number) for number in _RUNS.findall(served.ask("GET", "/metrics")[2]))


def _resident_mib(served: Served) -> float:
    return served.metrics()["process_resident_memory_bytes"] / 2**20

"""Send more than the scorer can take: senders are told to come again, memory stays bounded, nothing taken is lost."""

from __future__ import annotations

import http.client
import sqlite3
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from reach_otel.offline.replay import replay
from reach_otel.task import load
from tests.bench.workload import TASK, GenAiRun, requests
from tests.support.service import PROTOBUF, Served

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

RUNS = 2_000
ACTIONS = 6
SENDERS = 12
MIB = 1 << 20
MEMORY_MIB = 200  # above the idle process; see the limits below
LIMITS = (
    "queue_spans=4000",
    f"queue_bytes={8 * MIB}",
    f"inflight_bytes={6 * MIB}",
    "grace=10",  # no verdict before the last span: senders overtake one another
    "runs_max=4000",
)


def test_overload_is_told_bounded_and_loses_nothing(tmp_path: Path) -> None:
    """429 and 503 with Retry-After; memory under the limit set; /healthz within 1 s; all runs scored right."""
    (tmp_path / "bench.task.yaml").write_text(TASK, encoding="utf-8")
    bodies = requests([GenAiRun(ACTIONS, seed=n).spans() for n in range(RUNS)], concurrent=40, batch=300)
    flags = [part for limit in LIMITS for part in ("--set", limit)]
    answers: Counter[int] = Counter()
    waits: list[float] = []
    resident: list[float] = []
    faults: list[str] = []
    done = threading.Event()
    with Served(tmp_path, "--task", str(tmp_path), *flags) as served:
        assert served.ask("GET", "/healthz")[0] == 200
        idle_mib = resident_mib(served)

        def watch() -> None:
            while not done.wait(0.05):
                asked = time.monotonic()
                if served.ask("GET", "/healthz")[0] != 200:
                    faults.append("/healthz failed")
                waits.append(time.monotonic() - asked)
                resident.append(resident_mib(served))

        lock, left = threading.Lock(), iter(bodies)

        def send() -> None:
            connection = served.connect()
            while True:
                with lock:
                    body = next(left, None)
                if body is None:
                    break
                if fault := post(connection, body, answers):
                    faults.append(fault)
                    break
            connection.close()

        watcher = threading.Thread(target=watch)
        senders = [threading.Thread(target=send) for _ in range(SENDERS)]
        for thread in (watcher, *senders):
            thread.start()
        for thread in senders:
            thread.join()
        served.until(lambda: served.metrics()["reach_runs_total"] == RUNS, "all verdicts", 90.0)
        done.set()
        watcher.join()
        metrics = served.metrics()
    assert faults == []
    assert answers[200] == len(bodies)
    assert answers[503] + answers[429] > 0, "the sender was not faster than the scorer"
    assert max(waits) < 1.0
    assert max(resident) - idle_mib < MEMORY_MIB, (max(resident), idle_mib)
    assert metrics["reach_scorer_spans_dropped_total"] == 0
    assert metrics["reach_service_unjournalled_spans_total"] == 0
    with sqlite3.connect(served.database) as connection:
        found = connection.execute("SELECT run, actions, depth, composite FROM runs ORDER BY run").fetchall()
        assert found == expected(bodies, tmp_path)
        assert connection.execute("SELECT count(*) FROM journal").fetchall() == [(0,)]
    connection.close()


def expected(bodies: list[bytes], folder: Path) -> list[tuple[str, int, float, float]]:
    """Score the same bodies offline."""
    file = folder / "bodies.pb"
    file.write_bytes(b"".join(len(body).to_bytes(4, "big") + body for body in bodies))
    records = replay([file], load([folder]))
    return sorted((r.run, sum(r.actions.values()), r.scores.depth, r.scores.composite) for r in records)


def post(connection: http.client.HTTPConnection, body: bytes, answers: Counter[int]) -> str | None:
    """Send a body as an exporter does, until it is acknowledged; says what went wrong."""
    while True:
        connection.request("POST", "/v1/traces", body, PROTOBUF)
        answer = connection.getresponse()
        answer.read()
        answers[answer.status] += 1
        if answer.status == 200:
            return None
        if answer.status not in (429, 503) or not (answer.headers.get("Retry-After") or "").isdecimal():
            return f"{answer.status} with {answer.headers.items()}"
        time.sleep(0.1)  # sooner than asked, so that the service stays full


def resident_mib(served: Served) -> float:
    fields = Path(f"/proc/{served.process.pid}/statm").read_text(encoding="ascii").split()
    return int(fields[1]) * 4_096 / MIB

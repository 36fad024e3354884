"""Kill the service again and again while runs come in: every acknowledged run is scored once, and right."""

from __future__ import annotations

import http.client
import json
import random
import socket
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.otlp import Trace
from tests.support.service import JSON, Served

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

KILLS = 22
LOADERS = 4
SEED = 20_261_130
TASK = """
task: shop
match: {agent: bot}
milestones:
  - {id: read, verify: {tool: read_ticket, result: {ok: true}}}
  - {id: stock, depends_on: [read], verify: {tool: check_inventory, result: {ok: true}}}
  - {id: update, depends_on: [stock], verify: {tool: update_ticket, result: {ok: true}}}
"""
TOOLS = ("read_ticket", "check_inventory", "update_ticket")
DEPTHS = (0.0, 1 / 6, 3 / 6, 1.0)


class Load:
    """Send numbered runs from several threads: run ``n`` reaches ``n % 4`` milestones, its root comes last.

    A request that is not acknowledged is sent again until it is, as exporters do.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.acknowledged: dict[str, int] = {}  # trace id -> number
        self.again = 0
        self.stopping = False
        self._next = 0
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._send_runs, daemon=True) for _ in range(LOADERS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Finish the runs that were begun, and end."""
        self.stopping = True
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()

    def _send_runs(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        while not self.stopping:
            with self._lock:
                n = self._next = self._next + 1
            trace = run_of(n)
            for part in parts_of(trace, random.Random(n)):
                connection = self._send(connection, part)
            self.acknowledged[trace.trace_id] = n
            time.sleep(0.004)
        connection.close()

    def _send(self, connection: http.client.HTTPConnection, body: bytes) -> http.client.HTTPConnection:
        while True:
            try:
                connection.request("POST", "/v1/traces", body, JSON)
                answer = connection.getresponse()
                answer.read()
                if answer.status == 200:
                    return connection
                assert answer.status in (429, 503), answer.status
            except (OSError, http.client.HTTPException):
                connection.close()
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            self.again += 1
            time.sleep(0.05)


def run_of(n: int) -> Trace:
    trace = Trace(f"run-{n}", offset_seconds=n)
    for i, tool in enumerate(TOOLS):
        trace.call(tool, {"n": n, "i": i}, {"ok": i < n % 4, "n": n})
    return trace.end(user=f"handle {n}", says=f"handled {n}")


def parts_of(trace: Trace, chance: random.Random) -> list[bytes]:
    """Cut a run into requests; the root stands in the last one."""
    spans = list(trace.spans)
    cuts = sorted(chance.sample(range(1, len(spans)), chance.randint(1, 2)))
    parts = []
    for begin, end in zip([0, *cuts], [*cuts, len(spans)], strict=True):
        trace.spans = spans[begin:end]
        parts.append(trace.line().encode())
    return parts


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def asked(database: Path, query: str) -> list[Any]:
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def watch_verdicts(database: Path) -> None:
    """Let the database itself note every attempt to write a verdict, also one that changes nothing."""
    connection = sqlite3.connect(database, timeout=10)
    connection.executescript(
        "CREATE TABLE attempts (run TEXT);"
        "CREATE TRIGGER note_attempt BEFORE INSERT ON runs BEGIN INSERT INTO attempts VALUES (NEW.run); END;"
    )
    connection.close()


def test_every_acknowledged_run_is_scored_once_and_right(tmp_path: Path) -> None:
    """Over 20 and more deaths by SIGKILL at random moments, no acknowledged run is lost, scored twice, or wrong."""
    (tmp_path / "shop.task.yaml").write_text(TASK, encoding="utf-8")
    flags = ("--task", str(tmp_path), "--set", "grace=0.2")
    port = free_port()
    chance = random.Random(SEED)
    served = Served(tmp_path, *flags, port=port)
    watch_verdicts(served.database)
    load = Load(port)
    try:
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.02, 0.9))
            served.kill()
            served = Served(tmp_path, *flags, port=port)
        time.sleep(0.5)
        load.stop()
        runs = load.acknowledged
        assert len(runs) > 20 * KILLS
        assert load.again >= KILLS

        def given() -> int:
            return int(asked(served.database, "SELECT count(*) FROM runs")[0][0])

        served.until(lambda: given() >= len(runs), "a verdict on every run")
        time.sleep(1.0)  # a second one would come now
        assert served.stop() == 0
    finally:
        load.stopping = True
        served.stop()
    attempts = asked(served.database, "SELECT run, count(*) FROM attempts GROUP BY run")
    assert {run for run, _ in attempts} == set(runs)
    assert [run for run, count in attempts if count != 1] == []
    verdicts = asked(served.database, "SELECT run, depth, outcome, actions FROM runs")
    wrong = [
        (runs[run], depth, outcome, actions)
        for run, depth, outcome, actions in verdicts
        if abs(depth - DEPTHS[runs[run] % 4]) > 1e-9 or actions != len(TOOLS)
    ]
    assert wrong == []
    assert asked(served.database, "SELECT count(*) FROM journal") == [(0,)]


def test_a_stop_leaves_open_runs_for_the_next_start(tmp_path: Path) -> None:
    """SIGTERM ends the service cleanly: a run that is open goes on after the next start, with all its steps."""
    (tmp_path / "shop.task.yaml").write_text(TASK, encoding="utf-8")
    flags = ("--task", str(tmp_path), "--set", "grace=0.2")
    trace = run_of(7)
    *begin, root = trace.spans
    trace.spans = begin
    with Served(tmp_path, *flags) as served:
        assert served.ask("POST", "/v1/traces", trace.line().encode(), JSON)[0] == 200
        assert served.stop() == 0
    assert asked(served.database, "SELECT count(*) FROM runs") == [(0,)]
    with Served(tmp_path, *flags) as served:
        served.until(lambda: served.get("/readyz")["ready"], "the replay")
        record = served.get(f"/api/runs/{trace.trace_id}")
        assert (record["final"], record["scores"]["depth"]) == (False, 1.0)
        trace.spans = [root]
        assert served.ask("POST", "/v1/traces", trace.line().encode(), JSON)[0] == 200
        served.until(lambda: served.get(f"/api/runs/{trace.trace_id}")["final"], "the verdict")
        record = served.get(f"/api/runs/{trace.trace_id}")
        assert (record["outcome"], len(record["steps"])) == ("success", 4)
        assert json.dumps(record).count("handled 7") == 0  # content is not shown unless asked for

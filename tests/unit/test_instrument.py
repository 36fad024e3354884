"""Check the one call that attaches scoring, and the handle it gives, with real tasks, spans and ports."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from prometheus_client import CollectorRegistry

import reach_otel
from reach_otel import Reach, SettingsError, TaskError
from reach_otel.api.context import hand
from tests.support.application import run_application

TICKET = """
task: ticket
match: {agent: desk}
milestones:
  - id: read
    verify: {tool: read_ticket, result: {status: ok}}
    used: true
  - id: update
    depends_on: [read]
    verify: {tool: update_ticket, result: {ok: true}}
"""


@pytest.fixture
def task_file(tmp_path: Path) -> Path:
    file = tmp_path / "ticket.task.yaml"
    file.write_text(TICKET)
    return file


@pytest.fixture
def instrument(task_file: Path) -> Iterator[Callable[..., Reach]]:
    """Instrument with quick settings and a provider of its own; shut down afterwards."""
    made: list[Reach] = []

    def start(tasks: Any = task_file, **settings: Any) -> Reach:
        settings.setdefault("tracer_provider", TracerProvider(shutdown_on_exit=False))
        settings = {"metrics_port": None, "grace": 0.05, **settings}
        made.append(reach_otel.instrument(tasks, **settings))
        return made[-1]

    yield start
    for reach in made:
        reach.shutdown()
    hand.reset()


@reach_otel.tool
def read_ticket(ticket_id: str) -> dict[str, str]:
    return {"status": "ok", "customer": "C-991"}


@reach_otel.tool
def update_ticket(customer: str) -> dict[str, bool]:
    return {"ok": True}


@reach_otel.agent("desk")
def desk(request: str, updates: bool = True) -> str:
    ticket = read_ticket("T-17")
    if updates:
        update_ticket(ticket["customer"])
    return "T-17 is updated"


def wait_for(found: Callable[[], Any], seconds: float = 10) -> Any:
    deadline = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)
    return value


def finished(reach: Reach, run_id: str) -> dict[str, Any]:
    """Wait for the verdict on a run."""

    def final() -> dict[str, Any] | None:
        record = reach.score(run_id)
        return record if record and record["final"] else None

    record: dict[str, Any] = wait_for(final)
    return record


def fetch(address: str) -> str:
    with urllib.request.urlopen(address, timeout=10) as response:
        body: bytes = response.read()
    return body.decode()


# Scoring.


def test_a_run_is_scored_while_it_goes_on_and_when_it_is_over(instrument: Callable[..., Reach]) -> None:
    """One call and decorated functions are all it takes."""
    reach = instrument(grace=0.3)
    desk("please handle T-17")
    assert reach.flush()
    (running,) = reach.runs()
    assert (running.task, running.depth, running.last_tool) == ("ticket", 1.0, "update_ticket")
    record = reach.score(running.trace_id)
    assert record is not None
    assert (record["final"], record["outcome"]) == (False, "running")
    record = finished(reach, running.trace_id)
    assert (record["outcome"], record["scores"]["depth"]) == ("success", 1.0)
    assert reach.runs() == []
    assert json.dumps(record)
    assert reach.score("unknown") is None


def test_steps_are_given_on_request(instrument: Callable[..., Reach]) -> None:
    """While a run goes on, its normalised steps can be seen."""
    reach = instrument(grace=60)
    desk("please handle T-17")
    reach.flush()
    record = reach.score(reach.runs()[0].run_id, steps=True)
    assert record is not None
    assert [step["tool"] for step in record["steps"] if step["kind"] == "tool"] == ["read_ticket", "update_ticket"]


def test_an_explicit_run_is_found_by_its_id_and_by_its_trace(instrument: Callable[..., Reach]) -> None:
    """What the run says of task and variant is taken; its trace leads to it too."""
    reach = instrument()
    with reach_otel.run(task="ticket", variant="v2", conversation_id="c9") as run:
        desk("please handle T-17")
    record = finished(reach, run.id)
    assert (record["run"], record["task"], record["variant"]) == (run.id, "ticket", "v2")
    assert record["conversation_id"] == "c9"
    by_trace = reach.score(record["trace_id"])
    assert by_trace is not None
    assert by_trace["run"] == run.id


def test_metrics_are_served_and_count_the_verdict(instrument: Callable[..., Reach]) -> None:
    """Root end to visible verdict takes grace and at most 100 ms more."""
    reach = instrument(metrics_port=0, grace=0.2)
    assert reach.metrics_address is not None
    line = 'reach_runs_total{outcome="success",task="ticket",variant="unknown"}'
    assert f"{line} 0.0" in fetch(reach.metrics_address)
    desk("please handle T-17")
    ended = time.monotonic()
    wait_for(lambda: f"{line} 1.0" in fetch(str(reach.metrics_address)))
    assert time.monotonic() - ended < 0.2 + 0.1 + 0.05, "grace, the promise, and what one fetch takes"
    assert "process_cpu_seconds_total" in fetch(reach.metrics_address)


def test_a_setting_may_come_from_the_environment(
    instrument: Callable[..., Reach], task_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks and all else can be set by REACH_* variables."""
    monkeypatch.setenv("REACH_TASKS", str(task_file))
    monkeypatch.setenv("REACH_VARIANT", "canary")
    reach = instrument(None)
    desk("please handle T-17")
    reach.flush()
    assert [(run.task, run.variant) for run in reach.runs()] == [("ticket", "canary")]


def test_a_variant_that_the_code_names_on_spans_shows(instrument: Callable[..., Reach], task_file: Path) -> None:
    """The application's own code is the deployer's: its variant counts under its name, undeclared."""
    reach = instrument(task_file)
    with reach_otel.run(task="ticket", variant="v2"):
        desk("please handle T-17")
    reach.flush()
    reach.shutdown()
    labels = {"task": "ticket", "variant": "v2", "outcome": "success"}
    assert reach.registry is not None
    assert reach.registry.get_sample_value("reach_runs_total", labels) == 1


def test_a_variant_of_another_form_refuses_to_start(instrument: Callable[..., Reach]) -> None:
    """It would count as ``other`` in silence."""
    with pytest.raises(SettingsError, match="variant: found 'prompt v2', want a name of 1 to 64 letters"):
        instrument(None, variant="prompt v2")


def test_without_tasks_runs_count_as_unmatched(instrument: Callable[..., Reach]) -> None:
    """No task file is needed to start."""
    reach = instrument(None)
    desk("please handle T-17")
    reach.flush()
    assert [run.task for run in reach.runs()] == ["unmatched"]


def test_content_can_be_switched_off(instrument: Callable[..., Reach]) -> None:
    """The process-wide switch keeps arguments and results off hand-made spans."""
    reach = instrument(capture_content=False, grace=60)
    desk("please handle T-17")
    reach.flush()
    record = reach.score(reach.runs()[0].run_id, steps=True)
    assert record is not None
    assert record["content"] == "missing"
    assert "T-17" not in json.dumps(record)


def test_only_so_many_finished_runs_are_kept(instrument: Callable[..., Reach]) -> None:
    """The oldest is forgotten first."""
    reach = instrument(finished_max=2, grace=0)
    runs = []
    for _ in range(4):
        with reach_otel.run(task="ticket") as run:
            desk("please handle T-17")
        finished(reach, run.id)
        runs.append(run.id)
    assert [reach.score(run_id) is not None for run_id in runs] == [False, False, True, True]


# Starting.


def test_a_second_call_gives_the_same_handle(
    instrument: Callable[..., Reach], task_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With the same settings silently, with others (even wrong ones) with a warning."""
    reach = instrument()
    assert instrument(tracer_provider=None) is reach
    assert caplog.records == []
    assert instrument(grace=7) is reach
    assert instrument(tracer_provider=TracerProvider(shutdown_on_exit=False)) is reach
    assert instrument(no_such_setting=1) is reach
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 3
    desk("please handle T-17")
    reach.flush()
    assert len(reach.runs()) == 1, "one processor, not four"


def test_after_shutdown_it_can_be_started_again(instrument: Callable[..., Reach]) -> None:
    """The old handle still answers; the new one scores."""
    provider, registry = TracerProvider(shutdown_on_exit=False), CollectorRegistry()
    first = instrument(tracer_provider=provider, registry=registry, grace=60)
    desk("please handle T-17")
    first.flush()
    run_id = first.runs()[0].run_id
    assert first.shutdown()
    assert first.shutdown()
    record = first.score(run_id)
    assert record is not None
    assert record["final"]
    second = instrument(tracer_provider=provider, registry=registry, grace=60)
    assert second is not first
    desk("again")
    second.flush()
    assert (len(first.runs()), len(second.runs())) == (0, 1)
    assert second.health is not None
    assert sum(second.health.errors.values()) == 0


def test_a_provider_that_was_shut_down_takes_its_handle_along(instrument: Callable[..., Reach]) -> None:
    """The next call starts anew, on the same port."""
    provider = TracerProvider(shutdown_on_exit=False)
    first = instrument(tracer_provider=provider, metrics_port=0)
    assert first.metrics_address is not None
    port = int(first.metrics_address.split(":")[2].split("/")[0])
    provider.shutdown()
    assert not first.is_open
    second = instrument(metrics_port=port)
    assert second is not first
    assert second.metrics_address == f"http://127.0.0.1:{port}/metrics"


@pytest.mark.parametrize(
    ("settings", "environ", "error"),
    [
        ({"gracce": 1}, {}, SettingsError),
        ({"grace": "soon"}, {}, SettingsError),
        ({}, {"REACH_REDACT": "ture"}, SettingsError),
        ({}, {"REACH_REDCAT": "true"}, SettingsError),
        ({"tasks": "no/such/folder"}, {}, TaskError),
    ],
)
def test_what_is_wrong_is_raised_before_anything_is_attached(
    settings: dict[str, Any], environ: dict[str, str], error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bad setting, switch or task refuses to start, and leaves no thread, port or processor behind."""
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    provider = TracerProvider(shutdown_on_exit=False)
    threads = threading.active_count()
    with pytest.raises(error):
        reach_otel.instrument(tracer_provider=provider, **{"metrics_port": 0, **settings})
    assert threading.active_count() == threads
    assert provider._active_span_processor._span_processors == ()


def test_a_wrong_task_file_refuses_to_start(instrument: Callable[..., Reach], task_file: Path) -> None:
    """The message has file and line, and what was probably meant."""
    task_file.write_text(TICKET.replace("depends_on", "dependson"))
    with pytest.raises(TaskError, match=r"ticket.task.yaml:9: .*depends_on"):
        instrument()


def test_off_means_off(instrument: Callable[..., Reach], caplog: pytest.LogCaptureFixture) -> None:
    """With enabled=False nothing is attached, and the handle answers empty."""
    reach = instrument(enabled=False, metrics_port=0)
    desk("please handle T-17")
    assert (reach.runs(), reach.score("x"), reach.metrics_address, reach.flush()) == ([], None, None, True)
    assert reach.shutdown()
    assert caplog.records == []


class OddProvider(trace.TracerProvider):
    """Take no span processors."""

    def get_tracer(self, *args: Any, **kwargs: Any) -> trace.Tracer:
        return trace.NoOpTracer()


class BrokenProvider(TracerProvider):
    """Raise when a processor is added."""

    def add_span_processor(self, span_processor: Any) -> None:
        raise RuntimeError("broken")


@pytest.mark.parametrize("provider", [OddProvider(), BrokenProvider(shutdown_on_exit=False), object()])
def test_a_broken_provider_does_not_stop_the_application(
    provider: Any, instrument: Callable[..., Reach], caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged and counted, and the application runs on unscored."""
    reach = instrument(tracer_provider=provider)
    assert desk("please handle T-17") == "T-17 is updated"
    assert reach.health is not None
    assert reach.health.errors["attach"] == 1
    assert len(caplog.records) == 1
    assert reach.runs() == []


# Metrics.


def test_a_busy_port_is_logged_and_counted(instrument: Callable[..., Reach], caplog: pytest.LogCaptureFixture) -> None:
    """One process of many finds its port taken: it goes on without, and says what to do."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        reach = instrument(metrics_port=port)
    assert reach.metrics_address is None
    assert reach.health is not None
    assert reach.health.errors["serve"] == 1
    assert f'give a range, such as metrics_port="{port}-{port + 15}"' in caplog.text
    desk("please handle T-17")
    reach.flush()
    assert len(reach.runs()) == 1


def test_a_host_that_is_not_ours_is_logged_and_counted(instrument: Callable[..., Reach]) -> None:
    """A wrong address is no reason to stop the application either."""
    reach = instrument(metrics_port=0, metrics_host="192.0.2.1")
    assert reach.metrics_address is None
    assert reach.health is not None
    assert reach.health.errors["serve"] == 1


def test_metrics_go_to_the_registry_that_is_given(instrument: Callable[..., Reach]) -> None:
    """An application that serves metrics of its own has ours among them, until shutdown."""
    registry = CollectorRegistry()
    reach = instrument(registry=registry)
    labels = {"task": "ticket", "variant": "unknown", "outcome": "success"}
    assert reach.registry is registry
    assert registry.get_sample_value("reach_runs_total", labels) == 0
    reach.shutdown()
    assert registry.get_sample_value("reach_runs_total", labels) is None


# Sending instead of scoring.


class Ingest(HTTPServer):
    """Take OTLP requests and keep their paths, tokens and bodies."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str | None, bytes]] = []
        ingest = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                ingest.requests.append((self.path, self.headers["Authorization"], body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args: Any) -> None: ...

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


def test_with_an_endpoint_spans_are_sent_and_not_scored(instrument: Callable[..., Reach]) -> None:
    """Spans go to the service as OTLP, marked with their explicit run and with the token."""
    ingest = Ingest()
    provider = TracerProvider(shutdown_on_exit=False)
    reach = instrument(
        tracer_provider=provider, endpoint=f"http://127.0.0.1:{ingest.server_port}/", token="s3cret", metrics_port=0
    )
    with reach_otel.run(task="ticket") as run:
        desk("please handle T-17")
    provider.force_flush()
    assert (reach.runs(), reach.metrics_address, reach.health) == ([], None, None)
    ((path, token, body),) = ingest.requests
    assert (path, token) == ("/v1/traces", "Bearer s3cret")
    assert run.id.encode() in body
    provider.shutdown()
    ingest.shutdown()
    ingest.server_close()


# Processes.


def test_the_last_spans_are_scored_at_exit(tmp_path: Path, task_file: Path) -> None:
    """An interpreter that exits right after its run still gives the verdict, and does not hang."""
    start = time.monotonic()
    done = run_application(
        """
        import reach_otel
        reach = reach_otel.instrument("ticket.task.yaml", metrics_port="0", grace=60)

        class Tell:
            def publish(self, events):
                for event in events:
                    if type(event).__name__ == "RunClosed":
                        print("closed", event.record.outcome, flush=True)

        reach._scoring.publishers.append(Tell())
        reach_otel.agent("desk")(lambda request: "done")("hello")
        """,
        tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "closed failed\n", "")
    assert time.monotonic() - start < 20


def test_an_exit_with_a_stuck_publisher_is_bounded(tmp_path: Path, task_file: Path) -> None:
    """What hangs does not keep the process from exiting."""
    start = time.monotonic()
    done = run_application(
        """
        import time, reach_otel
        reach = reach_otel.instrument(metrics_port=None, flush_seconds=0.5)

        class Hang:
            def publish(self, events):
                time.sleep(60)

        reach._scoring.publishers.append(Hang())
        reach_otel.agent("desk")(lambda request: "done")("hello")
        """,
        tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert time.monotonic() - start < 20


FORK = """
    import json, os, sys, time, urllib.request
    import reach_otel

    reach = reach_otel.instrument("ticket.task.yaml", metrics_port=os.environ["PORTS"], grace=0)

    @reach_otel.tool
    def read_ticket(ticket_id): return {"status": "ok", "customer": "C-991"}

    @reach_otel.agent("desk")
    def desk(request): return str(read_ticket("T-17"))

    def total():
        with urllib.request.urlopen(reach.metrics_address) as response:
            lines = response.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith("reach_runs_total{"))

    def wait(done):
        deadline = time.monotonic() + 20
        while not done() and time.monotonic() < deadline: time.sleep(0.01)

    desk("in the parent")
    wait(lambda: total() == 1)
    parent_address = reach.metrics_address
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        quiet = reach.metrics_address
        before = reach.runs()
        desk("in the child"); desk("again")
        reach.flush()
        wait(lambda: reach.metrics_address not in (None, parent_address))
        wait(lambda: reach.metrics_address and total() == 2)
        told = {"address": reach.metrics_address, "runs": total(), "received": reach.health.received, "before": before}
        os.write(writes, json.dumps(told).encode())
        sys.exit(0)
    os.close(writes)
    told = json.loads(os.fdopen(reads).read())
    _, status = os.waitpid(child, 0)
    desk("in the parent again")
    wait(lambda: total() == 2)
    print(json.dumps({"child": told, "status": status, "parent": parent_address, "parent_runs": total()}))
"""


def free_range(length: int = 4) -> tuple[int, int]:
    """Find neighbouring ports that are free now."""
    for first in range(20_100, 40_000, 7):
        holders = []
        try:
            for port in range(first, first + length):
                holder = socket.socket()
                holders.append(holder)
                holder.bind(("127.0.0.1", port))
        except OSError:
            continue
        finally:
            for holder in holders:
                holder.close()
        return first, first + length - 1
    raise AssertionError("no free ports")


def test_a_forked_child_scores_by_itself(tmp_path: Path, task_file: Path) -> None:
    """A child starts from zero, serves on the next free port, and the parent goes on as before: counters add up."""
    first, last = free_range()
    done = run_application(FORK, tmp_path, PORTS=f"{first}-{last}")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["status"] == 0
    assert told["parent"] == f"http://127.0.0.1:{first}/metrics"
    assert told["parent_runs"] == 2
    assert told["child"]["address"] == f"http://127.0.0.1:{first + 1}/metrics"
    assert told["child"]["runs"] == 2
    assert told["child"]["received"] == 4, "the parent's spans are not the child's"
    assert told["child"]["before"] == []


def test_a_child_that_forks_while_the_worker_is_busy_works(tmp_path: Path, task_file: Path) -> None:
    """Whatever the parent's threads hold at the fork, the child scores and exits."""
    done = run_application(
        """
        import os, sys, threading
        import reach_otel
        reach = reach_otel.instrument("ticket.task.yaml", metrics_port="0", grace=0, queue_spans=100_000)
        desk = reach_otel.agent("desk")(lambda request: "done")
        stop = threading.Event()

        def work():
            while not stop.is_set():
                for _ in range(20): desk("hello")
                stop.wait(0.001)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
        for thread in threads: thread.start()
        statuses = []
        for _ in range(10):
            child = os.fork()
            if child == 0:
                for _ in range(5): desk("in the child")
                os._exit(0 if reach.flush(20) and reach.health.received == 5 else 1)
            statuses.append(os.waitpid(child, 0)[1])
        stop.set()
        for thread in threads: thread.join()
        print(statuses)
        """,
        tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [0] * 10


UNDER_WAY = "a run that was under way when instrument() was called is not scored: call it earlier"


@pytest.mark.parametrize("scope", ["trace", "agent", "conversation"])
def test_what_begins_within_a_span_that_was_open_is_scored(
    scope: str, instrument: Callable[..., Reach], caplog: pytest.LogCaptureFixture
) -> None:
    """A program, notebook, test or request around the first call of all is no run that was under way."""
    provider = TracerProvider(shutdown_on_exit=False)
    with provider.get_tracer("app").start_as_current_span("main"):
        reach = instrument(tracer_provider=provider, run_scope=scope, idle=0.2)
        desk("please handle T-17")
    assert reach.flush()
    wait_for(lambda: not reach.runs())
    assert exposed(reach, "reach_runs_total") == 1
    assert exposed(reach, "reach_scorer_incomplete_runs_total") == 0
    assert caplog.records == []


@pytest.mark.parametrize("ends", ["before", "after", "never"])
def test_a_span_around_it_that_was_open_decides_no_score(ends: str, instrument: Callable[..., Reach]) -> None:
    """Whether it ends while its runs are waited for, after their verdict, or not until the scorer does."""
    provider = TracerProvider(shutdown_on_exit=False)
    cell = provider.get_tracer("app").start_span("notebook")
    reach = instrument(tracer_provider=provider, parent_wait=0.1 if ends == "after" else 60)
    with trace.use_span(cell):
        desk("please handle T-17")
        with reach_otel.run(task="ticket") as run:
            desk("please handle T-17")
    assert reach.flush()
    if ends == "after":
        wait_for(lambda: not reach.runs())
    if ends != "never":
        cell.end()
    assert reach.shutdown()
    for run_id in (run.id, format(cell.get_span_context().trace_id, "032x")):
        assert finished(reach, run_id)["outcome"] == "success"
    assert exposed(reach, "reach_runs_total") == 2
    assert exposed(reach, "reach_scorer_incomplete_runs_total") == 0


def test_a_run_that_was_under_way_is_told_of_once(
    instrument: Callable[..., Reach], caplog: pytest.LogCaptureFixture
) -> None:
    """It is counted and not scored; the log says so, says what to do, and names nothing of the run."""
    provider = TracerProvider(shutdown_on_exit=False)
    attributes = {"gen_ai.operation.name": "invoke_agent"}
    early = [provider.get_tracer("app").start_span("invoke_agent x", attributes=attributes) for _ in range(2)]
    reach = instrument(tracer_provider=provider)
    for span in early:
        span.end()
    reach.shutdown()
    assert exposed(reach, "reach_runs_total") == 0
    assert exposed(reach, "reach_scorer_incomplete_runs_total") == 2
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [(logging.WARNING, UNDER_WAY)]


def exposed(reach: Reach, name: str) -> float:
    """Add up the samples of this name."""
    assert reach.registry is not None
    return sum(s.value for metric in reach.registry.collect() for s in metric.samples if s.name == name)


def test_a_run_that_was_under_way_at_a_fork_is_the_parents(tmp_path: Path, task_file: Path) -> None:
    """Its first spans ended in the parent, which scores it; the child counts its copy, and scores what it begins."""
    done = run_application(
        """
        import json, os, time
        import reach_otel
        from prometheus_client import CollectorRegistry
        registry = CollectorRegistry()
        reach = reach_otel.instrument("ticket.task.yaml", metrics_port=None, registry=registry, grace=0)
        run = reach_otel.agent("desk")(lambda act: act())

        def told(decided):
            reach.flush()
            deadline = time.monotonic() + 20
            found = ()
            while sum(found) < decided and time.monotonic() < deadline:
                samples = [sample for metric in registry.collect() for sample in metric.samples]
                names = ("reach_runs_total", "reach_scorer_incomplete_runs_total")
                found = [sum(sample.value for sample in samples if sample.name == name) for name in names]
                time.sleep(0.01)
            return found

        child = run(os.fork)
        if child == 0:
            run(lambda: None)
            os.write(1, json.dumps(told(2)).encode() + b"\\n")
            os._exit(0)
        os.waitpid(child, 0)
        print(json.dumps(told(1)))
        """,
        tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    child, parent = map(json.loads, done.stdout.splitlines())
    assert child == [1, 1]
    assert parent == [1, 0]


def test_a_process_that_has_no_provider_gets_one(tmp_path: Path, task_file: Path) -> None:
    """Without a provider of the application, one is made and set, and exports where the OTEL_* variables say."""
    ingest = Ingest()
    done = run_application(
        """
        import reach_otel
        from opentelemetry import trace
        reach = reach_otel.instrument("ticket.task.yaml", metrics_port=None)
        assert trace.get_tracer_provider() is reach.tracer_provider
        with trace.get_tracer("app").start_as_current_span("work"): pass
        reach.flush()
        print(reach.health.received)
        """,
        tmp_path,
        OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{ingest.server_port}",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    assert [path for path, _, _ in ingest.requests] == ["/v1/traces"]
    ingest.shutdown()
    ingest.server_close()

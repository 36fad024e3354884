"""Check that verdicts reach stores of traces and logs: from inside an application, and from the service."""

from __future__ import annotations

import json
import os
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.application import run_application
from tests.support.otlp import Trace
from tests.support.receiver import Came, Receiver
from tests.support.service import JSON, Served

pytestmark = pytest.mark.e2e

SECRET = "s3cr3t"
TASK = """
task: shop
match: {agent: bot}
milestones:
  - {id: read, verify: {tool: read_ticket, result: {ok: true}}}
  - {id: stock, depends_on: [read], verify: {tool: check_inventory, when: 'result.stock > 0'}}
  - {id: update, depends_on: [stock], verify: {tool: update_ticket, result: {ok: true}}}
"""
APP = """
import json, os, sys, time
import reach_otel
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

def own_provider():
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider

@reach_otel.tool
def read_ticket(id): return {"ok": True, "note": "s3cr3t"}

@reach_otel.tool
def check_inventory(sku): raise ValueError("s3cr3t")

@reach_otel.agent("bot")
def bot(request):
    read_ticket("s3cr3t")
    try: check_inventory("s3cr3t")
    except ValueError: pass
    return "s3cr3t it is done"
"""


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    (tmp_path / "shop.task.yaml").write_text(TASK, encoding="utf-8")
    return tmp_path


def run_app(code: str, tasks: Path, receiver: Receiver, **environ: str) -> str:
    """Run an application as a process of its own that exports to the receiver, and give what it printed."""
    given = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
        "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_SERVICE_NAME": "desk",
        "REACH_TASKS": "shop.task.yaml",
        "REACH_METRICS_PORT": "none",
        **environ,
    }
    done = run_application(APP + textwrap.dedent(code), tasks, **given)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def assert_told(receiver: Receiver, record: dict[str, Any], root: Came) -> None:
    """Hold what came about one run against its record."""
    (span,) = [one for one in receiver.spans("reach.evaluate") if one.trace_id == root.trace_id]
    assert (span.parent, span.scope) == (root.span_id, "reach_otel.evaluation")
    assert span.start_ns == span.end_ns == root.end_ns
    scores = {
        "reach.depth": record["scores"]["depth"],
        "reach.purity": record["scores"]["purity"],
        "reach.digestion": record["scores"]["digestion"],
        "reach.score": record["scores"]["composite"],
        "reach.high_layer": record["scores"]["high_layer"],
    }
    assert {name: span.attributes[name] for name in scores} == scores
    assert span.attributes["reach.run.id"] == record["run"]
    assert span.attributes["reach.outcome"] == record["outcome"]
    assert span.attributes["reach.break_point.reason"] == record["break_point"]["reason"]
    logs = [log for log in receiver.logs("gen_ai.evaluation.result") if log.trace_id == root.trace_id]
    assert {
        log.attributes["gen_ai.evaluation.name"]: log.attributes["gen_ai.evaluation.score.value"] for log in logs
    } == scores
    assert len(logs) == len(scores)
    assert {(log.span_id, log.flags, log.start_ns) for log in logs} == {(root.span_id, 1, root.end_ns)}


def own_bodies(receiver: Receiver) -> bytes:
    """Give what we sent and nothing of what the application did: spans of ours go in requests with others."""
    told = [*receiver.spans("reach.evaluate"), *receiver.logs("gen_ai.evaluation.result")]
    return repr([(one.attributes, one.name, one.scope) for one in told]).encode()


# Inside an application.

ENDS = {
    "at-exit": "",
    "by-handle": "reach.shutdown()",
    "by-provider": "trace.get_tracer_provider().shutdown()",
}


@pytest.mark.parametrize("end", ENDS)
def test_the_verdicts_given_at_the_end_are_exported(end: str, tasks: Path) -> None:
    """With a provider of our making, a run that is still in its grace at the end is told, however the end comes."""
    with Receiver() as receiver:
        out = run_app(
            f"""
            reach = reach_otel.instrument(grace=60)
            bot("go")
            reach.flush()
            print(reach.runs()[0].run_id)
            {ENDS[end]}
            """,
            tasks,
            receiver,
        )
        (root,) = receiver.spans("invoke_agent bot")
        (span,) = receiver.spans("reach.evaluate")
        assert (span.parent, span.attributes["reach.run.id"]) == (root.span_id, out.strip())
        assert len(receiver.logs("gen_ai.evaluation.result")) == 5
        assert span.resource["service.name"] == "desk"
        assert SECRET.encode() not in own_bodies(receiver)


@pytest.mark.parametrize(("end", "spans"), [("at-exit", 1), ("by-handle", 1), ("by-provider", 0)])
def test_an_applications_own_provider_takes_the_last_verdicts(end: str, spans: int, tasks: Path) -> None:
    """Unless it was shut down first: its exporter stands before us and is gone, so that the span counts as lost."""
    with Receiver() as receiver:
        out = run_app(
            f"""
            import logging; logging.disable()
            own_provider()
            reach = reach_otel.instrument(grace=60)
            bot("go")
            {ENDS[end]}
            print(reach.health.errors["evaluation"])
            """,
            tasks,
            receiver,
        )
        assert int(out) == 1 - spans
        assert len(receiver.spans("invoke_agent bot")) == 1
        assert len(receiver.spans("reach.evaluate")) == spans
        assert len(receiver.logs("gen_ai.evaluation.result")) == 5


def test_an_applications_own_provider_is_used(tasks: Path) -> None:
    """Spans go the application's way, with the record's exact numbers; at exit nothing is lost."""
    with Receiver() as receiver:
        out = run_app(
            """
            own_provider()
            reach = reach_otel.instrument(grace=0.05)
            bot("go")
            while not (found := [r for r in map(reach.score, reach._recent._finished) if r]): time.sleep(0.01)
            print(json.dumps(found[0]))
            print(json.dumps(reach.health.errors), reach.health.received, sum(reach.health.dropped().values()))
            """,
            tasks,
            receiver,
        )
        record, health = out.splitlines()
        (root,) = receiver.spans("invoke_agent bot")
        assert_told(receiver, json.loads(record), root)
        assert json.loads(record)["scores"]["digestion"] == 0.0
        errors, received, dropped = health.rpartition("}")[0] + "}", *health.rpartition("}")[2].split()
        assert sum(json.loads(errors).values()) == 0
        assert (received, dropped) == ("3", "0"), "what we emit is not taken for a step of the run"
        assert SECRET.encode() not in own_bodies(receiver)


@pytest.mark.parametrize(
    ("settings", "environ"),
    [
        ("evaluations=False", {}),
        ("", {"REACH_EVALUATIONS": "off"}),
        ("", {"OTEL_TRACES_SAMPLER": "always_off"}),
        ("", {"REACH_ENDPOINT": "(the receiver)"}),
    ],
)
def test_nothing_is_emitted_where_nothing_should_be(settings: str, environ: dict[str, str], tasks: Path) -> None:
    """Switched off, not sampled, or scored elsewhere: neither span nor event."""
    with Receiver() as receiver:
        if "REACH_ENDPOINT" in environ:
            environ = {"REACH_ENDPOINT": receiver.url}
        run_app(f'own_provider()\nreach_otel.instrument({settings})\nbot("go")', tasks, receiver, **environ)
        expected = 0 if "OTEL_TRACES_SAMPLER" in environ else 2 if "REACH_ENDPOINT" in environ else 1
        assert len(receiver.spans("invoke_agent bot")) == expected
        assert receiver.spans("reach.evaluate") == []
        assert receiver.logs() == []


def test_an_address_for_all_signals_gets_spans_only(tasks: Path) -> None:
    """Events are to be asked for by name: a store of traces would refuse them."""
    with Receiver() as receiver:
        run_app('reach = reach_otel.instrument(grace=60)\nbot("go")', tasks, receiver, OTEL_LOGS_EXPORTER="")
        assert len(receiver.spans("reach.evaluate")) == 1
        assert [path for path, _ in receiver.bodies if path != "/v1/traces"] == []


def test_a_logger_provider_of_the_application_is_used(tasks: Path) -> None:
    """Even one that it sets after it called us."""
    with Receiver() as receiver:
        run_app(
            """
            from opentelemetry._logs import set_logger_provider
            from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
            from opentelemetry.sdk._logs import LoggerProvider
            from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
            from opentelemetry.sdk.resources import Resource

            reach = reach_otel.instrument(grace=60)
            logs = LoggerProvider(Resource.create({"mine": "yes"}), shutdown_on_exit=False)
            logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
            set_logger_provider(logs)
            bot("go")
            reach.shutdown()
            logs.shutdown()
            """,
            tasks,
            receiver,
        )
        assert [log.resource.get("mine") for log in receiver.logs("gen_ai.evaluation.result")] == ["yes"] * 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_tells_its_own_runs(tasks: Path) -> None:
    """Each process tells what it scored, once."""
    with Receiver() as receiver:
        run_app(
            """
            own_provider()
            reach = reach_otel.instrument(grace=0.05)
            bot("parent")
            reach.flush(); time.sleep(0.3)
            child = os.fork()
            if child == 0:
                bot("child"); bot("child")
                reach.flush(); time.sleep(0.5)
                sys.exit(0)
            os.waitpid(child, 0)
            bot("parent")
            """,
            tasks,
            receiver,
        )
        roots = {span.span_id for span in receiver.spans("invoke_agent bot")}
        assert len(roots) == 4
        assert sorted(span.parent for span in receiver.spans("reach.evaluate")) == sorted(roots)
        assert len(receiver.logs("gen_ai.evaluation.result")) == 4 * 5


def test_a_store_that_is_down_does_not_hold_the_application(tasks: Path) -> None:
    """Spans are scored as ever, nothing is raised, and the exit is bounded."""
    with Receiver(status=503) as receiver:
        began = time.monotonic()
        run_app(
            """
            import logging; logging.disable()
            provider = own_provider()
            reach = reach_otel.instrument(grace=0, flush_seconds=1)
            for _ in range(50): bot("go")
            assert reach.flush(5)
            time.sleep(0.2)
            assert reach.health.received == 150
            """,
            tasks,
            receiver,
            OTEL_EXPORTER_OTLP_TIMEOUT="2",
        )
        assert time.monotonic() - began < 30


# The service.


def send(served: Served, name: str) -> Trace:
    """Send one run whose every text is a secret; gives its trace."""
    # Long over when the scorer began: of a run that was under way then, it would count a part as missing.
    trace = Trace(name, agent="bot", offset_seconds=time.time() - 1_796_025_600 - 60)
    trace.call("read_ticket", {"id": SECRET}, {"ok": True, "note": SECRET})
    trace.call("check_inventory", {"sku": SECRET}, error=SECRET)
    trace.call(SECRET, {SECRET: SECRET}, {SECRET: SECRET})
    trace.end(user=SECRET, says=f"{SECRET} done")
    assert served.ask("POST", "/v1/traces", trace.line().encode(), JSON)[0] == 200
    return trace


def verdict(served: Served, run: str) -> dict[str, Any]:
    def final() -> bool:
        status, _, body = served.ask("GET", f"/api/runs/{run}")
        return status == 200 and json.loads(body)["final"]

    served.until(final, f"the verdict on {run}")
    found: dict[str, Any] = served.get(f"/api/runs/{run}")
    return found


def test_the_service_tells_its_verdicts(tasks: Path) -> None:
    """What a second receiver gets equals the record; token and resource are the service's; ids come from the run's."""
    with Receiver() as receiver:
        flags = ("--task", str(tasks), "--set", "grace=0.1", "--set", f"evaluations_endpoint={receiver.url}/")
        env = {"REACH_SERVE_EVALUATIONS_TOKEN": "store-token"}
        for place in ("one", "two"):
            (tasks / place).mkdir()
            with Served(tasks / place, *flags, env=env) as served:
                trace = send(served, "a")
                record = verdict(served, trace.trace_id)
        told = receiver.spans("reach.evaluate")
        assert len(told) == 2
        assert len({span.span_id for span in told}) == 1, "told twice, it is one span"
        assert len(receiver.logs()) == 10
        assert {span.resource["service.name"] for span in told} == {"reach-otel"}
        assert set(receiver.tokens) == {"Bearer store-token"}
        assert all(SECRET.encode() not in body for _, body in receiver.bodies)
        receiver.bodies = [receiver.bodies[-1], receiver.bodies[-2]]  # those of the last service
        (root,) = [one for one in trace.spans if "parentSpanId" not in one]
        (span,) = receiver.spans()
        assert (span.trace_id, span.parent) == (trace.trace_id, root["spanId"])
        end_ns = int(root["endTimeUnixNano"])
        assert_told(receiver, record, Came("", trace.trace_id, root["spanId"], "", 0, end_ns, 0, "", {}, {}))


def test_a_service_that_tells_itself_makes_no_loop(tasks: Path, tmp_path: Path) -> None:
    """Its own spans and events come in, and are neither scored nor late nor told again."""
    port = free_port()
    flags = ("--task", str(tasks), "--set", "grace=0.1", "--set", f"evaluations_endpoint=http://127.0.0.1:{port}")
    with Served(tmp_path, *flags, port=port) as served:
        runs = [send(served, name).trace_id for name in "ab"]
        for run in runs:
            verdict(served, run)
        served.until(lambda: requests(served, "logs") > 0, "its own events to come in")
        came = requests(served, "traces")
        assert came >= 3, "two of the sender's and at least one of its own"
        time.sleep(2)
        assert requests(served, "traces") == came
        assert served.metrics()["reach_runs_total"] == 2
        assert served.metrics()["reach_scorer_late_span_age_seconds_count"] == 0
        assert served.metrics()["reach_scorer_spans_received_total"] == 8
        assert served.metrics()["reach_scorer_errors_total"] == 0
        assert sorted(entry["run"] for entry in served.get("/api/runs")["runs"]) == sorted(runs)


@pytest.mark.slow
def test_a_store_that_is_down_does_not_hold_the_service(tasks: Path, tmp_path: Path) -> None:
    """Verdicts come as ever; what could not be told is counted, logged in a line, and the end is bounded."""
    flags = (
        "--task",
        str(tasks),
        "--set",
        "grace=0.1",
        "--set",
        f"evaluations_endpoint=http://127.0.0.1:{free_port()}",
    )
    with Served(tmp_path, *flags) as served:
        for n in range(5):
            verdict(served, send(served, str(n)).trace_id)
        served.until(lambda: served.metrics()["reach_scorer_errors_total"] >= 30, "30 faults")
        began = time.monotonic()
        assert served.stop() == 0
        assert time.monotonic() - began < 6
    lines = [line for line in served.said if "evaluation" in line or "opentelemetry" in line]
    assert len(lines) == 1, lines
    assert SECRET not in "".join(served.said)


@pytest.mark.slow
def test_a_verdict_is_told_once_over_crashes(tasks: Path, tmp_path: Path) -> None:
    """A run whose verdict a crash forestalled is told after the restart; one that was told is not told again."""
    with Receiver() as receiver:
        flags = ("--task", str(tasks), "--set", "grace=1.5", "--set", f"evaluations_endpoint={receiver.url}")
        with Served(tmp_path, *flags) as served:
            first = send(served, "a").trace_id
            served.kill()
        assert receiver.spans() == []
        with Served(tmp_path, *flags) as served:
            receiver.until(receiver.spans)
            served.kill()
        with Served(tmp_path, *flags) as served:
            second = send(served, "b").trace_id
            verdict(served, second)
        assert [span.trace_id for span in receiver.spans()] == [first, second]


def test_a_store_of_traces_alone_can_be_told_spans_alone(tasks: Path, tmp_path: Path) -> None:
    """With evaluations_events=off no request to /v1/logs is made."""
    with Receiver() as receiver:
        flags = ("--set", f"evaluations_endpoint={receiver.url}", "--set", "evaluations_events=off")
        with Served(tmp_path, "--task", str(tasks), "--set", "grace=0.1", *flags) as served:
            verdict(served, send(served, "a").trace_id)
        assert [path for path, _ in receiver.bodies] == ["/v1/traces"]


def requests(served: Served, signal: str) -> float:
    """Count the requests of a signal that the service answered with 200."""
    _, _, body = served.ask("GET", "/metrics")
    (line,) = [
        line
        for line in body.decode().splitlines()
        if line.startswith("reach_service_requests_total{") and f'"{signal}"' in line and '"200"' in line
    ]
    return float(line.split()[-1])


def free_port() -> int:
    """Find a port that is free now."""
    import socket

    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        port: int = holder.getsockname()[1]
    return port

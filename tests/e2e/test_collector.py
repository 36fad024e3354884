"""Send recordings through the real Collector with one scorer: nothing of what counts for a score is changed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reach_otel.offline.replay import replay
from reach_otel.task import load
from tests.support import recordings
from tests.support.collector import FOLDER, Collector, until
from tests.support.compare import assert_same
from tests.support.otlp import Trace, attribute, write_lines
from tests.support.service import Served

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


class Pair(NamedTuple):
    scorer: Served
    collector: Collector


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with (
        Served(tmp_path_factory.mktemp("scorer"), "--grpc-port", "0", *recordings.FLAGS) as scorer,
        Collector(tmp_path_factory.mktemp("collector"), "single.yaml", scorers=[scorer.grpc]) as collector,
    ):
        yield Pair(scorer, collector)


def test_records_are_those_of_a_replay_without_the_collector(pair: Pair) -> None:
    """Filter, redaction and batching change no field and no step of any recorded run."""
    recordings.send_all(pair.collector.send)
    wanted = recordings.expected()
    recordings.wait_for_all([pair.scorer], len(wanted))
    assert sorted(recordings.verdicts(pair.scorer)) == sorted(wanted)
    found = recordings.wrong(pair.scorer, wanted, wanted)
    assert not found, "\n".join(found[:40])


SECRETS = {
    "private key": "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIEpAIBAAKCAQEA7\n-----END RSA PRIVATE " + "KEY-----",
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "openai": "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0k1L2",
    "github": "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345",
    "slack": "xoxb-" + "123456789012-abcdefGHIJ",
    "jwt": "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTYifQ" + ".dBjftJeZ4CVPmB92K27u",
    "bearer": "Bearer " + "abcdef0123456789.ABCDEF",
    "password": "password=" + "hunter2hunter2",
    "url": "postgres://admin:" + "s3cr3tpass@db.example/shop",
    "card": "4111 1111 " + "1111 1111",
}
PARTS = {"url": "s3cr3tpass", "private key": "MIIEpAIBAAKCAQEA7", "bearer": "abcdef0123456789", "password": "hunter2"}
HARMLESS = [
    "0.4123456789012345",
    "4111111111111111111",
    "a risk-assessment-of-the-quarterly-report",
    "the bearer of this letter",
    "password reset",
    "SKU-7",
    "2026-11-30 08:00:00",
    "https://shop.example/orders?id=7",
]

FILTERED = "otelcol_processor_filter_spans_filtered"


def hostile() -> Trace:
    """Make a run with secrets wherever text may be."""
    trace = Trace("hostile", agent="careless")
    trace.call("read_vault", {"name": "all"}, dict(SECRETS))
    trace.call("use", {"values": list(SECRETS.values())}, {"ok": True})
    trace.call("fails", {"nested": {"deep": SECRETS["aws"]}}, error=f"cannot sign in with {SECRETS['jwt']}")
    trace.call("harmless", {"texts": HARMLESS}, {"texts": HARMLESS})
    trace.end(user=f"my key is {SECRETS['openai']}", says=f"done with {SECRETS['github']}")
    whole, used = trace.spans[0], trace.spans[1]
    whole["name"] += f" {SECRETS['slack']}"
    whole["events"] = [{"name": "note", "attributes": [attribute("exception.message", SECRETS["bearer"])]}]
    whole["attributes"].append({"key": "structured", "value": in_a_list(SECRETS["card"])})
    used["attributes"].append(attribute("http.request.header.authorization", "Digest nothing-that-has-a-form"))
    return trace


def in_a_list(text: str) -> dict[str, Any]:
    return {"arrayValue": {"values": [{"stringValue": text}]}}


def test_secrets_are_masked_wherever_they_stand(pair: Pair) -> None:
    """No secret reaches trace store or scorer; each span says how many were masked; what is harmless stays."""
    trace = hostile()
    pair.collector.send("traces", trace.line().encode())
    until(lambda: len(of_trace(pair, trace)) == len(trace.spans), "the spans in the trace store")
    spans = {span["spanId"]: span for span in of_trace(pair, trace)}
    for text in (json.dumps(list(spans.values())), json.dumps(steps_of(pair, trace))):
        for name, secret in SECRETS.items():
            assert PARTS.get(name, secret) not in text, name
        assert "nothing-that-has-a-form" not in text
    counts = [masked(spans[span["spanId"]]) for span in trace.spans]
    # read_vault: result, structured, name (its event counts by itself); use: arguments, header; fails: both; root: both
    assert counts == [3, 2, 2, 0, 2]
    kept = json.loads(value(spans[trace.spans[3]["spanId"]], "gen_ai.tool.call.result"))
    assert kept == {"texts": HARMLESS}
    assert not [key for span in spans.values() for key in keys(span) if key.startswith("reach.")]


def test_masked_values_stay_equal_and_json(pair: Pair) -> None:
    """A masked value has one mask in a result and in later arguments, both of which are JSON still."""
    trace = hostile()
    pair.collector.send("traces", trace.line().encode())
    steps = {step["tool"]: step for step in steps_of(pair, trace) if step["tool"]}
    result, arguments = steps["read_vault"]["result"], steps["use"]["args"]
    assert list(result) == list(SECRETS)
    assert arguments["values"] == list(result.values())
    assert re.fullmatch("[0-9a-f]{64}", result["aws"])
    assert len(set(result.values())) == len(SECRETS)
    assert steps["fails"]["args"] == {"nested": {"deep": result["aws"]}}
    assert steps["fails"]["error"] == f"cannot sign in with {result['jwt']}"


def test_what_no_score_needs_does_not_reach_the_scorer(pair: Pair) -> None:
    """Calls of databases and model servers and our own evaluations go to the trace store only; the record is equal."""
    trace, dropped = noisy()
    before = pair.collector.metric(FILTERED)
    pair.collector.send("traces", trace.line().encode())
    pair.collector.send("traces", evaluation(trace).encode())
    until(lambda: len(of_trace(pair, trace)) == len(trace.spans) + 1, "the spans in the trace store")
    record = final(pair, trace)
    assert pair.collector.metric(FILTERED) - before == len(dropped) + 1
    file = write_lines(pair.collector.folder / "noisy.jsonl", [trace])
    (wanted,) = replay([file], load(list(recordings.TASKS)), steps=True)
    fields = recordings.built(wanted)
    assert_same({name: record[name] for name in fields}, fields)


def noisy() -> tuple[Trace, set[str]]:
    """Make a run of two agents in two services, with client spans of all sorts; gives what no score needs of it."""
    trace = Trace("noisy", agent="caller")
    chat = trace.chat(user="go", says="going")
    lookup = trace.call("lookup", {"id": 7}, {"ok": True})
    ask = trace.call("ask_other", {"id": 7}, {"ok": True}, seconds=2.0)

    def client(name: str, parent: str, **attributes: Any) -> str:
        span_id = trace.span(
            name, {k.replace("__", "."): v for k, v in attributes.items()}, start=0.2, end=0.3, parent=parent
        )
        trace.spans[-1]["kind"] = 3
        return span_id

    dropped = {
        client("POST", chat, http__request__method="POST", server__address="api.openai.com"),
        client("POST", chat, http__method="POST", http__url="https://eu.openai.azure.com/openai/v1"),
        client("SELECT shop", lookup, db__system="postgresql"),
        client("GET", lookup, db__system__name="redis"),
    }
    client("POST", lookup, http__request__method="POST", server__address="api.openai.com.example")
    client("vectors", lookup, db__system="pinecone")
    client("search", lookup, db__system="postgresql", gen_ai__operation__name="retrieval")
    call = client("POST", ask, http__request__method="POST", server__address="other-agent.example")
    server = trace.span("POST /ask", {"http.request.method": "POST"}, start=2.0, end=2.9, parent=call)
    trace.spans[-1].update(kind=2, flags=0x300)
    other = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "other"}
    inner = trace.span("invoke_agent other", other, start=2.1, end=2.8, parent=server)
    trace.call("inner_tool", {"id": 8}, {"ok": True}, start=2.2, parent=inner)
    return trace.end(user="go", says="gone"), dropped


def evaluation(trace: Trace) -> str:
    """Make the span that a scorer sends about a run."""
    span = {**trace.spans[0], "spanId": "e" * 16, "parentSpanId": trace.root, "name": "reach.evaluate"}
    scope = {"scope": {"name": "reach_otel.evaluation"}, "spans": [span]}
    return json.dumps({"resourceSpans": [{"scopeSpans": [scope]}]})


def test_log_records_without_messages_do_not_reach_the_scorer(pair: Pair) -> None:
    """An application's own log records are no messages of a run; secrets in those that are get masked."""
    trace = Trace("logs", agent="teller")
    trace.chat(says="hello")
    trace.end()
    chat = trace.spans[0]["spanId"]
    records = [
        {"eventName": "", "body": {"stringValue": "an application's log record"}},
        {"eventName": "gen_ai.user.message", "body": in_a_map("content", f"take {SECRETS['aws']}")},
        {"eventName": "gen_ai.user.message", "traceId": "", "body": in_a_map("content", "of no trace")},
    ]
    held = {"traceId": trace.trace_id, "spanId": chat, "timeUnixNano": trace.spans[0]["startTimeUnixNano"]}
    body = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{**held, **record} for record in records]}]}]}
    sent = pair.collector.metric("otelcol_exporter_sent_log_records")
    pair.collector.send("logs", json.dumps(body).encode())
    pair.collector.send("traces", trace.line().encode())
    until(lambda: pair.collector.metric("otelcol_exporter_sent_log_records") > sent, "the log record")
    assert pair.collector.metric("otelcol_exporter_sent_log_records") == sent + 1
    record = final(pair, trace)
    assert SECRETS["aws"] not in json.dumps(record)


def test_tokens_are_asked_for_and_shown(tmp_path: Path) -> None:
    """With a token agents have to show it, and scorers are shown it; an empty one is none."""
    token = {"Authorization": "Bearer in-secret"}
    env = {"REACH_SERVE_INGEST_TOKEN": "in-secret"}
    folder = tmp_path / "collector"
    folder.mkdir()
    with (
        Served(tmp_path, "--grpc-port", "0", *recordings.FLAGS, env=env) as scorer,
        Collector(
            folder, "single.yaml", "require-token.yaml", scorers=[scorer.grpc], env={"INGEST_TOKEN": "in-secret"}
        ) as collector,
    ):
        trace = Trace("shown").end()
        assert collector.ask("traces", trace.line().encode()) == 401
        collector.headers.update(token)
        collector.send("traces", trace.line().encode())
        scorer.until(lambda: trace.trace_id in recordings.verdicts(scorer), "the verdict")


def test_a_wrong_token_is_told_by_a_metric(tmp_path: Path) -> None:
    """A scorer that refuses for good gets nothing twice: what it did not take is counted as given up."""
    folder = tmp_path / "collector"
    folder.mkdir()
    env = {"REACH_SERVE_INGEST_TOKEN": "in-secret"}
    with (
        Served(tmp_path, "--grpc-port", "0", *recordings.FLAGS, env=env) as scorer,
        Collector(folder, "single.yaml", scorers=[scorer.grpc], env={"INGEST_TOKEN": "wrong"}) as collector,
    ):
        collector.send("traces", Trace("wrong").end().line().encode())
        until(lambda: collector.metric("otelcol_exporter_send_failed_spans") == 1, "the refusal")
        assert collector.waiting() == 0
        names = {name for name, _ in collector.metrics()}
        told = set(re.findall(r"`(otelcol_\w+)`", (FOLDER / "README.md").read_text(encoding="utf-8")))
        assert told - names == {"otelcol_loadbalancer_backend_outcome"}  # that one is of scaled.yaml


def test_large_spans_and_an_empty_token_are_taken(tmp_path: Path) -> None:
    """A span of 7 MiB arrives whole; a request that could not be sent on is refused, and the next one is taken."""
    folder = tmp_path / "collector"
    folder.mkdir()
    with (
        Served(tmp_path, "--grpc-port", "0", *recordings.FLAGS) as scorer,
        Collector(folder, "single.yaml", scorers=[scorer.grpc], env={"INGEST_TOKEN": ""}) as collector,
    ):
        assert collector.ask("traces", large(9).line().encode()) in (400, 413)
        for size in (7, 1):
            trace = large(size)
            collector.send("traces", trace.line().encode())
            scorer.until(lambda run=trace.trace_id: run in recordings.verdicts(scorer), "the verdict")
        assert collector.metric("otelcol_exporter_send_failed_spans") == 0


def large(size_mib: int) -> Trace:
    """Make a run with one call whose result is very long."""
    trace = Trace(f"large-{size_mib}")
    trace.call("read", {"n": 1}, {"text": "word " * (size_mib * 209_000)})
    return trace.end()


def in_a_map(key: str, text: str) -> dict[str, Any]:
    return {"kvlistValue": {"values": [{"key": key, "value": {"stringValue": text}}]}}


def of_trace(pair: Pair, trace: Trace) -> list[dict[str, Any]]:
    return pair.collector.stored(trace.trace_id)


def final(pair: Pair, trace: Trace) -> dict[str, Any]:
    pair.scorer.until(lambda: trace.trace_id in recordings.verdicts(pair.scorer), "the verdict")
    return recordings.record_of(pair.scorer, trace.trace_id)


def steps_of(pair: Pair, trace: Trace) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = final(pair, trace)["steps"]
    return found


def keys(span: dict[str, Any]) -> list[str]:
    return [item["key"] for item in span["attributes"]]


def value(span: dict[str, Any], key: str) -> str:
    return str(next(item["value"]["stringValue"] for item in span["attributes"] if item["key"] == key))


def masked(span: dict[str, Any]) -> int:
    found = [item["value"]["intValue"] for item in span["attributes"] if item["key"] == "redaction.masked.count"]
    return int(found[0]) if found else 0

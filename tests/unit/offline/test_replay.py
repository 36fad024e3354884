"""Replaying recorded runs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reach_otel.engine import Limits, Record
from reach_otel.errors import InputError
from reach_otel.offline.replay import PROBLEMS_KEPT_MAX, Notes, replay
from reach_otel.task import Tasks, load
from tests.support.otlp import Trace, write_lines

TASK = """
task: shop
match: {agent: bot}
milestones:
  - id: read
    verify: {tool: read_ticket}
  - id: stock
    depends_on: [read]
    verify: {tool: check_inventory, result: {ok: true}}
    grounded: [sku]
"""


@pytest.fixture
def tasks(tmp_path: Path) -> Tasks:
    folder = tmp_path / "tasks"
    folder.mkdir()
    (folder / "shop.task.yaml").write_text(TASK, encoding="utf-8")
    return load([folder])


def good(name: str = "good", offset: float = 0.0) -> Trace:
    trace = Trace(name, offset_seconds=offset)
    trace.call("read_ticket", {"ticket": "T-77"}, {"sku": "SKU-1234"})
    trace.call("check_inventory", {"sku": "SKU-1234"}, {"ok": True})
    return trace.end(user="Please look at T-77.", says="SKU-1234 is there.")


def short(name: str = "short", offset: float = 0.0) -> Trace:
    trace = Trace(name, offset_seconds=offset)
    trace.call("read_ticket", {"ticket": "T-77"}, {"sku": "SKU-1234"})
    return trace.end(user="Please look at T-77.", says="Sorry.")


def plain(records: list[Record]) -> Any:
    return msgspec.to_builtins(records)


def test_runs_come_in_order_of_their_start_whatever_the_order_of_the_files(tmp_path: Path, tasks: Tasks) -> None:
    late = write_lines(tmp_path / "a.jsonl", [good("third", 20), short("second", 10)])
    early = write_lines(tmp_path / "b.jsonl", [good("first")])
    records = list(replay([late, early], tasks))
    assert [(r.trace_id, r.outcome) for r in records] == [
        (Trace("first").trace_id, "success"),
        (Trace("second").trace_id, "partial"),
        (Trace("third").trace_id, "success"),
    ]
    assert all(r.final and r.task == "shop" and r.steps is None for r in records)


def test_all_forms_of_the_same_runs_give_the_same_records(tmp_path: Path, tasks: Tasks) -> None:
    """One run a line, one span a line, pretty-printed, gzipped and from the last span to the first."""
    traces = [good(), short(offset=5)]
    lines = write_lines(tmp_path / "lines.jsonl", traces)
    requests = [json.loads(trace.line()) for trace in traces]
    (tmp_path / "document.json").write_text(json.dumps(requests, indent=1), encoding="utf-8")
    (tmp_path / "lines.gz").write_bytes(gzip.compress(lines.read_bytes()))
    spans = [json.dumps(one) for request in requests for one in single_spans(request)]
    (tmp_path / "spans.jsonl").write_text("\n".join(spans), encoding="utf-8")
    (tmp_path / "backwards.jsonl").write_text("\n".join(reversed(spans)), encoding="utf-8")
    expected = plain(list(replay([lines], tasks, steps=True)))
    assert len(expected) == 2
    for name in ("document.json", "lines.gz", "spans.jsonl", "backwards.jsonl"):
        assert plain(list(replay([tmp_path / name], tasks, steps=True))) == expected, name


def single_spans(request: dict[str, Any]) -> list[dict[str, Any]]:
    (group,) = request["resourceSpans"]
    (scope,) = group["scopeSpans"]
    return [
        {"resourceSpans": [{**group, "scopeSpans": [{**scope, "spans": [span]}]}]} for span in reversed(scope["spans"])
    ]


def content_in_logs(tmp_path: Path) -> tuple[Path, Path]:
    """Write a run whose model call has its messages in a log record, as older instrumentations do."""
    trace = Trace("logs")
    chat = trace.span(
        "chat m", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}, start=0.1, end=0.2, parent=trace.root
    )
    trace.cursor = 0.3
    trace.call("read_ticket", {"ticket": "T-77"}, {"sku": "SKU-1234"})
    trace.call("check_inventory", {"sku": "SKU-9999"}, {"ok": True})
    trace.end(says="Done.")
    message = {"role": "user", "parts": [{"type": "text", "content": "Is SKU-9999 there?"}]}
    record = {
        "timeUnixNano": str(trace.offset_ns + 150_000_000),
        "traceId": trace.trace_id,
        "spanId": chat,
        "eventName": "gen_ai.client.inference.operation.details",
        "attributes": [{"key": "gen_ai.input.messages", "value": {"stringValue": json.dumps([message])}}],
    }
    logs = tmp_path / "logs.jsonl"
    logs.write_text(json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}), encoding="utf-8")
    return write_lines(tmp_path / "spans.jsonl", [trace]), logs


def test_logs_belong_to_their_spans_whichever_file_is_read_first(tmp_path: Path, tasks: Tasks) -> None:
    """The SKU stands in the user's message only, which stands in the log file only."""
    spans, logs = content_in_logs(tmp_path)
    (alone,) = replay([spans], tasks)
    assert alone.milestones[1].reason == "fabricated"
    for files in ([spans, logs], [logs, spans]):
        (record,) = replay(files, tasks)
        assert record.milestones[1].state == "reached"


def test_a_run_without_a_root_is_abandoned(tmp_path: Path, tasks: Tasks) -> None:
    trace = good()
    trace.spans.pop()
    (record,) = replay([write_lines(tmp_path / "a.jsonl", [trace])], tasks)
    assert (record.outcome, record.final) == ("abandoned", True)


def test_no_task_at_all_still_counts_runs(tmp_path: Path) -> None:
    (record,) = replay([write_lines(tmp_path / "a.jsonl", [good()])], Tasks())
    assert record.task == "unmatched"
    assert sum(record.actions.values()) == 2


def test_more_runs_than_may_be_open_lose_nothing_when_they_have_ended(tmp_path: Path, tasks: Tasks) -> None:
    path = write_lines(tmp_path / "many.jsonl", [good(f"run-{n}", 100 - n) for n in range(50)])
    notes = Notes()
    records = list(replay([path], tasks, limits=Limits(runs_max=5), notes=notes))
    assert [r.outcome for r in records] == ["success"] * 50
    assert sorted(r.start for r in records) == [r.start for r in records]
    assert not notes.counts


def test_steps_are_there_only_when_asked_for(tmp_path: Path, tasks: Tasks) -> None:
    path = write_lines(tmp_path / "a.jsonl", [good()])
    (record,) = replay([path], tasks, steps=True)
    assert record.steps is not None
    assert [(s.kind, s.tool) for s in record.steps if s.kind == "tool"] == [
        ("tool", "read_ticket"),
        ("tool", "check_inventory"),
    ]


def test_bad_input_is_noted_with_its_place_and_the_rest_is_scored(tmp_path: Path, tasks: Tasks) -> None:
    bad_span = json.loads(short("zero").line())
    bad_span["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["spanId"] = "0" * 16
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join([good().line(), "{broken", json.dumps(bad_span)]), encoding="utf-8")
    notes = Notes()
    records = list(replay([path], tasks, notes=notes))
    assert records[0].outcome == "success"
    assert [p.where for p in notes.problems] == [f"{path}:2", f"{path}:3"]
    assert "1 zero_id" in notes.problems[1].what
    assert notes.spans == 4


def test_a_span_that_comes_twice_counts_once(tmp_path: Path, tasks: Tasks) -> None:
    path = write_lines(tmp_path / "a.jsonl", [good()])
    once = list(replay([path], tasks))
    notes = Notes()
    assert plain(list(replay([path, path], tasks, notes=notes))) == plain(once)
    assert notes.counts["duplicate", "span"] == 3


def test_noted_problems_are_bounded(tmp_path: Path, tasks: Tasks) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(good().line() + "\n" + "{broken\n" * (PROBLEMS_KEPT_MAX + 5), encoding="utf-8")
    notes = Notes()
    assert len(list(replay([path], tasks, notes=notes))) == 1
    assert notes.problems_total == PROBLEMS_KEPT_MAX + 5
    assert len(notes.problems) == PROBLEMS_KEPT_MAX


def test_progress_adds_up_to_all_bytes(tmp_path: Path, tasks: Tasks) -> None:
    one = write_lines(tmp_path / "a.jsonl", [good()])
    two = write_lines(tmp_path / "b.jsonl", [short()])
    size = one.stat().st_size + two.stat().st_size
    told: list[tuple[int, int | None]] = []
    assert len(list(replay([one, two], tasks, progress=lambda read, total: told.append((read, total))))) == 2
    assert sum(read for read, _ in told) == size
    assert {total for _, total in told} == {size}


def test_a_path_that_is_not_there_is_an_error_at_once(tmp_path: Path, tasks: Tasks) -> None:
    with pytest.raises(InputError, match="no such file"):
        replay([tmp_path / "nothing"], tasks)


def test_odd_values_survive_the_wait_for_their_turn(tmp_path: Path, tasks: Tasks) -> None:
    """Integers beyond 64 bits, lone surrogates and deep nesting come out as what JSON can hold."""
    trace = Trace("odd")
    trace.call("read_ticket", '{"ticket": 1180591620717411303424, "text": "\\ud800 lone"}', "[" * 60 + "]" * 60)
    path = write_lines(tmp_path / "a.jsonl", [trace.end(user="T", says="\ud83d\ude00 ok")])
    (record,) = replay([path], tasks, steps=True)
    assert json.loads(msgspec.json.encode(record))["steps"][0]["tool"] == "read_ticket"

"""``reach-otel replay``: what a person and a program get to see."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner, Result

from reach_otel.cli.main import app
from tests.support.otlp import Trace, write_lines

if TYPE_CHECKING:
    from pathlib import Path


TASK = """
task: shop
match: {agent: bot}
k: 6
grounded: [sku]
milestones:
  - id: read
    verify: {tool: read_ticket}
  - id: stock
    depends_on: [read]
    verify: {tool: check_inventory}
  - id: update
    depends_on: [stock]
    verify: {tool: update_ticket, result: {ok: true}}
traps:
  - id: refunded
    verify: {tool: refund}
"""
SECRET_ARGUMENT = "SKU-SECRET-4711"
SECRET_RESULT = "whispered-result-0815"
SECRET_ERROR = "hush-error-99"


@pytest.fixture
def task(tmp_path: Path) -> Path:
    path = tmp_path / "shop.task.yaml"
    path.write_text(TASK, encoding="utf-8")
    return path


def good(name: str = "good", offset: float = 0.0) -> Trace:
    trace = Trace(name, offset_seconds=offset)
    trace.call("read_ticket", {"ticket": "T-77"}, {"sku": "SKU-1234"})
    trace.call("check_inventory", {"sku": "SKU-1234"}, {"stock": 3})
    trace.call("update_ticket", {"ticket": "T-77"}, {"ok": True})
    return trace.end(user="Please look at T-77.", says="Done.")


def fabricated(name: str = "made up", offset: float = 5.0) -> Trace:
    """Tell a run that makes up a SKU, fails, repeats, hits the cap and a trap: all that a finding could quote."""
    trace = Trace(name, offset_seconds=offset)
    trace.call("read_ticket", {"ticket": "T-77"}, {"text": SECRET_RESULT})
    trace.call("check_inventory", {"sku": SECRET_ARGUMENT}, {"sku": SECRET_ARGUMENT, "stock": 3})
    for _ in range(4):
        trace.call("update_ticket", {"ticket": SECRET_ARGUMENT}, error=SECRET_ERROR)
    trace.call("refund", {"sku": SECRET_ARGUMENT}, SECRET_RESULT)
    return trace.end(user="Please look at T-77.", says=SECRET_ERROR)


def replay(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["replay", *map(str, arguments)], env={"COLUMNS": "200"})


def records(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_json_is_one_object_a_run_in_order_of_start_and_nothing_else(tmp_path: Path, task: Path) -> None:
    spans = write_lines(tmp_path / "a.jsonl", [fabricated(), good()])
    found = records(replay(spans, "--task", task, "--json"))
    assert [r["outcome"] for r in found] == ["success", "failed"]
    assert all("steps" not in record for record in found)
    assert list(found[0])[:6] == ["run", "trace_id", "conversation_id", "task", "agent", "variant"]
    assert found[0]["scores"]["digestion"] is None


def test_steps_show_arguments_and_results(tmp_path: Path, task: Path) -> None:
    spans = write_lines(tmp_path / "a.jsonl", [fabricated()])
    (record,) = records(replay(spans, "--task", task, "--json", "--steps"))
    assert [s["tool"] for s in record["steps"] if s["kind"] == "tool"][:2] == ["read_ticket", "check_inventory"]
    assert record["steps"][1]["args"] == {"sku": SECRET_ARGUMENT}
    table = replay(spans, "--task", task, "--steps").stdout
    assert SECRET_ARGUMENT in table
    assert SECRET_RESULT in table


@pytest.mark.parametrize("options", [["--json"], [], ["--verbose"]], ids=["json", "table", "verbose"])
def test_no_value_of_a_call_is_shown_without_steps(tmp_path: Path, task: Path, options: list[str]) -> None:
    spans = write_lines(tmp_path / "a.jsonl", [fabricated()])
    result = replay(spans, "--task", task, *options)
    assert result.exit_code == 0
    for secret in (SECRET_ARGUMENT, SECRET_RESULT, SECRET_ERROR):
        assert secret not in result.output


def test_the_table_says_where_each_run_stopped_and_why(tmp_path: Path, task: Path) -> None:
    spans = write_lines(tmp_path / "a.jsonl", [good(), fabricated()])
    lines = replay(spans, "--task", task).stdout.splitlines()
    success = next(line for line in lines if "success" in line and Trace("good").trace_id in line)
    assert "1.000" in success
    assert "high risk" not in success
    failed = next(line for line in lines if Trace("made up").trace_id in line)
    assert "⚠ high risk" in failed
    assert "trap refunded at action 7" in failed


def test_the_summary_gives_rates_by_milestone(tmp_path: Path, task: Path) -> None:
    spans = write_lines(tmp_path / "a.jsonl", [good(), fabricated()])
    output = replay(spans, "--task", task).stdout
    stock = next(line for line in output.splitlines() if line.startswith("stock "))
    assert "1/2" in stock
    assert "50 %" in stock
    assert "1 fabricated" in stock
    assert "1 failed, 1 success" in output


def test_verbose_shows_milestones_obstacles_and_findings_of_each_run(tmp_path: Path, task: Path) -> None:
    spans = write_lines(tmp_path / "a.jsonl", [fabricated()])
    output = replay(spans, "--task", task, "--verbose").stdout
    assert any("stock" in line and "passed" in line and "fabricated" in line for line in output.splitlines())
    assert "error in update_ticket, 3 retries, not digested" in output
    assert "refunded" in output


def test_markup_and_control_characters_of_spans_do_nothing(tmp_path: Path, task: Path) -> None:
    trace = Trace("evil", agent="[bold]bot\x1b]0;owned\x07")
    trace.call("[link=http://x]read_ticket[/link]", {}, {})
    output = replay(write_lines(tmp_path / "a.jsonl", [trace.end(says="x")]), "--task", task, "--steps").stdout
    assert "\x1b" not in output
    assert "\x07" not in output
    assert "[link=http://x]" in output


def test_without_a_task_runs_are_unmatched(tmp_path: Path) -> None:
    (record,) = records(replay(write_lines(tmp_path / "a.jsonl", [good()]), "--json"))
    assert record["task"] == "unmatched"


def test_standard_input_is_read(tmp_path: Path, task: Path) -> None:
    content = gzip.compress(good().line().encode())
    result = CliRunner().invoke(app, ["replay", "-", "--task", str(task), "--json"], input=content)
    assert records(result)[0]["outcome"] == "success"


def test_run_scope_agent_makes_one_run_a_top_level_agent(tmp_path: Path, task: Path) -> None:
    """Two agents called one after the other by the same application, in one trace."""
    first, second = good("one trace"), good("one trace", offset=10)
    for span in second.spans:
        for key in ("spanId", "parentSpanId"):
            if key in span:
                span[key] = f"{int(span[key], 16) + 0x100:016x}"
    spans = write_lines(tmp_path / "a.jsonl", [first, second])
    assert len(records(replay(spans, "--task", task, "--json"))) == 1
    assert len(records(replay(spans, "--task", task, "--json", "--run-scope", "agent"))) == 2


def test_bad_lines_are_told_on_standard_error_and_do_no_harm(tmp_path: Path, task: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(good().line() + "\n" + "{broken\n" * 30, encoding="utf-8")
    result = replay(path, "--task", task, "--json")
    assert len(records(result)) == 1
    assert "30 pieces of input could not be used" in result.stderr
    assert f"{path}:2: it is not JSON" in result.stderr
    assert "… and 20 more" in result.stderr
    assert replay(path, "--task", task, "--json", "--verbose").stderr.count("it is not JSON") == 30


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"hello\n", "neither JSON nor OTLP"), (b'{"a": 1}\n', "neither resourceSpans nor resourceLogs"), (b"", "empty")],
)
def test_a_file_that_is_no_otlp_is_one_clear_message(tmp_path: Path, task: Path, content: bytes, said: str) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(content)
    result = replay(path, "--task", task)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"reach-otel: {path}")
    assert said in result.stderr
    assert "expected OTLP traces or logs" in result.stderr


def test_a_wrong_task_file_is_one_clear_message(tmp_path: Path) -> None:
    path = tmp_path / "bad.task.yaml"
    path.write_text("task: x\nmilestone: []\n", encoding="utf-8")
    result = replay(write_lines(tmp_path / "a.jsonl", [good()]), "--task", path)
    assert result.exit_code == 2
    assert f"{path}:2" in result.stderr
    assert "milestones" in result.stderr


def test_no_runs_is_said(tmp_path: Path, task: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"resourceSpans": []}\n', encoding="utf-8")
    result = replay(path, "--task", task)
    assert result.exit_code == 0
    assert result.stdout == "no runs found\n"


def test_many_tasks_do_not_flood_the_terminal(tmp_path: Path) -> None:
    for n in range(12):
        (tmp_path / f"t{n}.task.yaml").write_text(
            f"task: t{n:02d}\nmatch: {{agent: bot{n}}}\nmilestones: [{{id: m, verify: {{tool: read_ticket}}}}]\n",
            encoding="utf-8",
        )
    traces = []
    for n in range(12):
        trace = Trace(f"r{n}", agent=f"bot{n}", offset_seconds=n)
        trace.call("read_ticket", {}, {})
        traces.append(trace.end(says="ok"))
    spans = write_lines(tmp_path / "a.jsonl", traces)
    output = replay(spans, "--task", tmp_path).stdout
    assert "Milestones of 12 tasks are not shown; see them with --verbose." in output
    assert "milestones of t03" in replay(spans, "--task", tmp_path, "--verbose").stdout

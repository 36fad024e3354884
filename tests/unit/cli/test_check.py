"""``reach-otel check``: what it prints, its JSON, and when it fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner, Result

from reach_otel.cli import check

GOOD = """task: good
match: {agent: a}
milestones:
  - {id: read, verify: {tool: x}}
  - {id: look, type: optional, depends_on: [read], verify: {tool: y}}
  - {id: act, depends_on: [read], verify: {tool: z, result: {ok: true}}}
  - {id: ask, type: fallback, covers: act, depends_on: [read], verify: {tool: w}}
traps:
  - {id: refund, when_not_reached: [act], verify: {tool: refund}}
"""
WARNED = "task: warned\nmilestones:\n  - {id: read, verify: {tool: x}}\n"
BAD = "task: bad\nmilestones:\n  - {id: read, verify: {tol: x}}\n"


def run(*arguments: str | Path) -> Result:
    app = typer.Typer()
    app.callback()(lambda: None)
    check.register(app)
    return CliRunner().invoke(app, ["check", *map(str, arguments)])


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_good_task_is_described(tmp_path: Path) -> None:
    result = run(write(tmp_path, "good.task.yaml", GOOD))
    assert result.exit_code == 0
    assert "4 milestones (2 must, 1 optional, 1 fallback), 1 trap, k = 15" in result.stdout
    assert "layer 1, weight 1   read\n" in result.stdout
    assert "layer 2, weight 2   look (optional), act, ask (fallback)\n" in result.stdout
    assert "critical edges      start -> read, read -> act\n" in result.stdout
    assert "trap                refund while act is not reached\n" in result.stdout
    assert "1 task, 0 errors, 0 warnings, " in result.stdout


def test_errors_go_to_standard_error_with_file_and_line_and_the_rest_is_still_told(tmp_path: Path) -> None:
    write(tmp_path, "good.task.yaml", GOOD)
    bad = write(tmp_path, "bad.task.yaml", BAD)
    result = run(tmp_path)
    assert result.exit_code == 1
    assert f"{bad}:3: error: milestones[0].verify.tol: unknown key; allowed: " in result.stderr
    assert 'did you mean "tool"?' in result.stderr
    assert "good  " in result.stdout
    assert "1 task, 1 error, 0 warnings" in result.stdout


def test_a_path_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    result = run(tmp_path / "nothing")
    assert result.exit_code == 1
    assert "error: no such file or folder" in result.stderr


def test_warnings_fail_only_if_strict_and_advice_never(tmp_path: Path) -> None:
    good, warned = write(tmp_path, "good.task.yaml", GOOD), write(tmp_path, "warned.task.yaml", WARNED)
    assert run(warned).exit_code == 0
    assert run("--strict", warned).exit_code == 1
    result = run("--strict", good)
    assert result.exit_code == 0
    assert "advice" in result.stdout
    assert f"{warned}: warning: no match" in run(warned).stdout


def test_json_is_one_object_with_everything(tmp_path: Path) -> None:
    good, bad = write(tmp_path, "good.task.yaml", GOOD), write(tmp_path, "bad.task.yaml", BAD)
    result = run("--json", good, bad)
    assert result.exit_code == 1
    report: dict[str, Any] = json.loads(result.stdout)
    assert report["ok"] is False
    (task,) = report["tasks"]
    assert (task["task"], task["file"], task["traps"]) == ("good", str(good), ["refund"])
    assert task["layers"][0] == {
        "layer": 1,
        "weight": 1.0,
        "milestones": [{"id": "read", "type": "must", "tools": ["x"]}],
    }
    assert task["critical_edges"] == [{"from": "start", "to": "read"}, {"from": "read", "to": "act"}]
    assert report["errors"][0]["file"] == str(bad)
    assert report["errors"][0]["line"] == 3
    assert {
        "file": str(good),
        "line": None,
        "kind": "advice",
        "code": "size",
        "message": "4 milestones; 10-15 tell most",
    } in report["warnings"]


def test_text_of_a_file_cannot_play_tricks_on_the_terminal(tmp_path: Path) -> None:
    text = 'task: t\nmilestones:\n  - {id: a, type: "\\e[31mred"}\n'
    assert "\x1b" not in run(write(tmp_path, "odd.task.yaml", text)).stderr

"""``reach-otel graph``: formats, where it writes, and what it cannot draw."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from reach_otel.cli import graph
from reach_otel.errors import TaskError

TASK = "task: {name}\nmilestones:\n  - {{id: read, verify: {{tool: x}}}}\n"
BEGINNINGS = {"dot": 'digraph "one"', "svg": "<svg ", "mermaid": "flowchart LR"}


def run(*arguments: str | Path) -> Result:
    app = typer.Typer()
    app.callback()(lambda: None)
    graph.register(app)
    return CliRunner().invoke(app, ["graph", *map(str, arguments)])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "one.task.yaml"
    path.write_text(TASK.format(name="one"), encoding="utf-8")
    return path


@pytest.mark.parametrize(("form", "beginning"), BEGINNINGS.items())
def test_each_format_goes_to_standard_output(file: Path, form: str, beginning: str) -> None:
    result = run(file, "--format", form)
    assert result.exit_code == 0
    assert result.stdout.startswith(beginning)


@pytest.mark.parametrize(("name", "form"), [("g.svg", "svg"), ("g.mmd", "mermaid"), ("g.dot", "dot"), ("g.txt", "dot")])
def test_the_name_of_the_output_tells_the_format(file: Path, name: str, form: str) -> None:
    output = file.parent / name
    result = run(file, "-o", output)
    assert (result.exit_code, result.stdout) == (0, "")
    assert output.read_text(encoding="utf-8").startswith(BEGINNINGS[form])


def test_the_format_asked_for_wins(file: Path) -> None:
    output = file.parent / "g.svg"
    assert run(file, "-o", output, "-f", "dot").exit_code == 0
    assert output.read_text(encoding="utf-8").startswith("digraph")


def test_a_folder_of_several_tasks_is_too_many(file: Path) -> None:
    (file.parent / "two.task.yaml").write_text(TASK.format(name="two"), encoding="utf-8")
    result = run(file.parent)
    assert result.exit_code == 2
    assert "holds 2 tasks; name the file of one" in result.stderr


def test_an_output_that_cannot_be_written_is_one_clear_message(file: Path) -> None:
    result = run(file, "-o", file.parent / "no" / "where.svg")
    assert result.exit_code == 2
    assert "cannot be written: No such file or directory" in result.stderr


def test_a_wrong_task_is_told_as_everywhere(tmp_path: Path) -> None:
    result = run(tmp_path / "nothing.task.yaml")
    assert isinstance(result.exception, TaskError)

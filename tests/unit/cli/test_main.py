"""The command line as a whole: version, help, and errors that are one clear message."""

from __future__ import annotations

import subprocess
import sys
import time
from importlib import metadata
from typing import TYPE_CHECKING

import pytest
import typer
from typer.testing import CliRunner

from reach_otel.cli import console, main
from reach_otel.errors import ReachError, StateError

if TYPE_CHECKING:
    from pathlib import Path

HELP_SECONDS_MAX = 2.0  # the goal is 0.5 s; a shared machine gets some grace


def test_version_is_that_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", {"reach-otel": "1.2.3"}.__getitem__)
    result = CliRunner().invoke(main.app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout == "reach-otel 1.2.3\n"


def test_version_works_in_a_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    result = CliRunner().invoke(main.app, ["--version"])
    assert result.exit_code == 0
    assert "checkout" in result.stdout


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_lists_every_command_with_its_first_sentence(option: str) -> None:
    result = CliRunner().invoke(main.app, [option])
    assert result.exit_code == 0
    for command in main.COMMANDS:
        assert f" {command} " in result.stdout


@pytest.mark.parametrize("command", main.COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    result = CliRunner().invoke(main.app, [command, "-h"])
    assert result.exit_code == 0
    assert f"reach-otel {command}" in result.stdout or f"{command} [OPTIONS]" in result.stdout


def test_no_command_shows_the_help() -> None:
    result = CliRunner().invoke(main.app, [])
    assert "Usage" in result.output


def test_help_imports_neither_engine_nor_sdk() -> None:
    """The help must come at once: what commands need is imported when they run."""
    code = (
        "import sys; from reach_otel.cli.main import app\n"
        "heavy = {'opentelemetry.sdk', 'pydantic', 'cel', 'prometheus_client', 'yaml', 'google.protobuf'}\n"
        "print(sorted(heavy & set(sys.modules)), any(m.startswith('reach_otel.engine') for m in sys.modules))"
    )
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] False"
    assert time.perf_counter() - start < HELP_SECONDS_MAX


def test_an_error_of_ours_is_one_message_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    app = typer.Typer(cls=main.Commands)

    @app.callback()
    def callback() -> None:
        pass

    @app.command()
    def broken() -> None:
        raise StateError("tasks/a.task.yaml:3: unknown key; did you mean 'milestones'?")

    assert issubclass(StateError, ReachError)
    result = CliRunner().invoke(app, ["broken"])
    assert result.exit_code == 2
    assert result.stderr == "reach-otel: tasks/a.task.yaml:3: unknown key; did you mean 'milestones'?\n"
    assert result.stdout == ""


def test_an_error_shows_no_traceback_in_a_real_process(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "reach_otel.cli.main", "replay", str(tmp_path / "nothing.jsonl")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == f"reach-otel: {tmp_path / 'nothing.jsonl'}: no such file or folder\n"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines\tand \x1b[31mcolour", "two lines and  [31mcolour"),
        ("reversed \u202etext", "reversed  text"),
        ("lone \ud800 surrogate", "lone   surrogate"),
        ("x" * 300, "x" * 199 + "…"),
        (3, "3"),
    ],
)
def test_foreign_text_is_made_harmless(value: object, shown: str) -> None:
    assert console.plain(value) == shown


def test_a_cell_reads_no_markup() -> None:
    assert console.cell("[red]not red[/red]").plain == "[red]not red[/red]"
    assert console.cell(None).plain == "–"

"""Offer the ``check`` command: tell what task files say, and what is wrong with them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reach_otel.cli.console import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reach_otel.errors import Problem
    from reach_otel.task.checks import TaskWarning
    from reach_otel.task.task import Milestone, Task

_TEXT_CHARS_MAX = 1_000

_HELP = """Check task files: layers, critical edges, errors, warnings and advice, each with file and line.

The exit code is 1 when there are errors, or with --strict warnings. Python conditions are imported, so check only files
you would run.

Editors complete task files that begin with "# yaml-language-server: $schema=PATH", where PATH is that of the file
task.schema.json in the package reach_otel.task.

Examples:

  reach-otel check tasks/

  reach-otel check --strict --json ticket.task.yaml
"""


def register(app: typer.Typer) -> None:
    """Add ``check`` to the command line."""
    app.command("check", help=_HELP, no_args_is_help=True)(check)


def check(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATHS", help="Task files, or folders with *.task.yaml, .yml or .json.")
    ],
    strict: Annotated[bool, typer.Option("--strict", help="Let warnings fail too; advice never does.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.")] = False,
) -> None:
    """Load what can be loaded and tell about all of it."""
    # Imported here and not above: --help must not pay for Pydantic.
    from reach_otel.task.checks import check as check_task  # noqa: PLC0415
    from reach_otel.task.load import load_what_can_be  # noqa: PLC0415

    tasks, problems = load_what_can_be(paths)
    warnings = [warning for task in tasks for warning in check_task(task)]
    failed = bool(problems) or (strict and any(warning.kind == "warning" for warning in warnings))
    if as_json:
        typer.echo(json.dumps(_report(tasks, problems, warnings, failed=failed), ensure_ascii=False, indent=2))
    else:
        _print(tasks, problems, warnings)
    if failed:
        raise typer.Exit(1)


def _print(tasks: Iterable[Task], problems: Iterable[Problem], warnings: list[TaskWarning]) -> None:
    for task in tasks:
        for line in _describe(task):
            typer.echo(plain(line, _TEXT_CHARS_MAX).rstrip())
        for warning in warnings:
            if warning.file == task.file:
                colour = typer.colors.YELLOW if warning.kind == "warning" else typer.colors.CYAN
                typer.secho(plain(warning, _TEXT_CHARS_MAX), fg=colour)
        typer.echo()
    for problem in problems:
        typer.secho(plain(f"{problem.place}: error: {problem.message}", _TEXT_CHARS_MAX), fg=typer.colors.RED, err=True)
    typer.echo(_summary(list(tasks), list(problems), warnings))


def _describe(task: Task) -> Iterator[str]:
    counts = Counter(milestone.type for milestone in task.milestones)
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    yield f"{task.name}  {task.file}"
    traps = f"{len(task.traps)} trap{'' if len(task.traps) == 1 else 's'}"
    yield f"  {len(task.milestones)} milestones ({kinds or 'none'}), {traps}, k = {task.k}"
    for layer, weight, milestones in _layers(task):
        names = ", ".join(m.id if m.type == "must" else f"{m.id} ({m.type})" for m in milestones)
        heading = f"layer {layer}" if weight is None else f"layer {layer}, weight {weight:g}"
        yield f"  {heading:<18}  {names}"
    edges = ", ".join(f"{source} -> {target}" for source, target in _critical_edges(task))
    yield f"  {'critical edges':<18}  {edges or 'none'}"
    for trap in task.traps:
        names = " or ".join(task.milestones[index].id for index in trap.when_not_reached)
        yield f"  {'trap':<18}  {trap.id}" + (f" while {names} is not reached" if names else "")


def _layers(task: Task) -> Iterator[tuple[int, float | None, list[Milestone]]]:
    """Give number, weight (none beyond the deepest must-milestone) and milestones of each layer."""
    from reach_otel.task.draw import by_layer  # noqa: PLC0415 - see check

    for layer, milestones in by_layer(task):
        yield layer, task.layer_weights[layer - 1] if layer <= len(task.layer_weights) else None, milestones


def _critical_edges(task: Task) -> list[tuple[str, str]]:
    """Give the critical edges by name; milestones that wait for nothing come from ``start``."""
    ids = [milestone.id for milestone in task.milestones]
    return [("start" if source is None else ids[source], ids[target]) for source, target in task.critical_edges]


def _summary(tasks: list[Task], problems: list[Problem], warnings: list[TaskWarning]) -> str:
    kinds = Counter(warning.kind for warning in warnings)
    parts = ((len(tasks), "task"), (len(problems), "error"), (kinds["warning"], "warning"))
    counted = [f"{count} {word}{'' if count == 1 else 's'}" for count, word in parts]
    return ", ".join([*counted, f"{kinds['advice']} advice"])


def _report(
    tasks: Iterable[Task], problems: Iterable[Problem], warnings: Iterable[TaskWarning], *, failed: bool
) -> dict[str, Any]:
    return {
        "ok": not failed,
        "tasks": [_task_report(task) for task in tasks],
        "errors": [{"file": p.file, "line": p.line or None, "message": p.message} for p in problems],
        "warnings": [
            {"file": w.file, "line": w.line or None, "kind": w.kind, "code": w.code, "message": w.message}
            for w in warnings
        ],
    }


def _task_report(task: Task) -> dict[str, Any]:
    return {
        "task": task.name,
        "file": task.file,
        "k": task.k,
        "layers": [
            {
                "layer": layer,
                "weight": weight,
                "milestones": [{"id": m.id, "type": m.type, "tools": list(m.tools)} for m in milestones],
            }
            for layer, weight, milestones in _layers(task)
        ],
        "critical_edges": [{"from": source, "to": target} for source, target in _critical_edges(task)],
        "traps": [trap.id for trap in task.traps],
    }

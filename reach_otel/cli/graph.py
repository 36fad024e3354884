"""Offer the ``graph`` command: draw a task's graph."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reach_otel.cli import console

if TYPE_CHECKING:
    from reach_otel.task.task import Task


_HELP = """Draw a task's graph: layers in columns with weights, must, optional and fallback milestones, traps.

Thick edges are critical: every way to the last layer goes through them. Dashed ones lead from one of several milestones
that will do.

Examples:

  reach-otel graph ticket.task.yaml -o ticket.svg

  reach-otel graph ticket.task.yaml --format dot | dot -Tpng > ticket.png

  reach-otel graph ticket.task.yaml --format mermaid
"""


class Format(StrEnum):
    """What a graph can be written as."""

    DOT = "dot"
    SVG = "svg"
    MERMAID = "mermaid"


_BY_SUFFIX = {".svg": Format.SVG, ".mmd": Format.MERMAID, ".mermaid": Format.MERMAID, ".md": Format.MERMAID}


def register(app: typer.Typer) -> None:
    """Add ``graph`` to the command line."""
    app.command("graph", help=_HELP, no_args_is_help=True)(graph)


def graph(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A task file.")],
    form: Annotated[
        Format | None,
        typer.Option("--format", "-f", help="What to write. Without it, FILE's name tells, else dot."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write here instead of standard output.")
    ] = None,
) -> None:
    """Load the task and write its drawing."""
    # Imported here and not above: --help must not pay for Pydantic.
    from reach_otel.task.load import load  # noqa: PLC0415

    tasks = load(path)
    if len(tasks) > 1:
        console.fail(f"{path} holds {len(tasks)} tasks; name the file of one: {', '.join(task.file for task in tasks)}")
        raise typer.Exit(2)
    wanted = form or _BY_SUFFIX.get(output.suffix.lower() if output else "", Format.DOT)
    text = _draw(tasks[0], wanted)
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        console.fail(f"{output} cannot be written: {error.strerror or error}")
        raise typer.Exit(2) from None


def _draw(task: Task, form: Format) -> str:
    from reach_otel.task.draw import dot, mermaid  # noqa: PLC0415 - see graph
    from reach_otel.task.svg import svg  # noqa: PLC0415

    return {Format.DOT: dot, Format.SVG: svg, Format.MERMAID: mermaid}[form](task)

"""Offer the ``watch`` command: the live view of a service's runs in a terminal."""

from __future__ import annotations

from typing import Annotated

import typer

from reach_otel.cli import console


def register(app: typer.Typer) -> None:
    """Add ``watch`` to the command line."""
    app.command()(watch)


def watch(
    url: Annotated[str, typer.Argument(metavar="URL", help="Address of the service: http://127.0.0.1:4318")],
    task: Annotated[str | None, typer.Option("--task", "-t", help="Show the runs of this task only.")] = None,
    token: Annotated[
        str | None,
        typer.Option(envvar="REACH_SERVE_READ_TOKEN", help="Token for reading, where the service asks for one."),
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Print lines instead of the live view.")] = False,
    duration: Annotated[
        float | None, typer.Option(min=0, help="End after so many seconds, not only at Ctrl-C.")
    ] = None,
) -> None:
    """Watch the runs of a service: each on its way through its task graph, and what became of it.

    A line that breaks is taken up again where it was. Without a terminal, lines are printed.
    """
    # Imported here and not above: the other commands must not pay for an HTTP client.
    from reach_otel.cli.watching import show  # noqa: PLC0415

    terminal = console.out()
    show(url, terminal, task=task, token=token, plain=plain or not terminal.is_terminal, duration_seconds=duration)

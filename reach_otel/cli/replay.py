"""``reach-otel replay``: score recorded runs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

_HELP = """Score recorded runs: the same engine as live, over OTLP files.

Files hold OTLP traces and logs: JSON lines or protobuf as the Collector's file exporter writes them, or single \
requests, gzipped or not. Folders are searched, "-" is standard input. The form is told by content.

Examples:

  reach-otel replay traces.jsonl --task tasks/

  reach-otel replay spans/ logs/ --task ticket.task.yaml --json > runs.jsonl

  zcat old.jsonl.gz | reach-otel replay - --task tasks/ --verbose
"""


class RunScope(StrEnum):
    """What makes a run (SPEC 5.1)."""

    trace = "trace"
    agent = "agent"
    conversation = "conversation"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("replay", help=_HELP, no_args_is_help=True)(replay_command)


def replay_command(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help='Files, folders, or "-" for standard input.')],
    task: Annotated[
        list[str] | None,
        typer.Option("--task", "-t", metavar="PATH", help="Task file or folder of task files; may be given again."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a run and nothing else.")] = False,
    steps: Annotated[
        bool, typer.Option("--steps", help="Show each run's normalised steps, with arguments and results.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show each run's milestones with reasons, and all messages.")
    ] = False,
    run_scope: Annotated[
        RunScope, typer.Option("--run-scope", help="What makes a run: a trace, a top-level agent, a conversation.")
    ] = RunScope.trace,
) -> None:
    """Hand over to :mod:`reach_otel.cli.replaying`, which alone pays for importing engine and tables."""
    from reach_otel.cli import replaying  # noqa: PLC0415

    replaying.run(files, task or [], json=json, steps=steps, verbose=verbose, run_scope=run_scope.value)

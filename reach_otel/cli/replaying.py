"""Replay files and print what became of the runs in them."""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, Literal

import msgspec
import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

from reach_otel.cli import console, tables
from reach_otel.engine import Limits
from reach_otel.offline.replay import Notes, replay
from reach_otel.offline.summary import TaskTally
from reach_otel.task import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from reach_otel.engine import Record

PROBLEMS_SHOWN_MAX: Final = 10
MILESTONE_TABLES_MAX: Final = 10
GC_THRESHOLD: Final = 50_000


def run(
    files: list[str],
    task_paths: list[str],
    *,
    json: bool,
    steps: bool,
    verbose: bool,
    run_scope: Literal["trace", "agent", "conversation"],
) -> None:
    """Score the runs in ``files`` and print them as JSON lines or as tables; messages go to standard error."""
    tasks = load(task_paths)
    notes = Notes()
    with _rare_collection(), _progress() as progress:
        records = replay(files, tasks, limits=Limits(run_scope=run_scope), steps=steps, progress=progress, notes=notes)
        first = list(islice(records, 1))  # all input has been read when the first record comes
    found = chain(first, records)
    if json:
        _print_json(found, steps=steps)
    else:
        _print_tables(found, steps=steps, verbose=verbose)
    _print_notes(notes, verbose=verbose)


@contextmanager
def _rare_collection() -> Iterator[None]:
    """Let the garbage collector run rarely: it would walk all open runs again and again, for half of the time."""
    before = gc.get_threshold()
    gc.set_threshold(GC_THRESHOLD, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def _progress() -> Iterator[Callable[[int, int | None], None] | None]:
    """Show the bytes read on standard error while it is a terminal; nothing stays when it is done."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress("reading", *columns, console=console.err(), transient=True) as bar:
        reading = bar.add_task("reading", total=None)

        def advance(read: int, total: int | None) -> None:
            bar.update(reading, advance=read, total=total)

        yield advance


def _print_json(records: Iterable[Record], *, steps: bool) -> None:
    encode = msgspec.json.Encoder().encode
    for record in records:
        line = msgspec.to_builtins(record)
        if not steps:
            line.pop("steps", None)
        typer.echo(encode(line))


def _print_tables(records: Iterable[Record], *, steps: bool, verbose: bool) -> None:
    out = console.out()
    runs = tables.runs_table()
    tallies: dict[str, TaskTally] = {}
    details = []
    for record in records:
        tables.add_run(runs, record)
        tallies.setdefault(record.task, TaskTally(record.task)).add(record)
        if verbose:
            details += [tables.milestones_table(record), tables.events_table(record)]
        if steps:
            details.append(tables.steps_table(record))
    if not tallies:
        out.print("no runs found")
        return
    out.print(runs)
    for table in details:
        if table is not None:
            out.print()
            out.print(table)
    summaries = [tallies[name].summary() for name in sorted(tallies)]
    out.print()
    out.print(tables.tasks_table(summaries))
    shown = [summary for summary in summaries if summary.milestones]
    if len(shown) > MILESTONE_TABLES_MAX and not verbose:
        out.print(f"\nMilestones of {len(shown)} tasks are not shown; see them with --verbose.")
        return
    for summary in shown:
        out.print()
        out.print(tables.task_milestones_table(summary))


def _print_notes(notes: Notes, *, verbose: bool) -> None:
    def say(line: str) -> None:
        typer.echo(line, err=True)

    shown = notes.problems if verbose else notes.problems[:PROBLEMS_SHOWN_MAX]
    if notes.problems_total:
        pieces = "1 piece" if notes.problems_total == 1 else f"{notes.problems_total:,} pieces"
        say(f"reach-otel: {pieces} of input could not be used:")
        for problem in shown:
            say(f"  {console.plain(problem.where)}: {console.plain(problem.what)}")
        if notes.problems_total > len(shown):
            say(f"  … and {notes.problems_total - len(shown):,} more")
    for (what, reason), count in sorted(notes.counts.items()):
        say(f"reach-otel: {count:,} × {what} ({reason})")

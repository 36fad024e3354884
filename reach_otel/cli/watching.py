"""Show a service's runs in a terminal, live or line by line, with the drawings of the demo."""

from __future__ import annotations

import signal
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import FrameType
from typing import Any, Final

import msgspec
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from reach_otel.cli.console import plain
from reach_otel.cli.feed import Feed
from reach_otel.demo import view
from reach_otel.demo.board import Board, Finished
from reach_otel.engine.events import RunSummary
from reach_otel.engine.record import MilestoneRecord, Record, Scores, TokenRecord

FRAME_SECONDS: Final = 0.25
SUMMARY_SECONDS: Final = 10.0
BOARDS_MAX: Final = 200
DONE_MAX: Final = 10_000
OPEN_MAX: Final = 5_000
NAME_MAX: Final = 40
OTHERS_MAX: Final = 5
AROUND_LINES: Final = 19  # heading; titles and heads of three tables, each with a gap above; legend

Json = dict[str, Any]


def show(
    url: str,
    console: Console,
    *,
    task: str | None,
    token: str | None,
    plain: bool,
    duration_seconds: float | None,
) -> None:
    """Show the runs of the service at ``url`` until the time is up, or SIGINT or SIGTERM asks to end.

    :raises ReachError: nothing that can be watched is there.
    """
    runs = Runs()
    feed = Feed(url, runs.take, token=token, task=task)
    ends = None if duration_seconds is None else time.monotonic() + duration_seconds
    try:
        with _asked_to_stop() as asked:
            draw = _print_lines if plain else _draw
            draw(runs, feed, url, console, lambda: not asked() and (ends is None or time.monotonic() < ends))
    finally:
        feed.close()


class Runs:
    """Keep what the service told, a board for each task; the feed's thread writes, the drawing one looks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, RunSummary] = {}
        self._verdicts: dict[str, Record] = {}
        self._boards: dict[str, Board] = {}
        self._done: OrderedDict[str, None] = OrderedDict()  # told again after a break of the line
        self._latest: str | None = None

    def take(self, event: str, data: Json) -> None:
        """Take one event; what cannot be read is left out."""
        with self._lock:
            try:
                self._take(event, data)
            except (KeyError, TypeError, AttributeError, ValueError):  # of another version; msgspec's are ValueErrors
                return

    def _take(self, event: str, data: Json) -> None:
        if event == "reset":
            self._open.clear()
        elif event in ("merged", "dropped"):
            self._open.pop(data["run"], None)
        elif data["run"] in self._done:
            return
        elif event == "run":
            if data["run"] in self._open or len(self._open) < OPEN_MAX:
                run = _summary(data)
                self._open[run.run_id] = run
                self._latest = run.task
        elif event == "closed":
            # A board notices what ends by its going away, so a run is there for one look at least.
            self._open.setdefault(data["run"], _summary(data))
            self._verdicts[data["run"]] = _record(data)

    def look(self) -> list[Finished]:
        """Bring the boards up to date; return what has finished since the last look."""
        with self._lock:
            by_task: dict[str, list[RunSummary]] = {name: [] for name in self._boards}
            for run in self._open.values():
                by_task.setdefault(run.task, []).append(run)
            done = []
            for task, runs in list(by_task.items())[:BOARDS_MAX]:
                board = self._boards.setdefault(task, Board(self._verdicts.get, self._agent_of))
                board.look(runs)
                still = [run for run in runs if run.run_id not in self._verdicts]
                if len(still) < len(runs):
                    done += board.look(still)
            for finished in done:
                self._open.pop(finished.record.run, None)
                self._verdicts.pop(finished.record.run, None)
                self._done[finished.record.run] = None
                if len(self._done) > DONE_MAX:
                    self._done.popitem(last=False)
            return done

    def boards(self) -> dict[str, Board]:
        """Return the boards by task, the one where something happened last first."""
        with self._lock:
            first = self._latest
            return dict(sorted(self._boards.items(), key=lambda item: (item[0] != first, item[0])))

    def _agent_of(self, run_id: str) -> str:
        record = self._verdicts.get(run_id)
        return plain((record.agent if record else None) or "", NAME_MAX)


def _summary(run: Json) -> RunSummary:
    """Read a run in small as the engine gives it; texts of foreign origin are made harmless."""
    started_ns = int(datetime.fromisoformat(run["start"]).astimezone(UTC).timestamp() * 1e9)
    scores = run["scores"]
    return msgspec.convert(
        {
            "run_id": run["run"],
            "trace_id": run["run"],  # a board knows runs by it
            "task": plain(run["task"], NAME_MAX),
            "agent": run["agent"],
            "variant": run["variant"],
            "started_ns": started_ns,
            "latest_ns": started_ns + int(run["duration_seconds"] * 1e9),
            "actions": run["actions"],
            "last_tool": plain(run["last_tool"], NAME_MAX) if run["last_tool"] else None,
            **{name: scores[name] for name in ("depth", "purity", "digestion", "composite", "high_layer")},
            "milestones": [{**m, "id": plain(m["id"], NAME_MAX)} for m in run["milestones"]],
            "findings": run["findings"],
        },
        RunSummary,
    )


def _record(run: Json) -> Record:
    """Make of a run in small a record as far as the drawings look at it."""
    numbers = run["scores"]
    scores = Scores(
        depth=numbers["depth"],
        purity=numbers["purity"],
        digestion=numbers["digestion"],
        composite=numbers["composite"],
        high_layer=numbers["high_layer"],
        coverage=0,
        reach_at_k={},
        optional_reach=None,
        fallback_reach=None,
    )
    milestones = [{**m, "id": plain(m["id"], NAME_MAX), "seconds": None, "span_id": None} for m in run["milestones"]]
    return Record(
        run=run["run"],
        trace_id=run["trace_id"],
        conversation_id=None,
        task=run["task"],
        agent=run["agent"],
        variant=run["variant"],
        final=True,
        start=run["start"],
        duration_seconds=run["duration_seconds"],
        content="full",
        outcome=run["outcome"],
        scores=msgspec.convert(msgspec.to_builtins(scores), Scores),  # checks the types
        high_risk=run["high_risk"],
        milestones=msgspec.convert(milestones, tuple[MilestoneRecord, ...]),
        traps=(),
        obstacles=(),
        findings=(),
        levels={},
        break_point=None,
        actions={},
        tokens=TokenRecord(),
        utilisation=None,
        cost_dollars=None,
    )


# Drawing.


def _draw(runs: Runs, feed: Feed, url: str, console: Console, going_on: Callable[[], bool]) -> None:
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while going_on():
            runs.look()
            width, height = console.size
            live.update(screen(runs.boards(), url, is_live=feed.is_live, width=width, height=height), refresh=True)
            time.sleep(FRAME_SECONDS)


def _print_lines(runs: Runs, feed: Feed, url: str, console: Console, going_on: Callable[[], bool]) -> None:
    """Print a line for each run that finishes, and how each task stands every ten seconds."""
    console.print(f"watching {url}", highlight=False, soft_wrap=True, markup=False)
    told = time.monotonic()
    was_live = False
    while going_on():
        for done in runs.look():
            _print(console, f"{plain(done.record.task, NAME_MAX)}  {view.line(done)}", _ended(done.record))
        if was_live and not feed.is_live:
            _print(console, "the line is broken; trying again")
        was_live = feed.is_live
        if time.monotonic() >= told + SUMMARY_SECONDS:
            told = time.monotonic()
            for task, board in runs.boards().items():
                open_runs = f"{len(board.open)} running"
                _print(console, f"{task}  {open_runs}  {view.high_layer_text(board.high_layer()).plain}")
        time.sleep(FRAME_SECONDS)


def _ended(record: Record) -> datetime:
    return datetime.fromisoformat(record.start).astimezone(UTC) + timedelta(seconds=record.duration_seconds)


def _print(console: Console, text: str, at: datetime | None = None) -> None:
    told = (at or datetime.now(UTC)).strftime("%H:%M:%S")
    console.print(f"{told}  {text}", highlight=False, soft_wrap=True, markup=False)


def screen(boards: dict[str, Board], url: str, *, is_live: bool, width: int, height: int) -> RenderableType:
    """Draw the first board, and a line for each other, cut to what the terminal holds."""
    parts: list[RenderableType] = [_heading(url, is_live=is_live)]
    if not boards:
        return Group(*parts, Text("\nNo run yet. A run shows here as soon as its first span arrives.", style="dim"))
    (task, board), *others = list(boards.items())[: 1 + OTHERS_MAX]
    rates = board.rates()
    parts.append(Text(f"\n{task}", style="bold", no_wrap=True, overflow="ellipsis"))
    parts.append(view.rates(rates, board.high_layer(), runs=len(board.finished), width=width))
    room = height - len(rates) - len(others) - AROUND_LINES
    shown = board.open[-max(3, room // 2) :]
    parts.append(view.running(shown, width=width))
    room -= max(1, len(shown))
    if room > 0:
        parts.append(view.finished(list(board.finished)[: -room - 1 : -1], width=width))
    for name, other in others:
        line = Text(f"{name}: {len(other.open)} running, ", no_wrap=True, overflow="ellipsis")
        parts.append(line.append_text(view.high_layer_text(other.high_layer())))
    legend = (
        f"\n{view.REACHED} reached  {view.PASSED} passed: went by, did not arrive  {view.MISSED} missed   Ctrl-C ends"
    )
    parts.append(Text(legend, style="dim", no_wrap=True, overflow="ellipsis"))
    return Group(*parts)


def _heading(url: str, *, is_live: bool) -> Text:
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(" reach-otel watch ", style="reverse")
    line.append(f"  {plain(url)}  ", style="cyan")
    return line.append("live" if is_live else "not connected: trying again", style="green" if is_live else "bold red")


@contextmanager
def _asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Turn SIGINT and SIGTERM into an answer, so that the terminal is left as it was."""
    asked = threading.Event()

    def ask(_number: int, _frame: FrameType | None) -> None:
        asked.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

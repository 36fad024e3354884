"""Run the fleet and show it, live or line by line, until the time is up or the user has seen enough."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.resources import as_file, files

import msgspec
from rich.console import Console
from rich.live import Live

import reach_otel
from reach_otel.demo import view
from reach_otel.demo.board import Board, Finished
from reach_otel.demo.desk import Desk
from reach_otel.demo.fleet import Fleet, Plan
from reach_otel.demo.page import served
from reach_otel.demo.stop import asked_to_stop
from reach_otel.engine.record import Record
from reach_otel.errors import StateError
from reach_otel.settings import PortRange

FRAME_SECONDS = 0.2
SUMMARY_SECONDS = 10.0


def show(
    plan: Plan,
    console: Console,
    *,
    duration_seconds: float | None,
    metrics_port: str,
    plain: bool,
    page_ports: PortRange | None = None,
) -> Board:
    """Let the fleet work and show it; return the board as it stood at the end.

    With ``page_ports`` the live page is served on the first of them that is free. Ends after ``duration_seconds``, on
    SIGINT or on SIGTERM, each time in the same clean way: agents end their runs, threads are joined, a summary stays
    on the terminal.
    """
    with as_file(files("reach_otel.demo") / "ticket.task.yaml") as task_file:
        reach = reach_otel.instrument(task_file, metrics_port=metrics_port)
        try:
            with (
                asked_to_stop() as asked,
                served(task_file, page_ports) as page,
                Desk() as desk,
                Fleet(desk, plan) as fleet,
            ):
                board = Board(lambda trace_id: _record(reach, trace_id), fleet.behaviour_of)
                scene = Scene(plan, reach, fleet, board, console, page)
                draw = scene.print_lines if plain else scene.draw
                draw(lambda: not asked() and (duration_seconds is None or fleet.seconds < duration_seconds))
                seconds = fleet.seconds
        finally:
            reach.shutdown()
    board.look(reach.runs())
    console.print(view.closing(board, seconds=seconds))
    return board


class Scene:
    """Look at the board again and again, and show it in one of two ways, while ``going_on`` says so."""

    def __init__(
        self,
        plan: Plan,
        reach: reach_otel.Reach,
        fleet: Fleet,
        board: Board,
        console: Console,
        page: str | None = None,
    ) -> None:
        self._plan = plan
        self._reach = reach
        self._fleet = fleet
        self._board = board
        self._console = console
        self._page = page

    def draw(self, going_on: Callable[[], bool]) -> None:
        """Fill the terminal, five times a second."""
        with Live(console=self._console, screen=True, auto_refresh=False) as live:
            while going_on():
                self._fleet.check()
                self._look()
                width, height = self._console.size
                live.update(view.screen(self._board, self._state(), width=width, height=height), refresh=True)
                time.sleep(FRAME_SECONDS)

    def print_lines(self, going_on: Callable[[], bool]) -> None:
        """Print a line for each finished run, and how the task stands every ten seconds."""
        self._print(view.heading(self._state()).plain.strip())
        next_summary = SUMMARY_SECONDS
        while going_on():
            self._fleet.check()
            for done in self._look():
                self._print(view.line(done))
            if self._fleet.seconds >= next_summary:
                next_summary += SUMMARY_SECONDS
                self._print(view.high_layer_text(self._board.high_layer()).plain)
            time.sleep(FRAME_SECONDS)

    def _look(self) -> list[Finished]:
        try:
            return self._board.look(self._reach.runs())
        except StateError:  # the scorer is busy; the next look will tell
            return []

    def _print(self, text: str) -> None:
        self._console.print(f"{self._fleet.seconds:6.1f} s  {text}", highlight=False, soft_wrap=True)

    def _state(self) -> view.State:
        addresses = [found for found in (self._page, self._reach.metrics_address) if found]
        shown = "  ".join(addresses) or "serves no metrics"
        return view.State(self._fleet.seconds, self._plan.agents, self._fleet.degraded, shown)


def _record(reach: reach_otel.Reach, trace_id: str) -> Record | None:
    found = reach.score(trace_id)
    return None if found is None else msgspec.convert(found, Record)

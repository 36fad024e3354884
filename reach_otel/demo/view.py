"""Draw the board for a terminal of any width: runs on their way through the graph, and what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from rich import box
from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from reach_otel.demo.board import HIGH_RISK_BELOW, WINDOW_RUNS, Board, Finished, Milestones, Rate, Tally, in_layers
from reach_otel.engine.events import MilestoneView, RunSummary
from reach_otel.engine.record import MilestoneRecord
from reach_otel.offline.stop import stopped_at

MIDDLE_COLUMNS = 76
WIDE_COLUMNS = 84  # and for each milestone:
CELL_COLUMNS = 10
BEHAVIOUR_COLUMNS = 15
FIRST_COLUMNS = 9
BAR_CELLS = 20

REACHED, PASSED, MISSED = "■", "◪", "·"
MARKS = {"reached": REACHED, "passed": PASSED, "missed": MISSED}
STYLES = {"reached": "green", "passed": "yellow", "missed": "bright_black"}
OUTCOME_STYLES = {
    "success": "green",
    "partial": "yellow",
    "failed": "red",
    "abandoned": "magenta",
    "evicted": "magenta",
}


class State(NamedTuple):
    """What the first line tells: since when, how many, how well, and where the metrics are."""

    seconds: float
    agents: int
    degraded: bool
    metrics: str


def screen(board: Board, state: State, *, width: int, height: int) -> RenderableType:
    """Draw everything, cut to what the terminal holds."""
    shown = board.open[-state.agents :]  # the latest: before them are runs that only wait for their verdict
    parts: list[RenderableType] = [
        heading(state),
        rates(board.rates(), board.high_layer(), runs=len(board.finished), width=width),
        running(shown, width=width),
    ]
    around = 1 + 5 + 4 + 4 + 2  # heading; titles and column heads, each with a gap above; legend
    room = height - around - len(board.rates()) - max(1, len(shown))
    if room > 0:
        parts.append(finished(list(board.finished)[: -room - 1 : -1], width=width))
    legend = f"\n{REACHED} reached  {PASSED} passed: went by, did not arrive  {MISSED} missed   Ctrl-C ends"
    parts.append(Text(legend, style="dim", no_wrap=True, overflow="ellipsis"))
    return Group(*parts)


def heading(state: State) -> Text:
    """Draw the first line."""
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(" reach-otel demo ", style="reverse")
    line.append(f"  {timedelta(seconds=int(state.seconds))}  {state.agents} agents  ")
    if state.degraded:
        line.append("DEGRADED  ", style="bold red")
    line.append(state.metrics, style="cyan")
    return line


def rates(shown: Sequence[Rate], high_layer: float | None, *, runs: int, width: int) -> Table:
    """Draw the reach rate of every milestone, with the high-layer mark below."""
    table = _table(f"Task: reach over the last {runs} of {WINDOW_RUNS} runs")
    table.add_column("layer", justify="right")
    table.add_column("milestone", no_wrap=True)
    table.add_column("reach rate", no_wrap=True, footer=high_layer_text(high_layer))
    if width >= MIDDLE_COLUMNS:
        table.add_column("type", style="dim")
    table.show_footer = True
    table.expand = False
    for rate in shown:
        cells: list[RenderableType] = [str(rate.layer), rate.id, bar(rate.share)]
        table.add_row(*cells, *([rate.type] if width >= MIDDLE_COLUMNS else []))
    return table


def high_layer_text(high_layer: float | None) -> Text:
    """Say how high-layer reach stands, with the mark when it is below 0.5."""
    if high_layer is None:
        return Text("high-layer reach: no run has finished yet", style="dim")
    text = Text(f"high-layer reach {high_layer:.2f} ", style="bold")
    if high_layer < HIGH_RISK_BELOW:
        return text.append(" < 0.5 HIGH RISK ", style="bold white on red")
    return text.append("ok", style="green")


def bar(share: float | None) -> Text:
    """Draw a share as a bar with its number."""
    if share is None:
        return Text(MISSED * BAR_CELLS + "    -", style="dim")
    full = round(share * BAR_CELLS)
    colour = "green" if share >= HIGH_RISK_BELOW else "red"
    text = Text("█" * full, style=colour)
    text.append(MISSED * (BAR_CELLS - full), style="dim")
    return text.append(f" {share:.2f}")


def running(runs: Sequence[RunSummary], *, width: int) -> Table:
    """Draw the open runs, each milestone as a cell that fills."""
    table = _table("Running")
    table.add_column("run", no_wrap=True, style="dim", width=FIRST_COLUMNS)
    _add_path_columns(table, runs[0].milestones if runs else (), width)
    _add_score_columns(table, width)
    table.add_column("doing", no_wrap=True, ratio=1)
    for run in runs:
        findings = f" ! {', '.join(run.findings)}" if run.findings else ""
        table.add_row(
            run.trace_id[:6],
            *_path_cells(run.milestones, width),
            *_score_cells(run.depth, run.purity, run.digestion, run.composite, width),
            Text(run.last_tool or "thinking").append(findings, style="yellow"),
        )
    return table


def finished(runs: Sequence[Finished], *, width: int) -> Table:
    """Draw finished runs, the latest first, with where they stopped and what the agent really did."""
    table = _table("Finished")
    table.add_column("outcome", no_wrap=True, width=FIRST_COLUMNS)
    _add_path_columns(table, runs[0].record.milestones if runs else (), width)
    _add_score_columns(table, width)
    table.add_column("stopped at", no_wrap=True, ratio=1)
    if width >= MIDDLE_COLUMNS:
        table.add_column("the agent", no_wrap=True, style="dim", width=BEHAVIOUR_COLUMNS)
    for run in runs:
        scores = run.record.scores
        table.add_row(
            Text(run.record.outcome, style=OUTCOME_STYLES.get(run.record.outcome, "")),
            *_path_cells(run.record.milestones, width),
            *_score_cells(scores.depth, scores.purity, scores.digestion, scores.composite, width),
            stopped_at(run.record) or "",
            *([run.behaviour] if width >= MIDDLE_COLUMNS else []),
        )
    return table


def path(milestones: Milestones) -> Text:
    """Draw a run's way through the graph as one mark a milestone, with a gap between layers."""
    marks = [(m.layer, Text(MARKS.get(m.state, MISSED), STYLES.get(m.state, ""))) for m in in_layers(milestones)]
    return _with_gaps(marks)


def _layers(milestones: Milestones) -> Text:
    """Draw the layer of each milestone, as the head of a column of paths."""
    return _with_gaps([(m.layer, Text(str(m.layer % 10))) for m in in_layers(milestones)])


def _with_gaps(marks: Sequence[tuple[int, Text]]) -> Text:
    text = Text()
    for n, (layer, mark) in enumerate(marks):
        if n and layer != marks[n - 1][0]:
            text.append(" ")
        text.append_text(mark)
    return text


def line(run: Finished) -> str:
    """Say one finished run in a plain line."""
    scores = run.record.scores
    numbers = " ".join(
        f"{name} {_number(value):>4}"
        for name, value in (
            ("depth", scores.depth),
            ("purity", scores.purity),
            ("digestion", scores.digestion),
            ("score", scores.composite),
        )
    )
    reached = path(run.record.milestones).plain
    return f"{run.record.outcome:<9} {reached}  {numbers}  {run.behaviour:<15} {stopped_at(run.record) or ''}".rstrip()


def closing(board: Board, *, seconds: float) -> RenderableType:
    """Draw the summary that stays on the terminal: what the agents did, and what the scores say of it."""
    took = timedelta(seconds=int(seconds))
    runs = "1 run" if board.all.runs == 1 else f"{board.all.runs} runs"
    table = _table(f"{runs} in {took}: what the agents did, and what the scores say of it")
    table.add_column("the agent", no_wrap=True)
    for name in ("runs", "success", "depth", "purity", "digestion", "score"):
        table.add_column(name, justify="right")
    table.add_column("mostly stopped at")
    table.expand = False
    for behaviour, tally in sorted(board.by_behaviour.items(), key=lambda item: -(item[1].composite.value or 0)):
        table.add_row(behaviour, *_tally_cells(tally))
    table.add_row("all", *_tally_cells(board.all), style=Style(bold=True))
    return Group(table, high_layer_text(board.high_layer()))


def _tally_cells(tally: Tally) -> list[str]:
    reason = tally.reasons.most_common(1)
    return [
        str(tally.runs),
        str(tally.outcomes["success"]),
        *(_number(mean.value) for mean in (tally.depth, tally.purity, tally.digestion, tally.composite)),
        reason[0][0] if reason else "",
    ]


def _table(title: str) -> Table:
    return Table(
        title=f"\n{title}",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        expand=True,
        padding=(0, 1, 0, 0),
    )


def _is_wide(milestones: Milestones, width: int) -> bool:
    return width >= WIDE_COLUMNS + CELL_COLUMNS * len(milestones)


def _add_path_columns(table: Table, milestones: Milestones, width: int) -> None:
    if not _is_wide(milestones, width):
        table.add_column(_layers(milestones), no_wrap=True, min_width=5)
        return
    for milestone in in_layers(milestones):
        table.add_column(f"{milestone.layer} {milestone.id}", no_wrap=True, width=CELL_COLUMNS)


def _path_cells(milestones: Milestones, width: int) -> list[RenderableType]:
    if not _is_wide(milestones, width):
        return [path(milestones)]
    return [_cell(milestone) for milestone in in_layers(milestones)]


def _cell(milestone: MilestoneView | MilestoneRecord) -> Text:
    cell = Text(MARKS.get(milestone.state, MISSED), style=STYLES.get(milestone.state, ""))
    if milestone.state == "passed":
        cell.append(f" {milestone.reason}")
    elif milestone.state == "reached":
        cell.append(f" {milestone.action}")
    return cell


def _add_score_columns(table: Table, width: int) -> None:
    names = ("depth", "purity", "digest", "score") if width >= MIDDLE_COLUMNS else ("depth", "score")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True, width=6)


def _score_cells(depth: float, purity: float, digestion: float | None, composite: float, width: int) -> list[str]:
    values = (depth, purity, digestion, composite) if width >= MIDDLE_COLUMNS else (depth, composite)
    return [_number(value) for value in values]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"

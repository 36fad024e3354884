"""Draw records and summaries as terminal tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table
from rich.text import Text

from reach_otel.cli.console import cell, plain, ratio, share
from reach_otel.offline.stop import stopped_at

if TYPE_CHECKING:
    from reach_otel.engine import Record
    from reach_otel.engine.record import MilestoneRecord
    from reach_otel.offline.summary import MilestoneSummary, TaskSummary

HIGH_RISK: Final = "⚠ high risk"

_OUTCOME_STYLES: Final = {
    "success": "green",
    "partial": "yellow",
    "failed": "red",
    "abandoned": "red",
    "evicted": "dim",
    "running": "cyan",
}
_STATE_STYLES: Final = {"reached": "green", "passed": "yellow", "missed": "red"}
_VALUE_CHARS_MAX: Final = 120


def _table(title: str | None, *columns: str, right: tuple[str, ...] = ()) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold", box=None, pad_edge=False)
    for column in columns:
        table.add_column(
            column,
            justify="right" if column in right else "left",
            no_wrap=column in {"run", *right},
            overflow="ellipsis" if column == "run" else "fold",
            min_width=8 if column == "run" else None,
        )
    return table


def runs_table() -> Table:
    """Make the table of runs; :func:`add_run` fills it."""
    return _table(
        None,
        *("run", "task", "variant", "outcome", "depth", "purity", "digestion", "composite", "", "stopped at"),
        right=("depth", "purity", "digestion", "composite"),
    )


def add_run(table: Table, record: Record) -> None:
    """Add one run as a row."""
    scores = record.scores
    table.add_row(
        cell(record.run),
        cell(record.task),
        cell(record.variant),
        cell(record.outcome, _OUTCOME_STYLES.get(record.outcome, "")),
        cell(ratio(scores.depth)),
        cell(ratio(scores.purity)),
        cell(ratio(scores.digestion)),
        cell(ratio(scores.composite)),
        Text(HIGH_RISK if record.high_risk else "", "bold red"),
        cell(stopped_at(record)),
    )


def milestones_table(record: Record) -> Table:
    """List the milestones of one run with what became of each."""
    table = _table(
        f"run {plain(record.run)} · task {plain(record.task)} · {record.outcome}",
        *("milestone", "type", "layer", "state", "reason", "action", "seconds"),
        right=("layer", "action", "seconds"),
    )
    for milestone in record.milestones:
        table.add_row(*_milestone_cells(milestone))
    return table


def _milestone_cells(milestone: MilestoneRecord) -> list[Text]:
    seconds = None if milestone.seconds is None else f"{milestone.seconds:.2f}"
    return [
        cell(milestone.id),
        cell(milestone.type),
        cell(milestone.layer),
        cell(milestone.state, _STATE_STYLES[milestone.state]),
        cell(milestone.reason),
        cell(milestone.action),
        cell(seconds),
    ]


def events_table(record: Record) -> Table | None:
    """List traps, obstacles and findings of one run, or ``None`` where there are none."""
    rows: list[tuple[int | None, str, str]] = [
        *((trap.action, "trap", trap.id) for trap in record.traps),
        *(
            (
                o.action,
                "obstacle",
                f"{o.kind} in {o.tool}, {o.retries} retries, {'digested' if o.digested else 'not digested'}",
            )
            for o in record.obstacles
        ),
        *((finding.action, finding.finding, finding.detail) for finding in record.findings),
    ]
    if not rows:
        return None
    table = _table(None, "action", "what", "detail", right=("action",))
    for action, what, detail in sorted(rows, key=lambda row: (row[0] is None, row[0] or 0)):
        table.add_row(cell(action), cell(what), cell(detail))
    return table


def steps_table(record: Record) -> Table:
    """List the normalised steps of one run, the only place where arguments and results are shown."""
    table = _table(
        f"steps of run {plain(record.run)}",
        *("n", "kind", "agent", "tool", "arguments", "result", "class", "seconds"),
        right=("n", "seconds"),
    )
    for step in record.steps or ():
        result = cell(_value(step.result)) if step.ok else cell(step.error or "failed", "red")
        table.add_row(
            cell(step.n),
            cell(f"{step.kind} (derived)" if step.derived else step.kind),
            cell(step.agent),
            cell(step.tool),
            cell(_value(step.args)),
            result,
            cell(step.klass),
            cell(f"{step.seconds:.2f}"),
        )
    return table


def _value(value: Any) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return plain(text, _VALUE_CHARS_MAX)


def tasks_table(summaries: list[TaskSummary]) -> Table:
    """Sum up tasks, one a row."""
    table = _table(
        "tasks",
        *("task", "runs", "outcomes", "depth", "purity", "digestion", "composite", "high layer", "", "coverage"),
        right=("runs", "depth", "purity", "digestion", "composite", "high layer", "coverage"),
    )
    for task in summaries:
        table.add_row(
            cell(task.task),
            cell(task.runs),
            cell(", ".join(f"{count} {outcome}" for outcome, count in sorted(task.outcomes.items()))),
            cell(ratio(task.depth)),
            cell(ratio(task.purity)),
            cell(ratio(task.digestion)),
            cell(ratio(task.composite)),
            cell(share(task.high_layer)),
            Text(HIGH_RISK if task.high_risk else "", "bold red"),
            cell(share(task.coverage)),
        )
    return table


def task_milestones_table(summary: TaskSummary) -> Table:
    """List the milestones of one task: how often each was reached, when at first, and why not."""
    table = _table(
        f"milestones of {plain(summary.task)}",
        *("milestone", "type", "layer", "reached", "rate", "first reach", "why not"),
        right=("layer", "reached", "rate"),
    )
    for milestone in summary.milestones:
        table.add_row(
            cell(milestone.id),
            cell(milestone.type),
            cell(milestone.layer),
            cell(f"{milestone.reached}/{milestone.runs}"),
            cell(share(milestone.rate)),
            cell(_first_reach(milestone)),
            cell(", ".join(f"{count} {reason}" for reason, count in _by_count(milestone)) or None),
        )
    return table


def _first_reach(milestone: MilestoneSummary) -> str | None:
    if milestone.first_action is None or milestone.first_seconds is None:
        return None
    return f"action {milestone.first_action:g}, {milestone.first_seconds:.1f} s"


def _by_count(milestone: MilestoneSummary) -> list[tuple[str, int]]:
    return sorted(milestone.reasons.items(), key=lambda item: (-item[1], item[0]))

"""Add up the finished runs of one task over a window of time: every ratio is a sum over a sum."""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from reach_otel import names
from reach_otel.engine.scores import HIGH_RISK_BELOW
from reach_otel.service.entries import LEVELS, NAME_CHARS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reach_otel.task import Task


class Window(Struct, frozen=True):
    """Which runs are added up: those of a task with a verdict from ``since_ms`` to ``until_ms`` (not included)."""

    task: str
    since_ms: int
    until_ms: int
    variant: str | None = None
    agent: str | None = None

    def where(self) -> tuple[str, list[Any]]:
        """Give the SQL conditions on ``runs`` (alias ``r``) and their values."""
        conditions = ["r.task = ?", "r.decided_ms >= ?", "r.decided_ms < ?"]
        values: list[Any] = [self.task, self.since_ms, self.until_ms]
        for column, value in (("variant", self.variant), ("agent", self.agent)):
            if value is not None:
                conditions.append(f"r.{column} = ?")
                values.append(value[:NAME_CHARS_MAX])
        return " AND ".join(conditions), values


_MEANS = ("depth", "purity", "composite", "duration")
_SUMS = (
    "count(*) AS runs, sum(r.high_expected) AS high_expected, sum(r.high_reached) AS high_reached,"
    " sum(r.coverage) AS coverage, sum(r.actions) AS actions, sum(r.effective) AS effective,"
    " sum(r.digestion) AS digestion, count(r.digestion) AS with_obstacle, "
    + ", ".join(f"sum(r.{column}) AS {column}" for column in _MEANS)
    + ", "
    + ", ".join(f"sum(r.levels >> {n} & 1) AS {level}" for n, level in enumerate(LEVELS))
)


def summary(conn: sqlite3.Connection, window: Window, task: Task | None) -> dict[str, Any]:
    """Give the numbers of a task over a window. ``task``, where it is loaded, tells all its milestones in order."""
    where, values = window.where()
    total: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    breaks: Counter[tuple[str, str]] = Counter()
    cursor = conn.execute(
        f"SELECT r.outcome, r.break_level, r.break_reason, {_SUMS} FROM runs AS r WHERE {where} GROUP BY 1, 2, 3",
        values,
    )
    columns = [column[0] for column in cursor.description[3:]]
    for outcome, level, reason, *sums in cursor:
        total.update({column: number or 0 for column, number in zip(columns, sums, strict=True)})
        outcomes[outcome] += sums[0]
        if level is not None:
            breaks[level, reason] += sums[0]
    runs = total["runs"]
    judged = runs if window.task != names.UNMATCHED else 0
    high = ratio(total["high_reached"], total["high_expected"])
    return {
        "task": window.task,
        "runs": runs,
        "outcomes": dict(sorted(outcomes.items())),
        "high_layer": {"expected": total["high_expected"], "reached": total["high_reached"], "ratio": high},
        "high_risk": high is not None and high < HIGH_RISK_BELOW,
        "coverage": ratio(total["coverage"], judged),
        "mean": {
            "depth": ratio(total["depth"], judged),
            "purity": ratio(total["purity"], runs),
            "digestion": ratio(total["digestion"], total["with_obstacle"]),
            "composite": ratio(total["composite"], judged),
            "duration_seconds": ratio(total["duration"], runs),
        },
        "actions": {
            "all": total["actions"],
            "effective": total["effective"],
            "purity": ratio(total["effective"], total["actions"]),
        },
        "milestones": _milestones(conn, window, task),
        "levels": [
            {"level": level, "runs": judged, "passed": total[level], "rate": ratio(total[level], judged)}
            for level in LEVELS
        ]
        if judged
        else [],
        "break_points": [
            {"level": level, "reason": reason, "runs": number}
            for (level, reason), number in sorted(breaks.items(), key=lambda item: (-item[1], item[0]))
        ]
        if judged
        else [],
        "obstacles": _obstacles(conn, where, values),
        "findings": _findings(conn, where, values),
        "feedback": _feedback(conn, where, values),
    }


def ratio(part: float, whole: float) -> float | None:
    """Divide; ``None`` where there is nothing to divide by."""
    return part / whole if whole else None


def _milestones(conn: sqlite3.Connection, window: Window, task: Task | None) -> list[dict[str, Any]]:
    where, values = window.where()
    found: dict[str, dict[str, Any]] = {}
    for shape in _declared(task):
        found[shape["id"]] = shape
    for milestone, state, reason, runs, actions, seconds in conn.execute(
        "SELECT m.milestone, m.state, m.reason, count(*), sum(m.action), sum(m.seconds) FROM runs AS r"
        f" CROSS JOIN milestones AS m ON m.run_id = r.id WHERE {where} GROUP BY 1, 2, 3",
        values,
    ):
        row = found.setdefault(milestone, _empty(milestone, None, None))
        row["expected"] += runs
        if state == "reached":
            row["reached"] += runs
            row["first_reach_actions"] = actions / runs
            row["first_reach_seconds"] = seconds / runs
        else:
            row["passed"] += runs if state == "passed" else 0
            if reason is not None:
                row["reasons"][reason] = row["reasons"].get(reason, 0) + runs
    for row in found.values():
        row["rate"] = ratio(row["reached"], row["expected"])
    return list(found.values())


def _declared(task: Task | None) -> Iterator[dict[str, Any]]:
    for milestone in task.milestones if task is not None else ():
        yield _empty(milestone.id, milestone.type, milestone.layer)


def _empty(milestone: str, kind: str | None, layer: int | None) -> dict[str, Any]:
    return {
        "id": milestone,
        "type": kind,
        "layer": layer,
        "expected": 0,
        "reached": 0,
        "passed": 0,
        "rate": None,
        "reasons": {},
        "first_reach_actions": None,
        "first_reach_seconds": None,
    }


def _obstacles(conn: sqlite3.Connection, where: str, values: list[Any]) -> list[dict[str, Any]]:
    rows = conn.execute(
        "SELECT o.kind, count(*), sum(o.digested) FROM runs AS r CROSS JOIN obstacles AS o ON o.run_id = r.id"
        f" WHERE {where} GROUP BY 1 ORDER BY 2 DESC, 1",
        values,
    )
    return [{"kind": kind, "met": met, "digested": done, "rate": ratio(done, met)} for kind, met, done in rows]


def _findings(conn: sqlite3.Connection, where: str, values: list[Any]) -> list[dict[str, Any]]:
    rows = conn.execute(
        "SELECT f.finding, sum(f.times), count(*) FROM runs AS r CROSS JOIN findings AS f ON f.run_id = r.id"
        f" WHERE {where} GROUP BY 1 ORDER BY 3 DESC, 1",
        values,
    )
    return [{"finding": finding, "times": times, "runs": runs} for finding, times, runs in rows]


def _feedback(conn: sqlite3.Connection, where: str, values: list[Any]) -> dict[str, Any]:
    """Add up what people said of these runs; feedback is rare, so it leads."""
    entries, quality, agreed, disagreed = conn.execute(
        "SELECT count(*), avg(b.quality), total(b.correct = 1), total(b.correct = 0) FROM feedback AS b"
        f" CROSS JOIN runs AS r ON r.run = b.run WHERE {where}",
        values,
    ).fetchone()
    return {"entries": entries, "quality": quality, "agreed": int(agreed), "disagreed": int(disagreed)}

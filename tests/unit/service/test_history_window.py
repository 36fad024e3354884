"""The numbers of a task over a window are sums over its runs, and nothing else."""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reach_otel.engine.record import Record
from reach_otel.service.entries import Opinion
from reach_otel.service.history import History
from reach_otel.service.window import Window, summary
from reach_otel.task import load_task_text
from tests.support.records import milestone, record

TASK = load_task_text(
    """
task: task
milestones:
  - {id: one, verify: {tool: t}}
  - {id: two, depends_on: [one], verify: {tool: u}}
  - {id: three, type: optional, depends_on: [one], verify: {tool: v}}
"""
)
EVER = 1 << 60


def database(records: list[Record], times: list[int] | None = None) -> tuple[sqlite3.Connection, History]:
    conn = sqlite3.connect(":memory:", isolation_level=None)
    at = iter(times or [1_000] * len(records))
    history = History(time_ms=lambda: next(at, 1_000))
    history.prepare(conn)
    for one in records:
        history.write(conn, [one])
    return conn, history


def window(records: list[Record], **asked: Any) -> dict[str, Any]:
    conn, _ = database(records)
    found = summary(conn, Window(**{"task": "task", "since_ms": 0, "until_ms": EVER, **asked}), TASK)
    conn.close()
    return found


@st.composite
def runs(draw: st.DrawFn) -> list[Record]:
    states = st.sampled_from(["reached", "passed", "missed"])
    return [
        record(
            f"r{n}",
            outcome=draw(st.sampled_from(["success", "partial", "failed"])),
            variant=draw(st.sampled_from(["v1", "v2"])),
            milestones=(
                milestone("one", draw(states), action=draw(st.integers(1, 9))),
                milestone("two", draw(states), layer=2, reason=draw(st.sampled_from(["unused", "out_of_order"]))),
                milestone("three", draw(states), kind="optional", layer=3),
            ),
            failed=tuple(draw(st.sets(st.sampled_from(["L0", "L2", "L4"])))),
            findings=draw(st.lists(st.sampled_from(["loop", "stuck"]), max_size=4)),
            scores={"depth": draw(st.floats(0, 1)), "digestion": draw(st.sampled_from([None, 0.0, 0.5]))},
        )
        for n in range(draw(st.integers(0, 8)))
    ]


@given(runs(), st.sampled_from([None, "v2", "none"]))
def test_it_adds_up_what_the_records_say(records: list[Record], variant: str | None) -> None:
    """Every number equals the one that is counted from the records by hand."""
    found = window(records, variant=variant)
    mine = [one for one in records if variant in (None, one.variant)]
    total = len(mine)
    assert found["runs"] == total
    assert found["outcomes"] == dict(Counter(one.outcome for one in mine))
    deep = [one.milestones[1].state == "reached" for one in mine]
    assert found["high_layer"] == {
        "expected": total,
        "reached": sum(deep),
        "ratio": sum(deep) / total if total else None,
    }
    assert found["high_risk"] == (total > 0 and sum(deep) / total < 0.5)
    assert found["mean"]["depth"] == (pytest.approx(sum(one.scores.depth for one in mine) / total) if total else None)
    digestions = [one.scores.digestion for one in mine if one.scores.digestion is not None]
    assert found["mean"]["digestion"] == (pytest.approx(sum(digestions) / len(digestions)) if digestions else None)
    assert found["actions"] == {"all": 4 * total, "effective": 3 * total, "purity": 0.75 if total else None}
    for n, row in enumerate(found["milestones"]):
        ones = [one.milestones[n] for one in mine]
        reached = [one for one in ones if one.state == "reached"]
        assert (row["expected"], row["reached"]) == (total, len(reached))
        assert row["passed"] == sum(one.state == "passed" for one in ones)
        assert row["rate"] == (len(reached) / total if total else None)
        assert row["reasons"] == dict(Counter(one.reason for one in ones if one.state != "reached" and one.reason))
        actions = [one.action or 0 for one in reached]
        assert row["first_reach_actions"] == (pytest.approx(sum(actions) / len(actions)) if actions else None)
    for row in found["levels"]:
        assert row["passed"] == sum(one.levels[row["level"]].passed for one in mine)
        assert row["rate"] == row["passed"] / total
    breaks = Counter(one.break_point.level for one in mine if one.break_point)
    assert {row["level"]: row["runs"] for row in found["break_points"]} == dict(breaks)
    met = sum(len(one.obstacles) for one in mine)
    assert found["obstacles"] == ([{"kind": "error", "met": met, "digested": 0, "rate": 0.0}] if met else [])
    for row in found["findings"]:
        times = [sum(f.finding == row["finding"] for f in one.findings) for one in mine]
        assert (row["times"], row["runs"]) == (sum(times), sum(map(bool, times)))


def test_a_window_without_runs_has_the_tasks_milestones_and_no_rates() -> None:
    """Nothing is 0 of nothing: ratios are null, and each declared milestone is there."""
    found = window([])
    assert [row["id"] for row in found["milestones"]] == ["one", "two", "three"]
    assert {row["rate"] for row in found["milestones"]} == {None}
    assert (found["high_layer"]["ratio"], found["high_risk"], found["coverage"]) == (None, False, None)
    assert set(found["mean"].values()) == {None}


def test_a_window_counts_verdicts_from_its_first_to_before_its_last_moment() -> None:
    """The time of a run is that of its verdict; the window holds its start and not its end."""
    conn, _ = database([record(f"r{n}", start_us=n) for n in range(4)], [1_000, 2_000, 3_000, 4_000])
    found = summary(conn, Window("task", 2_000, 4_000), TASK)
    assert found["runs"] == 2
    conn.close()


def test_only_the_task_asked_for_counts() -> None:
    """Runs of other tasks are no part of it; a milestone that is no longer declared is shown after the others."""
    found = window([record("r1"), record("r2", task="other"), record("r3", milestones=(milestone("old"),))])
    assert found["runs"] == 2
    assert [(row["id"], row["type"], row["expected"]) for row in found["milestones"]] == [
        ("one", "must", 1),
        ("two", "must", 1),
        ("three", "optional", 0),
        ("old", None, 1),
    ]


def test_runs_of_no_task_have_no_reach_to_speak_of() -> None:
    """For ``unmatched`` outcomes, actions and findings are counted, levels and depth are not."""
    conn, _ = database([record("r1", task="unmatched", milestones=(), findings=("loop",), failed=("L0",))])
    found = summary(conn, Window("unmatched", 0, EVER), None)
    assert (found["runs"], found["levels"], found["break_points"], found["mean"]["depth"]) == (1, [], [], None)
    assert found["findings"] == [{"finding": "loop", "times": 1, "runs": 1}]
    conn.close()


def test_what_people_said_of_these_runs_is_added_up() -> None:
    """Feedback counts with the run that it is about."""
    conn, history = database([record("r1"), record("r2"), record("r3", task="other")])
    for n, (run, quality, correct) in enumerate(
        [("r1", 8.0, True), ("r2", 4.0, False), ("r2", None, True), ("r3", 0.0, False)]
    ):
        history.add_feedback(conn, run, Opinion(str(n), quality=quality, correct=correct))
    found = summary(conn, Window("task", 0, EVER), TASK)
    assert found["feedback"] == {"entries": 3, "quality": 6.0, "agreed": 2, "disagreed": 1}
    conn.close()

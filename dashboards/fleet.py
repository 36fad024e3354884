"""Lay out the Fleet dashboard: which tasks are in trouble."""

from __future__ import annotations

from grafana_foundation_sdk.builders import bargauge, stat, table, timeseries
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards import house, panels, queries
from dashboards.frame import FIRING, Row, frame
from dashboards.house import Column
from reach_otel import names

HIGH_LAYER_LIMIT = house.bad_below(house.LIMITS["ReachHighLayerLow"])
HIGH_LAYER = queries.recorded("task:reach_high_layer:ratio")
COVERAGE = queries.share(
    queries.grown(names.COVERAGE_REACHED_TOTAL, "task"), queries.grown(names.COVERAGE_EXPECTED_TOTAL, "task")
)
SUCCESS = queries.share(
    queries.grown(names.RUNS_TOTAL, "task", where=('outcome="success"',)),
    queries.grown(names.RUNS_TOTAL, "task", where=queries.KNOWN_OUTCOME),
)
TO_TASK = "/d/reach-task?var-task=${__value.raw}&var-datasource=${datasource}&${variant:queryparam}&${__url_time_range}"


def dashboard() -> Dashboard:
    """Return the dashboard."""
    return frame(
        "reach-fleet",
        "Which tasks are in trouble? Start here; a task's name leads to where its runs stop.",
        (
            Row("Now", (high_risk(), firing(), active(), ended(), success(), cost())),
            Row("Tasks", (tasks(), alerts(), outcomes())),
            Row("Trends", (high_layer(), composite(), coverage(), tiers(), runs_per_second(), active_by_task())),
        ),
    )


def high_risk() -> stat.Panel:
    return panels.number(
        "Tasks at high risk",
        "Tasks whose high-layer reach is below the limit, over the shortest of 5 min and 15 min in which they had 20 "
        "runs, else over an hour with 10." + house.OF_ALL_VARIANTS,
        house.COUNT,
        f"sum({HIGH_LAYER} < bool {house.LIMITS['ReachHighLayerLow']})",
        limit=house.bad_from(1),
        none="too few runs",
    )


def firing() -> stat.Panel:
    return panels.number(
        "Alerts firing",
        "Alerts of the tasks that are chosen, and of the scorers.",
        house.COUNT,
        f"count({FIRING}) or vector(0)",
        limit=house.bad_from(1),
    )


def active() -> stat.Panel:
    return panels.number("Runs active", "Runs going on now.", house.COUNT, queries.gauge(names.RUNS_ACTIVE))


def ended() -> stat.Panel:
    return panels.number(
        "Runs ended", "Runs with a verdict in the time that is shown.", house.COUNT, queries.grown(names.RUNS_TOTAL)
    )


def success() -> stat.Panel:
    return panels.number(
        "Success rate",
        "Share of the runs in the time shown that reached every must-milestone, ended well and delivered; runs that "
        "were evicted are left out, as their end was not seen, and so is what is in `overflow`.",
        house.RATIO,
        queries.share(
            queries.grown(names.RUNS_TOTAL, where=('outcome="success"',)),
            queries.grown(names.RUNS_TOTAL, where=queries.KNOWN_OUTCOME),
        ),
    )


def cost() -> stat.Panel:
    return panels.number(
        "Cost",
        "What the runs in the time shown cost, as far as the price of their model is known; others are left out, not "
        "free.",
        house.DOLLARS,
        queries.grown(names.COST_DOLLARS_TOTAL),
        none="no price known",
    )


def tasks() -> table.Panel:
    limit = house.LIMITS["ReachHighLayerLow"]
    return panels.rows(
        "Tasks in order of high-layer reach",
        "The worst on top. High-layer reach, the risk mark and the tiers are recorded series, over all variants: the "
        "tiers over the last hour, 0 to 100. Coverage, composite, success and runs are of the variants and the time "
        "chosen above.",
        Column("High-layer reach", HIGH_LAYER, house.RATIO, HIGH_LAYER_LIMIT, gauge=True),
        Column(
            "Risk",
            f"{HIGH_LAYER} < bool {limit}",
            house.COUNT,
            words={0: ("ok", house.GOOD), 1: ("HIGH RISK", house.BAD)},
        ),
        Column("Coverage", COVERAGE, house.RATIO, gauge=True),
        Column("Composite", queries.mean(names.RUN_SCORE_RATIO, "task", over=queries.grown), house.RATIO, gauge=True),
        Column("Success", SUCCESS, house.RATIO, gauge=True),
        Column("Outcome tier", queries.recorded("task:reach_outcome_tier:score"), house.SCORE, decimals=0),
        Column("Trajectory tier", queries.recorded("task:reach_trajectory_tier:score"), house.SCORE, decimals=0),
        Column("System tier", queries.recorded("task:reach_system_tier:score"), house.SCORE, decimals=0),
        Column("Total", queries.recorded("task:reach_tiers:score"), house.SCORE, decimals=0),
        Column("Runs", queries.grown(names.RUNS_TOTAL, "task"), house.COUNT, decimals=0),
        Column("Active", queries.gauge(names.RUNS_ACTIVE, "task"), house.COUNT, decimals=0),
        Column("Alerts", f"count by (task) ({FIRING})", house.COUNT, house.bad_from(1), decimals=0),
        by={"task": "Task"},
        link=("Task", TO_TASK),
        worst_first="High-layer reach",
    )


def alerts() -> table.Panel:
    return panels.rows(
        "Alerts that fire now",
        "What somebody is paged for, as Prometheus sees it. The runbook that each alert links to says what to do.",
        Column("Firing", f"count by (alertname, severity, task, instance) ({FIRING})", house.COUNT, house.bad_from(1)),
        by={"alertname": "Alert", "severity": "Severity", "task": "Task", "instance": "Process"},
        width=14,
        link=("Task", TO_TASK),
        none="no alert fires",
    )


def outcomes() -> bargauge.Panel:
    return panels.bars(
        "Runs by outcome",
        "How the runs in the time shown ended: abandoned ones never said so, evicted ones had to make room.",
        house.COUNT,
        queries.grown(names.RUNS_TOTAL, "outcome"),
        by=("outcome",),
        width=10,
        largest_first=True,
    )


def high_layer() -> timeseries.Panel:
    return panels.graph(
        "High-layer reach",
        "Share of reached must-milestones in the deepest layer. Below the line the task is at high risk, and "
        "ReachHighLayerLow fires once chance does not explain it." + house.OF_ALL_VARIANTS,
        house.RATIO,
        panels.over_time(HIGH_LAYER, "{{task}}"),
        limit=HIGH_LAYER_LIMIT,
        top=1,
    )


def composite() -> timeseries.Panel:
    return panels.graph(
        "Composite score",
        "Mean of the runs' composite scores: 0.4 reach depth, 0.3 path purity, 0.3 obstacle digestion. It can look "
        "well while the deepest layer is missed: read it beside the high-layer reach.",
        house.RATIO,
        panels.over_time(queries.mean(names.RUN_SCORE_RATIO, "task"), "{{task}}"),
        top=1,
    )


def coverage() -> timeseries.Panel:
    return panels.graph(
        "Coverage",
        "Share of the runs that reached every must-milestone. ReachCoverageDropped compares it with the task's last "
        "day.",
        house.RATIO,
        panels.over_time(
            queries.share(
                queries.rate(names.COVERAGE_REACHED_TOTAL, "task"), queries.rate(names.COVERAGE_EXPECTED_TOTAL, "task")
            ),
            "{{task}}",
        ),
        top=1,
    )


def tiers() -> timeseries.Panel:
    return panels.graph(
        "Total of the three tiers",
        "Outcome, trajectory and system tier of the last hour, weighted as the task's scene has it; 0 to 100."
        + house.OF_ALL_VARIANTS,
        house.SCORE,
        panels.over_time(queries.recorded("task:reach_tiers:score"), "{{task}}"),
        top=100,
    )


def runs_per_second() -> timeseries.Panel:
    return panels.graph(
        "Runs ended a second",
        "Runs with a verdict, by task. ReachNoRuns compares it with what is usual at this time.",
        house.PER_SECOND,
        panels.exemplars(panels.over_time(queries.rate(names.RUNS_TOTAL, "task"), "{{task}}")),
    )


def active_by_task() -> timeseries.Panel:
    return panels.graph(
        "Runs active by task",
        "Runs going on, over all scorers.",
        house.COUNT,
        panels.over_time(queries.gauge(names.RUNS_ACTIVE, "task"), "{{task}}"),
    )

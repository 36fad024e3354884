"""Lay out the Task dashboard: where runs of a task stop."""

from __future__ import annotations

from grafana_foundation_sdk.builders import bargauge, stat, statushistory, table, timeseries
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards import causes, house, panels, queries
from dashboards.causes import HIGH_LAYER_LIMIT, MUST
from dashboards.frame import FIRING, Row, frame
from dashboards.house import Column
from reach_otel import names


def dashboard() -> Dashboard:
    """Return the dashboard."""
    return frame(
        "reach-task",
        "Where do runs of this task stop, and why? Left to right and down: how far, at which milestone, by which "
        "fault.",
        (
            Row("At a glance", (high_layer(), composite(), coverage(), success(), ended(), firing())),
            Row("Where runs stop", (funnel(), levels(), break_points())),
            Row("Milestones", (milestones_over_time(), milestones())),
            Row(
                "Why",
                (
                    causes.findings(),
                    causes.findings_over_time(),
                    causes.break_points_over_time(),
                    causes.obstacles(),
                    causes.digestion(),
                    causes.actions(),
                ),
            ),
            Row("How far", (causes.scores(), causes.score_spread(), causes.high_layer_over_time())),
            Row(
                "How fast, at what price",
                (
                    causes.at_k(),
                    causes.first_reach(),
                    causes.tokens(),
                    causes.tokens_a_milestone(),
                    causes.cost_a_run(),
                ),
            ),
            Row("Variants side by side", (variants(), variants_over_time())),
            Row("Running now", (active(), stuck(), depth_so_far(), layers_so_far(), milestones_so_far())),
        ),
        one_task=True,
    )


def high_layer() -> stat.Panel:
    return panels.number(
        "High-layer reach",
        "Share of reached must-milestones in the deepest layer, over the shortest of 5 min and 15 min "
        "with 20 runs, else over an hour with 10. Red: the task is at high risk, whatever the composite says."
        + house.OF_ALL_VARIANTS,
        house.RATIO,
        queries.recorded("task:reach_high_layer:ratio"),
        limit=HIGH_LAYER_LIMIT,
        none="too few runs",
    )


def composite() -> stat.Panel:
    return panels.number(
        "Composite score",
        "Mean composite score of the runs in the time shown.",
        house.RATIO,
        queries.mean(names.RUN_SCORE_RATIO, over=queries.grown),
    )


def coverage() -> stat.Panel:
    return panels.number(
        "Coverage",
        "Share of the runs in the time shown that reached every must-milestone.",
        house.RATIO,
        queries.share(queries.grown(names.COVERAGE_REACHED_TOTAL), queries.grown(names.COVERAGE_EXPECTED_TOTAL)),
    )


def success() -> stat.Panel:
    return panels.number(
        "Success rate",
        "Share of the runs in the time shown that reached every must-milestone, ended well and delivered; evicted ones "
        "and those in `overflow` are left out.",
        house.RATIO,
        queries.share(
            queries.grown(names.RUNS_TOTAL, where=('outcome="success"',)),
            queries.grown(names.RUNS_TOTAL, where=queries.KNOWN_OUTCOME),
        ),
    )


def ended() -> stat.Panel:
    return panels.number(
        "Runs ended", "Runs with a verdict in the time that is shown.", house.COUNT, queries.grown(names.RUNS_TOTAL)
    )


def firing() -> stat.Panel:
    return panels.number(
        "Alerts firing",
        "Alerts of this task, and of the scorers.",
        house.COUNT,
        f"count({FIRING}) or vector(0)",
        limit=house.bad_from(1),
    )


def funnel() -> bargauge.Panel:
    return panels.bars(
        "Must-milestones reached by layer",
        "From the first layer of the task graph to the deepest: the share of must-milestones that runs reached. Where "
        "the bars become short, runs stop.",
        house.RATIO,
        queries.prefixed(
            "layer",
            "layer",
            queries.share(
                queries.grown(names.MILESTONE_REACHED_TOTAL, "layer", where=MUST),
                queries.grown(names.MILESTONE_EXPECTED_TOTAL, "layer", where=MUST),
            ),
        ),
        by=("layer",),
        top=1,
    )


def levels() -> bargauge.Panel:
    return panels.bars(
        "Shortfall: pass rate by level",
        "L0 intent, L1 resource, L2 action, L3 result, L4 delivery. Each passes or fails on its own; the lowest one is "
        "what to mend next.",
        house.RATIO,
        queries.share(queries.grown(names.LEVEL_PASSED_TOTAL, "level"), queries.grown(names.LEVEL_RUNS_TOTAL, "level")),
        by=("level",),
        top=1,
    )


def break_points() -> bargauge.Panel:
    return panels.bars(
        "Break points by reason",
        "Runs by the first level that failed, and why: the most frequent on top.",
        house.COUNT,
        f"topk(12, {queries.grown(names.BREAK_POINTS_TOTAL, 'level', 'reason')} > 0)",
        by=("level", "reason"),
        largest_first=True,
        none="no run broke off",
    )


def milestones_over_time() -> statushistory.Panel:
    return panels.heat(
        "Milestone reach rates over time",
        "Each line a milestone, in front its layer: the share of the runs that reached it. A line that turns red is "
        "where runs began to stop; optional and fallback ones are not meant to be green.",
        panels.over_time(
            queries.share(
                queries.rate(names.MILESTONE_REACHED_TOTAL, "layer", "milestone", "type"),
                queries.rate(names.MILESTONE_EXPECTED_TOTAL, "layer", "milestone", "type"),
            ),
            "{{layer}} · {{milestone}} ({{type}})",
        ),
    )


def milestones() -> table.Panel:
    by = ("milestone", "type", "layer")
    first_actions, first_seconds = names.MILESTONE_FIRST_REACH_ACTIONS, names.MILESTONE_FIRST_REACH_SECONDS
    return panels.rows(
        "Milestones in order of reach",
        "The least reached on top, with the action and the second at which the median run first reached it. The last "
        "hour beside the last day, both over all variants, shows what has changed.",
        Column(
            "Reach rate",
            queries.share(
                queries.grown(names.MILESTONE_REACHED_TOTAL, *by), queries.grown(names.MILESTONE_EXPECTED_TOTAL, *by)
            ),
            house.RATIO,
            gauge=True,
        ),
        Column("Last hour", queries.recorded("task_milestone:reach_milestone:ratio_rate1h", *by), house.RATIO),
        Column("Last day", queries.recorded("task_milestone:reach_milestone:ratio_rate1d", *by), house.RATIO),
        Column("Runs that reached it", queries.grown(names.MILESTONE_REACHED_TOTAL, *by), house.COUNT, decimals=0),
        Column("First at action", queries.quantile(0.5, first_actions, "milestone", over=queries.grown), house.COUNT),
        Column("First after", queries.quantile(0.5, first_seconds, "milestone", over=queries.grown), house.SECONDS),
        by={"milestone": "Milestone", "type": "Type", "layer": "Layer"},
        height=9,
        worst_first="Reach rate",
    )


def variants() -> table.Panel:
    def ratio(reached: str, expected: str) -> str:
        return queries.share(queries.grown(reached, "variant"), queries.grown(expected, "variant"))

    def mean(histogram: str) -> str:
        return queries.mean(histogram, "variant", over=queries.grown)

    runs = queries.grown(names.RUNS_TOTAL, "variant")
    return panels.rows(
        "Variants in order of high-layer reach",
        "Models, prompts or versions of the agent beside each other, over the time that is shown.",
        Column(
            "High-layer reach",
            ratio(names.HIGH_LAYER_REACHED_TOTAL, names.HIGH_LAYER_EXPECTED_TOTAL),
            house.RATIO,
            HIGH_LAYER_LIMIT,
            gauge=True,
        ),
        Column("Coverage", ratio(names.COVERAGE_REACHED_TOTAL, names.COVERAGE_EXPECTED_TOTAL), house.RATIO, gauge=True),
        Column("Composite", mean(names.RUN_SCORE_RATIO), house.RATIO, gauge=True),
        Column("Depth", mean(names.RUN_DEPTH_RATIO), house.RATIO),
        Column("Purity", mean(names.RUN_PURITY_RATIO), house.RATIO),
        Column("Digestion", mean(names.RUN_DIGESTION_RATIO), house.RATIO),
        Column("Duration", mean(names.RUN_DURATION_SECONDS), house.SECONDS),
        Column("Tokens a run", queries.share(queries.grown(names.TOKENS_TOTAL, "variant"), runs), house.COUNT),
        Column("Cost a run", queries.share(queries.grown(names.COST_DOLLARS_TOTAL, "variant"), runs), house.DOLLARS),
        Column("Runs", runs, house.COUNT, decimals=0),
        by={"variant": "Variant"},
        height=7,
        worst_first="High-layer reach",
    )


def variants_over_time() -> timeseries.Panel:
    return panels.graph(
        "High-layer reach by variant",
        "Is it the new version? The line is where the task as a whole is at high risk.",
        house.RATIO,
        panels.over_time(
            queries.share(
                queries.rate(names.HIGH_LAYER_REACHED_TOTAL, "variant"),
                queries.rate(names.HIGH_LAYER_EXPECTED_TOTAL, "variant"),
            ),
            "{{variant}}",
        ),
        limit=HIGH_LAYER_LIMIT,
        width=24,
        top=1,
    )


def active() -> stat.Panel:
    return panels.number(
        "Runs going on",
        "Runs that have begun and have no verdict yet.",
        house.COUNT,
        queries.gauge(names.RUNS_ACTIVE),
        height=8,
    )


def stuck() -> stat.Panel:
    return panels.number(
        "Stuck now",
        "Runs going on that are in a loop, over the retry cap, or at the cap of actions.",
        house.COUNT,
        queries.gauge(names.LIVE_STUCK_RUNS),
        height=8,
    )


def depth_so_far() -> stat.Panel:
    return panels.number(
        "Mean depth so far",
        "Reach depth of the runs going on, as far as they have come: not to be compared with that of ended ones.",
        house.RATIO,
        queries.share(queries.gauge(names.LIVE_DEPTH_SUM), queries.gauge(names.LIVE_RUNS)),
        none="nothing runs",
        height=8,
    )


def layers_so_far() -> bargauge.Panel:
    return panels.bars(
        "Deepest layer so far",
        "Runs going on, by the deepest layer in which they have reached a must-milestone; 0: none yet.",
        house.COUNT,
        queries.prefixed("layer", "layer", queries.gauge(names.LIVE_RUNS, "layer")),
        by=("layer",),
        width=6,
    )


def milestones_so_far() -> bargauge.Panel:
    return panels.bars(
        "Milestones reached so far",
        "Runs going on that have reached the milestone.",
        house.COUNT,
        queries.gauge(names.LIVE_MILESTONE_REACHED, "milestone"),
        by=("milestone",),
        width=6,
        largest_first=True,
    )

"""Make the panels of the Task dashboard that tell why runs stop, and what they take."""

from __future__ import annotations

from grafana_foundation_sdk.builders import bargauge, heatmap, timeseries

from dashboards import house, panels, queries
from reach_otel import names

MUST = ('type="must"',)
KNOWN_CLASS = ('class!="overflow"',)
HIGH_LAYER_LIMIT = house.bad_below(house.LIMITS["ReachHighLayerLow"])


def findings() -> bargauge.Panel:
    return panels.bars(
        "Findings a run",
        "How often each fault of a trajectory is found, over the number of runs in the time shown; a run can have "
        "several.",
        house.RATIO,
        queries.shares(queries.grown(names.FINDINGS_TOTAL, "finding"), queries.grown(names.RUNS_TOTAL), "finding")
        + " > 0",
        by=("finding",),
        largest_first=True,
        none="nothing found",
    )


def findings_over_time() -> timeseries.Panel:
    return panels.graph(
        "Findings over time",
        "A dot is a run with a finding, and leads to its trace.",
        house.PER_SECOND,
        panels.exemplars(panels.over_time(queries.rate(names.FINDINGS_TOTAL, "finding") + " > 0", "{{finding}}")),
    )


def break_points_over_time() -> timeseries.Panel:
    return panels.graph(
        "Break points over time",
        "A dot is a run that broke off, and leads to its trace.",
        house.PER_SECOND,
        panels.exemplars(
            panels.over_time(queries.rate(names.BREAK_POINTS_TOTAL, "level", "reason") + " > 0", "{{level}} {{reason}}")
        ),
    )


def obstacles() -> timeseries.Panel:
    return panels.graph(
        "Obstacles met a run, by kind",
        "Failed, slow or malformed tool calls and forced fallbacks, over the number of runs.",
        house.COUNT,
        panels.over_time(
            queries.shares(queries.rate(names.OBSTACLES_TOTAL, "kind"), queries.rate(names.RUNS_TOTAL), "kind"),
            "{{kind}}",
        ),
        stacked=True,
    )


def digestion() -> timeseries.Panel:
    return panels.graph(
        "Obstacles digested, by kind",
        "Share of the obstacles that runs got past. With no obstacle there is nothing to digest, and no line.",
        house.RATIO,
        panels.over_time(
            queries.share(
                queries.rate(names.OBSTACLES_TOTAL, "kind", where=('digested="true"',)),
                queries.rate(names.OBSTACLES_TOTAL, "kind", where=('digested!="overflow"',)),
            ),
            "{{kind}}",
        ),
        top=1,
    )


def actions() -> timeseries.Panel:
    return panels.graph(
        "Share of actions by class",
        "What the actions were: effective ones, and those that led nowhere because they were off the task, a repeat, "
        "stuck, or beyond the cap.",
        house.RATIO,
        panels.over_time(
            queries.shares(
                queries.rate(names.ACTIONS_TOTAL, "class", where=KNOWN_CLASS),
                queries.rate(names.ACTIONS_TOTAL, where=KNOWN_CLASS),
                "class",
            ),
            "{{class}}",
        ),
        stacked=True,
        top=1,
    )


def scores() -> timeseries.Panel:
    return panels.graph(
        "Depth, purity, digestion, composite",
        "Means over the runs. Low depth: they do not get there. Low purity: they go astray. Low digestion: they do not "
        "get past what is in the way.",
        house.RATIO,
        panels.over_time(queries.mean(names.RUN_DEPTH_RATIO), "depth"),
        panels.over_time(queries.mean(names.RUN_PURITY_RATIO), "purity"),
        panels.over_time(queries.mean(names.RUN_DIGESTION_RATIO), "digestion"),
        panels.over_time(queries.mean(names.RUN_SCORE_RATIO), "composite"),
        top=1,
    )


def score_spread() -> heatmap.Panel:
    return panels.spread(
        "Spread of the composite score",
        "How many runs got which score. Two bands tell that some runs arrive and others stop early, which a mean "
        "hides. A dot is a run, and leads to its trace.",
        house.RATIO,
        queries.steps(f"{names.RUN_SCORE_RATIO}_bucket", "le"),
        width=8,
    )


def high_layer_over_time() -> timeseries.Panel:
    return panels.graph(
        "High-layer reach over time",
        "Quick for paging, slow to see the trend. Below the line ReachHighLayerLow fires, unless chance "
        "explains it." + house.OF_ALL_VARIANTS,
        house.RATIO,
        panels.over_time(queries.recorded("task:reach_high_layer:ratio_rate15m"), "15 min"),
        panels.over_time(queries.recorded("task:reach_high_layer:ratio_rate1h"), "1 h"),
        panels.over_time(queries.recorded("task:reach_high_layer:ratio_rate1d"), "1 day"),
        limit=HIGH_LAYER_LIMIT,
        top=1,
    )


def at_k() -> timeseries.Panel:
    return panels.graph(
        "Reach@K",
        "Share of the must-milestones reached within the first K actions.",
        house.RATIO,
        panels.over_time(
            queries.share(queries.rate(names.AT_K_REACHED_TOTAL, "k"), queries.rate(names.AT_K_EXPECTED_TOTAL, "k")),
            "first {{k}} actions",
        ),
        top=1,
    )


def first_reach() -> timeseries.Panel:
    return panels.graph(
        "Time to first reach",
        "Seconds from the start of a run until it first reached a milestone: the median.",
        house.SECONDS,
        panels.over_time(queries.quantile(0.5, names.MILESTONE_FIRST_REACH_SECONDS, "milestone"), "{{milestone}}"),
    )


def tokens() -> timeseries.Panel:
    return panels.graph(
        "Tokens a run, by use",
        "What tokens were spent on: actions that led on, retries, actions that led nowhere, the answer. The share of "
        "the effective ones is the utilisation.",
        house.COUNT,
        panels.over_time(
            queries.shares(queries.rate(names.TOKENS_TOTAL, "class"), queries.rate(names.RUNS_TOTAL), "class"),
            "{{class}}",
        ),
        stacked=True,
    )


def tokens_a_milestone() -> timeseries.Panel:
    return panels.graph(
        "Tokens a reached must-milestone",
        "What one step forward takes. It rises when runs work more, and when they reach less.",
        house.COUNT,
        panels.over_time(
            queries.share(queries.rate(names.TOKENS_TOTAL), queries.rate(names.MILESTONE_REACHED_TOTAL, where=MUST)),
            "tokens",
        ),
        width=12,
    )


def cost_a_run() -> timeseries.Panel:
    return panels.graph(
        "Cost a run",
        "Over all runs; those whose model has no known price add nothing, so that it is a lower bound where there are "
        "such.",
        house.DOLLARS,
        panels.over_time(queries.share(queries.rate(names.COST_DOLLARS_TOTAL), queries.rate(names.RUNS_TOTAL)), "cost"),
        width=12,
    )

"""Lay out the System dashboard: how agents, models and tools do as a system, and whether anything is unsafe."""

from __future__ import annotations

from grafana_foundation_sdk.builders import stat, table, timeseries
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards import house, panels, queries
from dashboards.frame import Row, frame
from dashboards.house import Column
from reach_otel import names

JOB = (queries.JOB,)
MASKED = ('action="masked"',)


def dashboard() -> Dashboard:
    """Return the dashboard."""
    return frame(
        "reach-system",
        "How do agents, models and tools do as a system: load, latency, errors, timeouts, stability, safety?",
        (
            Row("Load", (active(), peak(), concurrency())),
            Row("Latency", (run_duration(), model_duration(), tool_duration(), run_spread(), duration_over())),
            Row("Tools", (tools(), tool_errors())),
            Row("Timeouts and stability", (timeouts(), timeouts_by_stage(), stability())),
            Row("Safety", (violations(), masked(), violations_over_time(), masked_over_time())),
            Row("Handoffs", (handoffs(), handoffs_over_time())),
            Row("Tiers", (system_tier(), tier_weights())),
            Row("Processes that score", (cpu(), memory(), files())),
        ),
    )


def active() -> stat.Panel:
    return panels.number("Runs active now", "Runs going on.", house.COUNT, queries.gauge(names.RUNS_ACTIVE), height=8)


def peak() -> stat.Panel:
    return panels.number(
        "Peak of runs active",
        "Most runs that went on at the same time, in the time that is shown.",
        house.COUNT,
        f"max_over_time({queries.gauge(names.RUNS_ACTIVE)}[{queries.SHOWN}:])",
        height=8,
    )


def concurrency() -> timeseries.Panel:
    return panels.graph(
        "Runs active by task and agent",
        "Runs going on, over all scorers.",
        house.COUNT,
        panels.over_time(queries.gauge(names.RUNS_ACTIVE, "task", "agent"), "{{task}} · {{agent}}"),
        width=16,
        stacked=True,
    )


def run_duration() -> timeseries.Panel:
    return panels.quantiles(
        "Duration of runs",
        "From the first step of a run to its last. A dot is a run, and leads to its trace.",
        names.RUN_DURATION_SECONDS,
    )


def model_duration() -> timeseries.Panel:
    return panels.quantiles(
        "Duration of model calls",
        "What agents wait for models. A dot is a run with such a call.",
        names.MODEL_DURATION_SECONDS,
    )


def tool_duration() -> timeseries.Panel:
    return panels.quantiles(
        "Duration of tool calls",
        "What agents wait for tools, failed calls included. A dot is a run with a failed call, and leads to its trace.",
        names.TOOL_DURATION_SECONDS,
    )


def run_spread() -> timeseries.Panel:
    return panels.graph(
        "Duration of runs by task, 95th percentile",
        "Only one run in twenty takes longer.",
        house.SECONDS,
        panels.exemplars(panels.over_time(queries.quantile(0.95, names.RUN_DURATION_SECONDS, "task"), "{{task}}")),
        width=12,
    )


def duration_over() -> timeseries.Panel:
    return panels.graph(
        "Mean duration and what the task declares",
        "The declared limit is `outcome.duration_seconds_max` of a task file; 30 % above it the outcome tier loses "
        "points. Tasks that declare none have no limit here.",
        house.SECONDS,
        panels.over_time(queries.mean(names.RUN_DURATION_SECONDS, "task"), "{{task}}"),
        panels.over_time(
            f"max by (task) ({queries.series(names.DURATION_LIMIT_SECONDS, queries.TASK)})", "{{task}}: declared limit"
        ),
        width=12,
    )


def tools() -> table.Panel:
    calls = queries.grown(names.TOOL_CALLS_TOTAL, "tool")
    failed = queries.grown(names.TOOL_CALLS_TOTAL, "tool", where=('status="error"',))
    return panels.rows(
        "Calls by tool",
        "Calls in the time that is shown, how many of them failed, and how long they took.",
        Column("Failed", queries.share(failed, calls), house.RATIO),
        Column("Calls", calls, house.COUNT, decimals=0),
        *(
            Column(name, queries.quantile(q, names.TOOL_DURATION_SECONDS, "tool", over=queries.grown), house.SECONDS)
            for name, q in queries.QUANTILES.items()
        ),
        by={"tool": "Tool"},
        width=12,
    )


def tool_errors() -> timeseries.Panel:
    return panels.graph(
        "Share of tool calls that failed",
        "By tool. An agent can get past a failed call: whether it did is the digestion, on the Task dashboard.",
        house.RATIO,
        panels.over_time(
            queries.share(
                queries.rate(names.TOOL_CALLS_TOTAL, "tool", where=('status="error"',)),
                queries.rate(names.TOOL_CALLS_TOTAL, "tool"),
            ),
            "{{tool}}",
        ),
        width=12,
        top=1,
    )


def timeouts() -> timeseries.Panel:
    return panels.graph(
        "Timeouts a run",
        "Over 15 minutes. Above the line ReachTimeoutsHigh fires, and the system tier loses points."
        + house.OF_ALL_VARIANTS,
        house.RATIO,
        panels.over_time(queries.recorded("task:reach_timeouts:ratio_rate15m"), "{{task}}"),
        limit=house.bad_from(house.LIMITS["ReachTimeoutsHigh"]),
    )


def timeouts_by_stage() -> timeseries.Panel:
    return panels.graph(
        "Timeouts a run, by where they arose",
        "In a call of a tool, in retries that add up, in a call of a model, or in the run as a whole.",
        house.RATIO,
        panels.over_time(
            queries.shares(queries.rate(names.TIMEOUTS_TOTAL, "stage"), queries.rate(names.RUNS_TOTAL), "stage"),
            "{{stage}}",
        ),
        stacked=True,
    )


def stability() -> timeseries.Panel:
    return panels.graph(
        "Stability: deviation of the success rate",
        "Population standard deviation over the last 8 quarters of an hour that had 10 runs each; there is none until "
        "there were two. Above the line ReachStabilityLow fires, if the rate fell more than once and "
        "not by chance." + house.OF_ALL_VARIANTS,
        house.RATIO,
        panels.over_time(queries.recorded("task:reach_stability:stddev"), "{{task}}"),
        limit=house.bad_from(house.LIMITS["ReachStabilityLow"]),
    )


def violations() -> stat.Panel:
    return panels.number(
        "Violations",
        "Calls of tools that the task forbids or does not allow, in the time shown. One is enough for "
        "ReachAccessViolation. At least what that counted in a quarter of an hour, over all variants.",
        house.COUNT,
        queries.at_least(queries.grown(names.VIOLATIONS_TOTAL), "task_rule:reach_violations:increase15m"),
        limit=house.bad_from(1),
        height=8,
    )


def masked() -> stat.Panel:
    return panels.number(
        "Sensitive values masked",
        "Secrets and personal data that stood in spans, and were masked before anything was stored. Somebody puts them "
        "there. At least what ReachSensitiveDataLeak counted in a quarter of an hour, over all variants.",
        house.COUNT,
        queries.at_least(
            queries.grown(names.SENSITIVE_TOTAL, where=MASKED), "task_action:reach_sensitive:increase15m", *MASKED
        ),
        height=8,
    )


def violations_over_time() -> timeseries.Panel:
    return panels.graph(
        "Violations by task and rule",
        "Calls of tools that the task forbids, or does not allow.",
        house.PER_SECOND,
        panels.exemplars(panels.over_time(queries.rate(names.VIOLATIONS_TOTAL, "task", "rule"), "{{task}} · {{rule}}")),
    )


def masked_over_time() -> timeseries.Panel:
    return panels.graph(
        "Sensitive values, by where they stood and what became of them",
        "By the kind of step: agent and model steps hold what people and models write, tool steps what systems gave.",
        house.PER_SECOND,
        panels.exemplars(
            panels.over_time(
                queries.rate(names.SENSITIVE_TOTAL, "where", "kind", "action"), "{{where}} · {{kind}} · {{action}}"
            )
        ),
        stacked=True,
    )


def handoffs() -> table.Panel:
    return panels.rows(
        "Handoffs between agents",
        "In the time that is shown; agents that no task names are `other`.",
        Column("Handoffs", f"{queries.grown(names.HANDOFFS_TOTAL, 'from', 'to')} > 0", house.COUNT, decimals=0),
        by={"from": "From", "to": "To"},
        width=8,
        none="no handoffs",
    )


def handoffs_over_time() -> timeseries.Panel:
    return panels.graph(
        "Handoffs a run",
        "How often work is passed on, over the number of runs.",
        house.COUNT,
        panels.over_time(
            queries.share(queries.rate(names.HANDOFFS_TOTAL, "task"), queries.rate(names.RUNS_TOTAL, "task")),
            "{{task}}",
        ),
        width=16,
    )


def system_tier() -> timeseries.Panel:
    return panels.graph(
        "System tier",
        "0 to 100, over the last hour: stability and timeouts, and 0 after a broken rule or a leak."
        + house.OF_ALL_VARIANTS,
        house.SCORE,
        panels.over_time(queries.recorded("task:reach_system_tier:score"), "{{task}}"),
        width=16,
        top=100,
    )


def tier_weights() -> table.Panel:
    return panels.rows(
        "Weights of the tiers",
        "How much each tier counts in the total, from the task's scene.",
        Column(
            "Weight",
            f"max by (task, tier) ({queries.series(names.TIER_WEIGHT, queries.TASK)})",
            house.RATIO,
            decimals=0,
        ),
        by={"task": "Task", "tier": "Tier"},
        width=8,
    )


def cpu() -> timeseries.Panel:
    return panels.graph(
        "Processor time",
        "Of each process that scores: the services, and agents that score themselves. 1 is one core.",
        house.COUNT,
        panels.over_time(queries.rate("process_cpu_seconds_total", "instance", of=JOB), "{{instance}}"),
    )


def memory() -> timeseries.Panel:
    return panels.graph(
        "Memory in use",
        "Resident memory of each process that scores.",
        house.BYTES,
        panels.over_time(queries.gauge("process_resident_memory_bytes", "instance", of=JOB), "{{instance}}"),
    )


def files() -> timeseries.Panel:
    return panels.graph(
        "Open files",
        "Share of the file descriptors that each process may have.",
        house.RATIO,
        panels.over_time(
            queries.share(
                queries.gauge("process_open_fds", "instance", of=JOB),
                queries.gauge("process_max_fds", "instance", of=JOB),
            ),
            "{{instance}}",
        ),
        top=1,
    )

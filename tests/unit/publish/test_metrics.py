"""Check what verdicts become in Prometheus, through a registry and the exposition formats."""

from __future__ import annotations

import re
import time

import pytest
from msgspec.structs import replace
from prometheus_client.exposition import generate_latest

from reach_otel.engine import Counted, RunChanged, RunClosed, RunMerged
from reach_otel.engine.events import RunDropped
from reach_otel.publish.catalog import LIVE_METRICS, METRICS, SERVICE_METRICS, TASK_METRICS, markdown
from reach_otel.publish.health import Health
from reach_otel.publish.labels import STEP_KINDS, TIERS
from reach_otel.publish.metrics import Metrics
from reach_otel.span import Tokens
from tests.support.steps import Steps
from tests.unit.publish.openmetrics import parsed, written
from tests.unit.publish.scrape import PINNED, Scrape, ticket_run


@pytest.fixture
def scrape() -> Scrape:
    return Scrape()


def test_every_series_of_a_task_is_there_at_zero(scrape: Scrape) -> None:
    """Before the first run, each metric has a series of 0 for every label set that a task can have."""
    for metric in (*TASK_METRICS, *LIVE_METRICS):
        suffix = "_count" if metric.type == "histogram" else ""
        for labels in scrape.metrics._labels.values():
            assert metric.values is not None
            for values in metric.values(labels):
                told = dict(zip(metric.labels, values, strict=True))
                variant = "gpt-4o" if labels.name == "pinned" else "unknown"
                assert scrape.value(metric.name + suffix, task=labels.name, variant=variant, **told) == 0, metric.name


def test_a_verdict_counts_once_and_everywhere(scrape: Scrape) -> None:
    """One run that reached 2 of 3 must-milestones gives exactly the numbers of its record."""
    scrape.feed(ticket_run())
    assert scrape.total("reach_runs_total") == 0, "a running run counts nowhere but in the live gauges"
    (closed,) = scrape.close()
    value = scrape.task_value
    assert value("reach_runs_total", outcome=closed.record.outcome) == 1
    assert value("reach_milestone_expected_total", milestone="update", type="must", layer="2") == 1
    assert value("reach_milestone_reached_total", milestone="update", type="must", layer="2") == 1
    assert value("reach_milestone_reached_total", milestone="notify", type="must", layer="2") == 0
    assert value("reach_milestone_expected_total", milestone="note", type="optional", layer="2") == 1
    assert value("reach_high_layer_expected_total") == 2
    assert value("reach_high_layer_reached_total") == 1
    assert value("reach_at_k_expected_total", k="5") == 3
    assert value("reach_at_k_reached_total", k="5") == 2
    assert value("reach_at_k_reached_total", k="15") == 2
    assert value("reach_milestone_first_reach_actions_sum", milestone="update") == 2
    assert value("reach_milestone_first_reach_actions_bucket", milestone="update", le="1.0") == 0
    assert value("reach_milestone_first_reach_actions_bucket", milestone="update", le="2.0") == 1
    assert value("reach_milestone_first_reach_seconds_sum", milestone="read") == pytest.approx(0.06)
    assert value("reach_run_depth_ratio_sum") == pytest.approx(closed.record.scores.depth)
    assert value("reach_run_purity_ratio_bucket", le="1.0") == 1
    assert value("reach_run_digestion_ratio_count") == 0, "no obstacle: nothing to digest"
    assert value("reach_run_duration_seconds_sum") == pytest.approx(1.0)
    assert value("reach_actions_total", **{"class": "effective"}) == 2
    assert value("reach_tool_calls_total", tool="update_ticket", status="ok") == 1
    assert value("reach_tool_duration_seconds_sum", tool="update_ticket", status="ok") == pytest.approx(0.05)
    for level, verdict in closed.record.levels.items():
        assert value("reach_level_runs_total", level=level) == 1
        assert value("reach_level_passed_total", level=level) == verdict.passed
    broken = closed.record.break_point
    assert broken is not None
    assert value("reach_break_points_total", level=broken.level, reason=broken.reason) == 1


def test_sums_over_replicas_are_exact() -> None:
    """Runs counted by two processes add up to what one process would have counted."""
    one, left, right = Scrape(), Scrape(), Scrape()
    for run in range(1, 9):
        made = ticket_run(run, tools=run % 4, fail=run % 3 == 0)
        for scrape in (one, left if run % 2 else right):
            scrape.feed(made)
    for scrape in (one, left, right):
        scrape.close()
    for metric in TASK_METRICS:
        for suffix in ("_sum", "_count") if metric.type == "histogram" else ("",):
            name = metric.name + suffix
            assert left.total(name) + right.total(name) == pytest.approx(one.total(name)), name
    assert one.total("reach_runs_total") == 8


def test_failures_are_counted_with_their_obstacle_and_timeout(scrape: Scrape) -> None:
    """A failing call shows as status, obstacle and timeout."""
    scrape.feed(ticket_run(fail=True))
    (closed,) = scrape.close()
    (obstacle,) = closed.record.obstacles
    digested = "true" if obstacle.digested else "false"
    assert scrape.task_value("reach_obstacles_total", kind="error", digested=digested) == 1
    assert scrape.task_value("reach_tool_calls_total", tool="update_ticket", status="error") == 1
    assert scrape.task_value("reach_timeouts_total", stage="tool") == 1
    assert scrape.task_value("reach_run_digestion_ratio_count") == 1


def test_findings_and_tokens_and_models_are_counted(scrape: Scrape) -> None:
    """Findings by kind, tokens by what they were spent on, model calls by their duration."""
    made = ticket_run()
    steps = Steps(2)
    steps.made = made
    steps.trace_id = made[0].trace_id
    steps.model(
        90, 95, parent="00000001000000ff", span_id="aa", tokens=Tokens(100, 20), output="finished", agent="ticket-agent"
    )
    scrape.feed(steps.made)
    (closed,) = scrape.close()
    assert scrape.total("reach_tokens_total") == closed.record.tokens.total == 120
    assert scrape.value("reach_model_duration_seconds_sum", task="ticket", variant="gpt-4o-mini") == pytest.approx(0.05)
    assert scrape.total("reach_findings_total") == len(closed.record.findings)


def test_an_unmatched_run_counts_without_a_task(scrape: Scrape) -> None:
    """Runs of no task are counted, their unknown tools as ``other``."""
    steps = Steps(5)
    steps.tool("mystery", 1, 2, parent="ff", args={}, result=1)
    steps.agent("somebody", 0, 9, span_id="ff")
    scrape.feed(steps.made)
    scrape.close()
    labels = {"task": "unmatched", "variant": "unknown"}
    assert scrape.total("reach_runs_total") == 1
    assert scrape.value("reach_tool_calls_total", tool="other", status="ok", **labels) == 1
    assert scrape.value("reach_run_depth_ratio_count", **labels) == 0


# What was added to the numbers of single runs.

GUARDED = """
task: guarded
match: {agent: guard}
scene: [2, 1, 1]
outcome: {duration_seconds_max: 45}
allowed_tools: [look, "drop_*", purge]
forbidden_tools: [purge, "rm_*"]
milestones: [{id: look, verify: {tool: look}}]
"""


def test_coverage_is_runs_that_reached_all_of_runs_with_a_task(scrape: Scrape) -> None:
    """A run counts as covered only when it reached every must-milestone; one without a task counts in neither."""
    for run, tools in enumerate((3, 3, 2, 0), 1):
        scrape.feed(ticket_run(run, tools=tools))
    steps = Steps(9)
    steps.agent("somebody", 0, 9)
    scrape.feed(steps.made)
    closed = scrape.close()
    assert scrape.task_value("reach_coverage_expected_total") == 4
    assert scrape.task_value("reach_coverage_reached_total") == 2 == sum(c.record.scores.coverage for c in closed)
    assert scrape.total("reach_coverage_expected_total") == 4


def test_a_call_against_least_privilege_is_counted_by_the_rule_it_breaks() -> None:
    """Each call counts once; what is forbidden stays so though it is allowed too; a handoff is no call of a tool."""
    scrape = Scrape(GUARDED)
    steps = Steps(1)
    for n, tool in enumerate(("look", "drop_table", "purge", "purge", "rm_all", "mail")):
        steps.tool(tool, 2 * n + 1, 2 * n + 2, parent="ff", args={"n": n}, result=1)
    steps.tool("transfer_to_x", 20, 21, parent="ff", kind="handoff", to_agent="x")
    steps.tool("some index", 22, 23, parent="ff", kind="retrieval", result=["doc"])
    steps.tool("rm_index", 24, 25, parent="ff", kind="retrieval", result=["doc"])
    steps.agent("guard", 0, 30, span_id="ff", output="ok")
    scrape.feed(steps.made)
    assert scrape.total("reach_violations_total") == 0
    scrape.close()
    labels = {"task": "guarded", "variant": "unknown"}
    assert scrape.value("reach_violations_total", rule="forbidden_tool", **labels) == 4
    assert scrape.value("reach_violations_total", rule="tool_not_allowed", **labels) == 1
    assert scrape.total("reach_violations_total") == 5


def test_a_task_without_rules_is_never_violated(scrape: Scrape) -> None:
    """With neither list given, any tool may be used; runs of no task have no rules."""
    steps = Steps(5)
    steps.tool("purge", 1, 2, parent="ff", args={}, result=1)
    steps.agent("somebody", 0, 9, span_id="ff")
    scrape.feed([*ticket_run(), *steps.made])
    scrape.close()
    assert scrape.total("reach_violations_total") == 0


def test_what_a_collector_masked_is_counted_by_kind_of_step(scrape: Scrape) -> None:
    """The number of masked values adds up at the verdict, by where they stood."""
    steps = Steps(1)
    steps.tool("read_ticket", 1, 2, parent="ff", args={}, result=1, masked=2)
    steps.tool("notify", 3, 4, parent="ff", args={}, result=1, masked=3)
    steps.model(5, 6, parent="ff", masked=4)
    steps.add("other", 7, 8, parent="ff", masked=5)
    steps.agent("ticket-agent", 0, 9, span_id="ff", output="x", variant="v1")
    scrape.feed(steps.made)
    (closed,) = scrape.close()
    scrape.metrics.publish([replace(closed, masked=(("step of a kind to come", 1),))])
    found = {
        where: scrape.task_value("reach_sensitive_total", "v1", kind="unspecified", where=where, action="masked")
        for where in STEP_KINDS
    }
    assert found == {**dict.fromkeys(STEP_KINDS, 0), "tool": 5, "model": 4, "other": 6}


def test_what_a_task_declares_is_exposed_by_task_alone() -> None:
    """Shares of the tiers add up to 1; a limit is there only for a task that declares one; no run changes them."""
    scrape = Scrape(GUARDED, PINNED, variants=("v1", "v2"))
    for _ in range(2):
        assert [scrape.value("reach_tier_weight", task="guarded", tier=tier) for tier in TIERS] == [0.5, 0.25, 0.25]
        assert [scrape.value("reach_tier_weight", task="pinned", tier=tier) for tier in TIERS] == [0.4, 0.3, 0.3]
        assert scrape.total("reach_tier_weight") == pytest.approx(2), "runs of no task have no scene"
        assert scrape.value("reach_duration_limit_seconds", task="guarded") == 45
        assert scrape.total("reach_duration_limit_seconds") == 45
        scrape.feed(ticket_run())
        scrape.close()


# Labels.


def test_labels_come_from_closed_sets(scrape: Scrape) -> None:
    """What a span holds becomes no label value: not its tools, its agents, its ids."""
    steps = Steps(7)
    steps.tool("rm -rf /", 1, 2, parent="ff", args={}, result=1)
    steps.tool("note_secret", 3, 4, parent="ff", args={}, result=1)
    steps.tool("transfer_to_evil", 5, 6, parent="ff", kind="handoff", to_agent="evil")
    steps.tool("read_ticket", 7, 8, parent="ff", args={}, result={"status": 1}, agent="evil")
    steps.agent("ticket-agent", 0, 9, span_id="ff", variant='x"}\n' + "v" * 500)
    scrape.feed(steps.made)
    scrape.close()
    text = generate_latest(scrape.registry).decode()
    for word in ("rm -rf", "note_secret", "evil", steps.trace_id, "vvv"):
        assert word not in text
    assert scrape.task_value("reach_tool_calls_total", "other", tool="other", status="ok") == 2
    assert scrape.task_value("reach_handoffs_total", "other", **{"from": "ticket-agent", "to": "other"}) == 1


def test_an_agent_that_fits_a_glob_is_shown_as_the_glob() -> None:
    """A task's glob is the label, not each name that fits it."""
    scrape = Scrape()
    steps = Steps(3)
    steps.tool("go", 1, 2, parent="ff", args={}, result=1)
    steps.agent("p-77", 0, 9, span_id="ff", output="ok")
    scrape.feed(steps.made)
    assert scrape.value("reach_runs_active", task="pinned", variant="gpt-4o", agent="p-*") == 1
    assert scrape.value("reach_runs_active", task="pinned", variant="gpt-4o", agent="other") == 0


def test_a_new_variant_has_its_zero_series_before_its_verdict(scrape: Scrape) -> None:
    """A scrape between the first sight of a variant and its verdict sees 0, so that rates see the step to 1."""
    scrape.feed(ticket_run(variant="v2"))
    assert scrape.task_value("reach_runs_total", "v2", outcome="success") == 0
    assert scrape.task_value("reach_high_layer_expected_total", "v2") == 0
    scrape.close()
    assert scrape.task_value("reach_high_layer_expected_total", "v2") == 2


def test_a_variant_of_the_settings_has_its_zero_series_from_the_start() -> None:
    """A fixed variant of the task wins over that of the settings."""
    scrape = Scrape(variant="canary")
    assert scrape.task_value("reach_high_layer_expected_total", "canary") == 0
    assert scrape.value("reach_high_layer_expected_total", task="pinned", variant="gpt-4o") == 0


def test_what_is_beyond_the_label_budget_is_counted_together() -> None:
    """However many variants come, no metric has more label sets for a task than its budget, and no run is lost."""
    budget = 12
    scrape = Scrape(label_budget=budget)
    for run in range(1, 41):
        scrape.feed(ticket_run(run, variant=f"v{run}"))
    scrape.close()
    for family in scrape.registry.collect():
        sets = {
            tuple((k, v) for k, v in sample.labels.items() if k != "le")
            for sample in family.samples
            if sample.labels.get("task") == "ticket"
        }
        assert len(sets) <= budget, family.name
    assert scrape.total("reach_runs_total") == 40
    assert scrape.total("reach_high_layer_expected_total") == 80
    assert scrape.value("reach_runs_total", task="ticket", variant="overflow", outcome="overflow") == 40 - 1
    overflowed = scrape.value("reach_scorer_label_overflow_total", metric="reach_runs_total")
    assert overflowed == 39
    assert len(scrape.metrics._boards) <= 2 * budget


def test_a_budget_smaller_than_a_task_is_kept_too() -> None:
    """Even the first variant's label sets end in ``overflow`` when they are too many."""
    scrape = Scrape(label_budget=3)
    scrape.feed(ticket_run(tools=3))
    scrape.close()
    assert scrape.total("reach_milestone_expected_total") == 4
    overflow = {"milestone": "overflow", "type": "overflow", "layer": "overflow"}
    assert scrape.task_value("reach_milestone_expected_total", "overflow", **overflow) == 2


# Exposition.


def test_openmetrics_parses_and_carries_trace_ids_as_exemplars_only(scrape: Scrape) -> None:
    """The OpenMetrics text is valid, and links numbers to the trace behind them."""
    made = ticket_run()
    scrape.feed(made)
    scrape.close()
    text = written(scrape.registry)
    families = parsed(text)
    exemplars = [s.exemplar for family in families.values() for s in family.samples if s.exemplar]
    assert {exemplar.labels["trace_id"] for exemplar in exemplars} == {made[0].trace_id}
    depth = families["reach_run_depth_ratio"]
    assert [s.value for s in depth.samples if s.exemplar] == [1.0]
    assert all(made[0].trace_id not in s.labels.values() for family in families.values() for s in family.samples)
    assert "_created" not in text


def test_an_odd_trace_id_gives_no_exemplar(scrape: Scrape) -> None:
    """A trace id that would not fit an exemplar is left out, and the text stays valid."""
    steps = Steps(1)
    steps.trace_id = "t" * 500
    steps.agent("ticket-agent", 0, 9, output="x")
    steps.tool("read_ticket", 1, 2, parent=steps.made[0].span_id, result={"status": 1})
    scrape.feed(steps.made)
    scrape.close()
    text = written(scrape.registry)
    assert parsed(text)
    assert " # {" not in text


def test_the_catalogue_is_what_is_exposed(scrape: Scrape) -> None:
    """Every metric of the table is exposed with its type, labels and help, and no other is."""
    scrape.feed(ticket_run())
    scrape.close()
    scrape.metrics.publish([Counted("late", "verdict", seconds=3.0), Counted("skew", "negative")])
    exposed = {family.name: family for family in scrape.registry.collect()}
    listed = {re.sub(r"_(total|info)$", "", metric.name): metric for metric in METRICS}
    assert set(exposed) == set(listed)
    for name, metric in listed.items():
        assert (exposed[name].type, exposed[name].documentation) == (metric.type, metric.help)
        for sample in exposed[name].samples:
            assert set(sample.labels) - {"le"} == set(metric.all_labels), metric.name
    assert all(metric.name.startswith("reach_") for metric in METRICS)
    assert all(metric.name.endswith("_total") == (metric.type == "counter") for metric in METRICS)
    assert len(markdown().splitlines()) == 2 + len(METRICS) + len(SERVICE_METRICS)


# Live gauges.


def gauges(scrape: Scrape) -> dict[str, float]:
    return {
        name: scrape.total(name)
        for name in ("reach_runs_active", "reach_live_runs", "reach_live_depth_sum", "reach_live_milestone_reached")
    }


def test_live_gauges_follow_a_run_and_return_to_zero(scrape: Scrape) -> None:
    """A running run shows how far it has come; its verdict takes it out again."""
    *calls, root = ticket_run(tools=3)
    scrape.feed([calls[0]])
    assert scrape.total("reach_runs_active") == 1
    scrape.feed([root])
    assert scrape.task_value("reach_live_runs", layer="1") == 1
    assert scrape.task_value("reach_live_milestone_reached", milestone="read") == 1
    scrape.feed(calls[1:])
    assert scrape.task_value("reach_live_runs", layer="1") == 0
    assert scrape.task_value("reach_live_runs", layer="2") == 1
    assert scrape.task_value("reach_live_depth_sum") == pytest.approx(1.0, abs=1e-5)
    assert scrape.total("reach_live_milestone_reached") == 3
    assert scrape.total("reach_runs_active") == 1
    scrape.close()
    assert gauges(scrape) == dict.fromkeys(gauges(scrape), 0.0)


def test_live_gauges_do_not_drift(scrape: Scrape) -> None:
    """After many runs in any order the gauges are exactly 0, and never a float's hair beside it."""
    runs = [ticket_run(run, tools=run % 4, variant=f"v{run % 3}") for run in range(1, 30)]
    for n in range(4):
        for made in runs:
            if n < len(made):
                scrape.feed([made[n]])
    assert scrape.total("reach_live_runs") == len(runs)
    scrape.close()
    assert gauges(scrape) == dict.fromkeys(gauges(scrape), 0.0)


def test_a_merged_run_leaves_the_live_gauges(scrape: Scrape) -> None:
    """A run that turns out to be a part of another is not counted twice."""
    events = scrape.feed(ticket_run())
    changed = next(event for event in events if isinstance(event, RunChanged))
    scrape.metrics.publish([RunMerged(changed.summary.run_id, "other")])
    assert gauges(scrape) == dict.fromkeys(gauges(scrape), 0.0)
    assert scrape.value("reach_scorer_runs_merged_total") == 1


# The scorer's own health.


def test_a_dropped_run_leaves_the_live_gauges(scrape: Scrape) -> None:
    """A run on which the engine failed counts as the scorer's fault, and nowhere else."""
    events = scrape.feed(ticket_run())
    changed = next(event for event in events if isinstance(event, RunChanged))
    scrape.metrics.publish([RunDropped(changed.summary.run_id), Counted("evicted", "fault"), Counted("fault", "step")])
    assert gauges(scrape) == dict.fromkeys(gauges(scrape), 0.0)
    assert scrape.value("reach_scorer_errors_total", stage="engine") == 2
    assert scrape.value("reach_scorer_runs_evicted_total", reason="fault") == 1
    assert scrape.total("reach_runs_total") == 0


@pytest.mark.parametrize(
    ("event", "name", "labels"),
    [
        (Counted("duplicate", "span", 2), "reach_scorer_duplicates_total", {}),
        (Counted("late", "verdict", 2, 4.0), "reach_scorer_late_span_age_seconds_count", {}),
        (Counted("evicted", "runs_max", 2), "reach_scorer_runs_evicted_total", {"reason": "runs_max"}),
        (Counted("fault", "cel", 2), "reach_scorer_condition_faults_total", {"reason": "cel"}),
        (Counted("overflow", "actions", 2), "reach_scorer_spans_dropped_total", {"reason": "actions_max"}),
        (Counted("incomplete", "began_before", 2), "reach_scorer_incomplete_runs_total", {"reason": "began_before"}),
        (Counted("incomplete", "no_root", 2), "reach_scorer_incomplete_runs_total", {"reason": "no_root"}),
        (Counted("merged", "span", 2), "reach_scorer_runs_merged_total", {}),
        (Counted("skew", "negative_duration", 2), "reach_scorer_odd_spans_total", {"reason": "negative_duration"}),
    ],
)
def test_what_the_engine_counts_is_exposed(scrape: Scrape, event: Counted, name: str, labels: dict[str, str]) -> None:
    """Each kind of count has its metric."""
    scrape.metrics.publish([event])
    assert scrape.value(name, **labels) == 2


def test_health_is_read_at_the_scrape() -> None:
    """Queue, faults and errors are shown as they are when somebody looks."""
    waiting = [3]
    health = Health(queue_spans=lambda: waiting[0], refused=lambda: {"queue_full": 7, "closed": 0})
    scrape = Scrape(health=health)
    health.errors["engine"] += 1
    health.faults["zero_id"] += 1
    health.faults["too_long"] += 1
    assert scrape.value("reach_scorer_queue_spans") == 3
    waiting[0] = 0
    assert scrape.value("reach_scorer_queue_spans") == 0
    assert scrape.value("reach_scorer_spans_dropped_total", reason="queue_full") == 7
    assert scrape.value("reach_scorer_spans_dropped_total", reason="zero_id") == 1
    assert scrape.value("reach_scorer_odd_spans_total", reason="too_long") == 1
    assert scrape.value("reach_scorer_errors_total", stage="engine") == 1
    assert scrape.total("reach_scorer_build_info") == 1


@pytest.fixture
def ten_milestones() -> tuple[Metrics, list[RunClosed]]:
    rows = "".join(f"  - {{id: m{i}, verify: {{tool: t{i}}}}}\n" for i in range(10))
    scrape = Scrape(f"task: ten\nmatch: {{agent: ten}}\nmilestones:\n{rows}")
    steps = Steps(1)
    for i in range(10):
        steps.tool(f"t{i}", i * 2 + 1, i * 2 + 2, parent="ff", args={"a": i}, result={"ok": i})
    steps.agent("ten", 0, 40, span_id="ff", output="done")
    scrape.feed(steps.made)
    return scrape.metrics, scrape.close()


def test_a_verdict_is_cheap(ten_milestones: tuple[Metrics, list[RunClosed]]) -> None:
    """A verdict on ten milestones and ten calls takes about 30 us; the bound leaves room for a busy machine."""
    metrics, closed = ten_milestones
    assert closed[0].record.scores.depth == 1.0
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(20):
            metrics.publish(closed)
        best = min(best, (time.perf_counter() - start) / 20)
    assert best < 100e-6

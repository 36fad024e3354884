"""Check that the table of metrics says what is exposed: names, types, labels, and every value a label can have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reach_otel.engine import Counted, RunChanged, RunClosed
from reach_otel.engine.action import Action
from reach_otel.engine.events import ModelCall, Root
from reach_otel.engine.record import BreakPoint, LevelRecord, ObstacleRecord, TokenRecord
from reach_otel.publish.catalog import DECLARED_METRICS, LIVE_METRICS, METRICS, TASK_METRICS, Metric
from reach_otel.publish.labels import TaskLabels
from tests.support.records import milestone, record, summary
from tests.unit.publish.scrape import PINNED, TICKET, Scrape

WORDS = st.one_of(
    st.text(max_size=20), st.sampled_from(["ticket", "pinned", "unmatched", "overflow", "tool", "gpt-4o"])
)
AMOUNTS = st.integers(0, 1_000_000)
RECORDS = st.fixed_dictionaries(
    {
        "task": WORDS,
        "agent": st.none() | WORDS,
        "variant": st.none() | WORDS,
        "outcome": WORDS,
        "obstacles": st.lists(
            st.builds(ObstacleRecord, WORDS, WORDS, WORDS, AMOUNTS, AMOUNTS, st.booleans()), max_size=2
        ),
        "levels": st.dictionaries(WORDS, st.builds(LevelRecord, st.booleans(), WORDS), max_size=2),
        "break_point": st.none() | st.builds(BreakPoint, WORDS, WORDS),
        "actions": st.dictionaries(WORDS, AMOUNTS, max_size=2),
        "tokens": st.builds(TokenRecord, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS),
        "findings": st.lists(WORDS, max_size=2),
        "milestones": st.lists(st.builds(milestone, WORDS, kind=WORDS, layer=st.integers(0, 9)), max_size=4).map(tuple),
        "cost_dollars": st.none() | st.floats(0, 1e6),
    }
)
ACTIONS = st.builds(
    Action,
    kind=st.sampled_from(["tool", "handoff", "retrieval"]),
    span_id=WORDS,
    start_ns=AMOUNTS,
    end_ns=AMOUNTS,
    tool=WORDS,
    agent=st.none() | WORDS,
    to_agent=st.none() | WORDS,
    ok=st.booleans(),
    error=st.none() | WORDS,
    retry=st.booleans(),
)
CALLS = st.builds(ModelCall, st.none() | WORDS, st.floats(0, 100), st.booleans(), st.none() | WORDS)
ROOTS = st.none() | st.builds(Root, WORDS, WORDS, AMOUNTS, AMOUNTS, st.booleans(), st.none() | WORDS, st.none())
BY = st.sampled_from(["task", "named", "model", None])


def series_of(scrape: Scrape) -> dict[str, tuple[str, list[Mapping[str, str]]]]:
    """Give type and label sets by the name that the table uses; buckets count as the metric they belong to."""
    return {
        family.name: (family.type, [{k: v for k, v in s.labels.items() if k != "le"} for s in family.samples])
        for family in scrape.registry.collect()
    }


def family_name(metric: Metric) -> str:
    return re.sub(r"_(total|info)$", "", metric.name)


def closed_set(metric: Metric, task: TaskLabels) -> set[tuple[str, ...]]:
    """Give every value of the labels after task and variant that a task can have."""
    assert metric.values is not None
    return {*metric.values(task), tuple("overflow" for _ in metric.labels)}


def test_labels_are_those_of_the_table() -> None:
    """Every metric has exactly the labels of the table, in its order, from the start and after runs."""
    scrape = Scrape()
    for n in range(2):
        exposed = series_of(scrape)
        assert set(exposed) == set(map(family_name, METRICS))
        for metric in METRICS:
            kind, found = exposed[family_name(metric)]
            assert kind == metric.type
            assert found or n == 0 or metric.name in EMPTY, metric.name
            for labels in found:
                assert tuple(labels) == metric.all_labels, metric.name
        scrape.metrics.publish([RunClosed(record(task="ticket", outcome="made-up"), (), ())])
        scrape.metrics.publish([Counted("skew", "negative_duration"), Counted("late", "verdict", seconds=1.0)])


EMPTY = {"reach_duration_limit_seconds", "reach_scorer_label_overflow_total"}  # no task declares one; nothing is beyond


@given(
    st.lists(
        st.tuples(
            RECORDS,
            st.lists(ACTIONS, max_size=3).map(tuple),
            st.lists(CALLS, max_size=2).map(tuple),
            ROOTS,
            st.lists(st.tuples(WORDS, AMOUNTS), max_size=2).map(tuple),
            BY,
        ),
        max_size=4,
    ),
    st.sampled_from([3, 40, 300]),
)
def test_closed_sets_are_closed(runs: list[tuple[dict[str, Any], Any, Any, Any, Any, Any]], budget: int) -> None:
    """Whatever a verdict says, each label set is one that the table gives for its task, or ``overflow`` throughout."""
    scrape = Scrape(TICKET, PINNED, label_budget=budget, variants=("v1", "v2"))
    for n, (fields, actions, calls, root, masked, by) in enumerate(runs):
        open_run = {key: fields[key] for key in ("task", "agent", "variant", "milestones")}
        scrape.metrics.publish([RunChanged(summary(f"r{n}", variant_by=by, **open_run))])
        scrape.metrics.publish([RunClosed(record(f"r{n}", **fields), actions, calls, root, masked, by)])
    tasks = {labels.name: labels for labels in scrape.metrics._labels.values()}
    exposed = series_of(scrape)
    for metric in (*TASK_METRICS, *LIVE_METRICS):
        for labels in exposed[family_name(metric)][1]:
            own = tuple(labels[name] for name in metric.labels)
            assert own in closed_set(metric, tasks[labels["task"]]), (metric.name, labels)
            assert labels["variant"] in VARIANTS[labels["task"]], (metric.name, labels)
    for metric in DECLARED_METRICS:
        assert {labels["task"] for labels in exposed[family_name(metric)][1]} <= {"ticket", "pinned"}
    assert scrape.total("reach_runs_total") == len(runs)


# What one task fixes is declared for all.
OPEN = {"v1", "v2", "gpt-4o", "other", "unknown", "overflow"}
VARIANTS = {"ticket": OPEN, "unmatched": OPEN, "pinned": {"gpt-4o", "overflow"}}


def test_the_closed_sets_have_no_value_twice() -> None:
    """A label set that is given twice would be counted at half its size in the budget."""
    scrape = Scrape()
    for metric, task in product((*TASK_METRICS, *LIVE_METRICS), scrape.metrics._labels.values()):
        assert metric.values is not None
        found = list(metric.values(task))
        assert len(found) == len(set(found)), metric.name

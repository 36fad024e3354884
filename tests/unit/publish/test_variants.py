"""Check which variants become label values, and that no text of a span does."""

from __future__ import annotations

import time
from typing import Any

import pytest
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given
from hypothesis import strategies as st

from reach_otel.engine import Engine, Limits, RunClosed
from reach_otel.engine.models import find_model, listed_names
from reach_otel.publish.variants import FORM, Variants
from reach_otel.task import Tasks
from tests.support.steps import Steps
from tests.unit.publish.scrape import PINNED, TICKET, Scrape, ticket_run

OWN = {"other", "unknown"}


@pytest.mark.parametrize(
    ("variant", "by", "label"),
    [
        (None, None, "unknown"),
        ("", "named", "unknown"),
        ("v2", "named", "v2"),
        ("registry.example/agent:1.2+b@x-3", "named", "registry.example/agent:1.2+b@x-3"),
        ("版本2", "named", "版本2"),
        ("v" * 64, "named", "v" * 64),
        ("v" * 65, "named", "other"),
        ("two words", "named", "other"),
        ("v2\n", "named", "other"),
        ('v"}', "named", "other"),
        ("overflow", "named", "other"),
        ("overflow", "model", "other"),
        ("v2", "span", "other"),
        ("gpt-4o", "span", "other"),
        ("overflow", "span", "other"),
        ("gpt-4o", "model", "gpt-4o"),
        ("gpt-4o-2024-08-06", "model", "gpt-4o-2024-08-06"),
        ("GPT-4o", "model", "gpt-4o"),
        ("gpt-4o-mini-2031-01-02", "model", "gpt-4o-mini"),
        ("claude-sonnet-4-5-alice@example.com", "model", "claude-sonnet-4-5"),
        ("my-own-model", "model", "other"),
        ("v2", "model", "other"),
        ("v2", None, "other"),
    ],
)
def test_a_variant_counts_under_a_name_of_a_closed_set(variant: str | None, by: str | None, label: str) -> None:
    """A deployer's name passes by its form, a model's only if the price table knows it; the rest is ``other``."""
    assert Variants().label(variant, by) == label  # type: ignore[arg-type]


@pytest.mark.parametrize("by", ["named", "span", "model", None])
def test_with_declared_variants_nothing_else_passes(by: str | None) -> None:
    """What is declared passes whoever names it; a known model and a well-formed name do not."""
    variants = Variants(("v1", "gpt-4o", "v1"))
    assert variants.declared == ("v1", "gpt-4o")
    told = [variants.label(name, by) for name in ("v1", "gpt-4o", "v2", "gpt-4o-mini", None)]  # type: ignore[arg-type]
    assert told == ["v1", "gpt-4o", "other", "other", "unknown"]


def test_in_the_process_of_the_application_its_spans_are_trusted() -> None:
    """There, what a span names is the deployer's as well: it passes by its form, and not where others are declared."""
    assert [Variants(trust_spans=True).label(name, "span") for name in ("v2", "two words")] == ["v2", "other"]
    assert Variants(("v1",), trust_spans=True).label("v2", "span") == "other"


@given(st.text(max_size=80), st.sampled_from(["", "gpt-4o", "claude-3-5-sonnet", "o1"]))
def test_no_model_name_adds_to_the_closed_set(ending: str, known: str) -> None:
    """Whatever a model is called, the label is a name that the price table spells out."""
    label = Variants().label(known + ending, "model")
    assert label in OWN | listed_names()
    assert FORM.fullmatch(label)


def test_the_price_table_is_asked_once_a_name_and_keeps_none() -> None:
    """A flood of model names costs no memory beyond a limit, in the package that holds the prices neither."""
    snapshot = get_snapshot()
    held = [field for field in vars(snapshot) if field.startswith("_")]
    before = {field: len(getattr(snapshot, field)) for field in held}
    assert before, "the package keeps what it was asked in fields of other names: look there"
    for n in range(2_000):
        assert find_model(f"made-up-{n}") is None
        assert find_model(f"claude-sonnet-4-5-{n}") is not None
        assert find_model("claude-sonnet-4-5" + "x" * n * 10) is None or n * 10 < 256
    assert {field: len(getattr(snapshot, field)) for field in held} == before


def test_a_label_costs_next_to_nothing() -> None:
    """A label is looked up for every change of a run: known and unknown names alike take about 1 us."""
    variants = Variants()
    for name in ("gpt-4o-mini", "claude-sonnet-4-5-20250929", "made-up"):
        variants.label(name, "model")
        best = float("inf")
        for _ in range(20):
            start = time.perf_counter()
            for _ in range(100):
                variants.label(name, "model")
            best = min(best, (time.perf_counter() - start) / 100)
        assert best < 20e-6, name


def run_of_model(model: str, **fields: Any) -> Scrape:
    scrape = Scrape()
    steps = Steps(1)
    steps.add("model", 1, 2, parent="ff", model=model)
    steps.agent("ticket-agent", 0, 9, span_id="ff", output="done", **fields)
    scrape.feed(steps.made)
    return scrape


def test_the_record_keeps_the_real_name() -> None:
    """Only the label is mapped: the API shows what was said."""
    scrape = run_of_model("my-own-model")
    (closed,) = scrape.close()
    assert closed.record.variant == "my-own-model"
    assert scrape.task_value("reach_runs_total", "other", outcome=closed.record.outcome) == 1


def counted_of_spans(**options: Any) -> set[str]:
    """Give the variants under which runs count that name theirs on spans alone: made-up-n, canary, gpt-4o, v1."""
    scrape = Scrape(TICKET, PINNED, **options)
    names = [*(f"made-up-{n}" for n in range(9)), "canary", "gpt-4o", "v1"]
    for run, name in enumerate(names, 1):
        scrape.feed(ticket_run(run, variant=name, variant_on_span=True))
    closed = scrape.close()
    assert {(one.record.variant, one.variant_by) for one in closed} == {(name, "span") for name in names}
    samples = [sample for family in scrape.registry.collect() for sample in family.samples]
    runs = [s for s in samples if s.name == "reach_coverage_expected_total" and s.labels["task"] == "ticket"]
    assert sum(s.value for s in runs) == len(names)
    assert not any("made-up" in value for s in samples for value in s.labels.values()) or options.get("trust_spans")
    return {s.labels["variant"] for s in runs if s.value}


def test_what_only_a_span_names_counts_if_it_is_declared() -> None:
    """By the settings or by a task file; the rest is ``other``. The record keeps the real name."""
    assert counted_of_spans() == {"gpt-4o", "other"}  # a task file fixes it
    assert counted_of_spans(variant="canary") == {"gpt-4o", "canary", "other"}
    assert counted_of_spans(variants=("v1",), variant="canary") == {"gpt-4o", "canary", "v1", "other"}
    assert counted_of_spans(trust_spans=True) >= {"gpt-4o", "canary", "v1", "made-up-3"}


def test_what_a_span_names_hides_what_its_resource_names() -> None:
    """Which name is the run's does not depend on whether it may show: no name of another is counted instead."""
    scrape = run_of_model("gpt-4o", variant="made-up", variant_on_span=True, service_version="1.2")
    (closed,) = scrape.close()
    assert (closed.record.variant, closed.variant_by) == ("made-up", "span")
    assert scrape.task_value("reach_coverage_expected_total", "other") == 1


def test_the_scope_that_sees_spans_above_a_run_does_not_trust_them_more() -> None:
    """Of a span above the run only its place and what it says of the run is kept, and that it says so itself."""
    steps = Steps(1)
    steps.add("other", 0, 9, span_id="top", variant="made-up", variant_on_span=True)
    steps.agent("ticket-agent", 1, 8, parent="top", output="done")
    engine = Engine(Tasks([]), Limits(grace_seconds=0, run_scope="agent"))
    events = [*engine.feed(steps.made, 0), *engine.close(1)]
    told = {(e.record.variant, e.variant_by) for e in events if isinstance(e, RunClosed)}
    assert told <= {("made-up", "span"), (None, None)}
    assert told


@pytest.mark.parametrize("field", ["variant", "service_version"])
def test_what_the_deployer_names_wins_over_the_model(field: str) -> None:
    """``reach.variant`` and ``service.version`` are the deployer's, so they need not be known anywhere."""
    scrape = run_of_model("my-own-model", **{field: "canary-7"})
    assert scrape.task_value("reach_runs_active", "canary-7", agent="ticket-agent") == 1
    scrape.close()
    assert scrape.task_value("reach_coverage_expected_total", "canary-7") == 1


def test_a_made_up_overflow_takes_no_run_of_others() -> None:
    """A sender who calls its variant ``overflow`` does not become the place where all further variants are counted."""
    scrape = Scrape(TICKET)
    scrape.feed(ticket_run(1, variant="overflow"))
    scrape.feed(ticket_run(2, variant="v2"))
    scrape.close()
    assert scrape.task_value("reach_coverage_expected_total", "v2") == 1
    assert scrape.task_value("reach_coverage_expected_total", "other") == 1
    assert scrape.task_value("reach_coverage_expected_total", "overflow") is None


def test_declared_variants_have_their_series_from_the_start() -> None:
    """Also that of the settings; a task that fixes its own has only that one. None of them can be crowded out."""
    scrape = Scrape(TICKET, PINNED, variants=("v1", "v2"), variant="canary", label_budget=200)
    for run in range(1, 30):
        scrape.feed(ticket_run(run, variant=f"made-up-{run}"))
    scrape.feed(ticket_run(30, variant="v2"))
    scrape.close()
    for name, runs in {"v1": 0, "v2": 1, "canary": 0, "other": 29}.items():
        assert scrape.task_value("reach_coverage_expected_total", name) == runs, name
    found = {
        sample.labels["variant"]
        for family in scrape.registry.collect()
        for sample in family.samples
        if sample.labels.get("task") == "pinned" and "variant" in sample.labels
    }
    assert found == {"gpt-4o"}

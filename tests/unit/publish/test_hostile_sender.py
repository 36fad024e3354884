"""Check that a sender who makes up every name it sends fills no metric and breaks no sum."""

from __future__ import annotations

import pytest
from prometheus_client.exposition import generate_latest

from reach_otel.span import normalise, read_spans_json
from tests.support.hostile import ON_SPANS, TASK, check, flood, samples_of
from tests.unit.publish.openmetrics import written
from tests.unit.publish.scrape import Scrape

BUDGET = 40


@pytest.mark.parametrize("variants", [None, ("release-3", ON_SPANS, "release-99")])
def test_made_up_names_become_no_label_values(variants: tuple[str, ...] | None) -> None:
    """No name, variant or error of a span shows; the budget holds; what is beyond is counted; sums are exact."""
    scrape = Scrape(TASK, label_budget=BUDGET, variants=variants or ())
    bodies, sums = flood()
    for body in bodies:
        spans, faults = read_spans_json(body)
        assert not faults.dropped
        scrape.feed([step for span in spans for step in normalise(span)])
    scrape.close()
    for text, is_openmetrics in ((generate_latest(scrape.registry).decode(), False), (written(scrape.registry), True)):
        check(samples_of(text, is_openmetrics=is_openmetrics), sums, BUDGET, variants)

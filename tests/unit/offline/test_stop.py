"""Check the few words that say where a run stopped."""

from __future__ import annotations

import pytest

from reach_otel.engine.record import Record
from reach_otel.offline.stop import stopped_at
from tests.unit.demo.samples import record


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (record("a"), None),
        (record("a", outcome="failed", trap="refunded"), "trap refunded at action 1"),
        (record("a", outcome="partial", missed="stock", reason="fabricated"), "stock fabricated (L2)"),
        (record("a", outcome="partial", missed="customer", reason="unused"), "customer unused (L2)"),
        (record("a", outcome="partial", missed="update"), "update missed"),
    ],
)
def test_milestone_and_reason_belong_together(run: Record, words: str | None) -> None:
    """The words name the milestone to which the reason applies."""
    assert stopped_at(run) == words

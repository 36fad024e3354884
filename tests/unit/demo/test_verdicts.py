"""Check that every behaviour of the demo gets the verdict that it deserves, on the recorded runs of the examples."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reach_otel.demo.behaviours import BEHAVIOURS
from tools import docs

COMMAND = "reach-otel replay examples/ticket-runs.jsonl.gz --task examples/ticket.task.yaml --json"

# outcome, where it broke, findings, digestion, and whether the deepest layer was reached for the greater part
VERDICTS: dict[str, tuple[str, str | None, set[str], float | None, bool]] = {
    "clean": ("success", None, set(), None, True),
    "recovers": ("success", None, set(), 1.0, True),
    "brute force": ("success", None, set(), None, True),
    "falls back": ("partial", "tool_error", set(), 1.0, True),
    "slow tool": ("success", "stuck", {"stuck"}, 0.0, True),
    "ignores results": ("partial", "unused", {"unused"}, None, True),
    "makes up an id": ("partial", "fabricated", {"fabricated"}, None, False),
    "gives up": ("partial", "never_tried", {"unused"}, 0.0, False),
    "claims success": ("partial", "never_tried", {"unused"}, None, False),
    "loops": ("partial", "never_tried", {"loop", "stuck", "unused"}, None, False),
    "refunds at once": ("failed", "wrong_tool", {"trap"}, None, False),
}


@pytest.fixture(scope="module")
def records() -> dict[str, dict[str, Any]]:
    """Return the record of each behaviour's run; the recording has them in the order of the list."""
    found = [json.loads(line) for line in docs.printed(COMMAND).splitlines()]
    return dict(zip([behaviour.name for behaviour in BEHAVIOURS], found, strict=True))


@pytest.mark.parametrize("behaviour", VERDICTS)
def test_the_verdict_fits_the_behaviour(records: dict[str, dict[str, Any]], behaviour: str) -> None:
    """Scores see spans alone, and still tell the behaviours apart."""
    record = records[behaviour]
    outcome, reason, findings, digestion, arrived = VERDICTS[behaviour]
    assert record["outcome"] == outcome
    assert (record["break_point"] or {}).get("reason") == reason
    assert {found["finding"] for found in record["findings"]} >= findings
    assert record["scores"]["digestion"] == digestion
    assert record["high_risk"] is not arrived


def test_brute_force_arrives_by_detours(records: dict[str, dict[str, Any]]) -> None:
    """Depth is full and purity tells the difference."""
    clean, brute = records["clean"]["scores"], records["brute force"]["scores"]
    assert clean["depth"] == brute["depth"] == 1.0
    assert clean["purity"] == 1.0
    assert brute["purity"] < 0.7


def test_a_trap_makes_the_score_nothing(records: dict[str, dict[str, Any]]) -> None:
    """Depth stays as it is, so that one sees both."""
    scores = records["refunds at once"]["scores"]
    assert scores["composite"] == 0.0
    assert scores["depth"] > 0

"""Labelled runs of others: the outcome must agree with the label in at least nine of ten."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from examples.trajectories.evaluate import ACCURACY_MIN, Judged, accuracy, auc, judge, row
from examples.trajectories.make_tasks import Comparison, call, open_id, says, sets, traps
from reach_otel.task import View, load_task_text

VARIABLE = "REACH_TEST_TRAJECTORIES"
SETS = ("agentrx_retail", "taubench", "workbench")
AUC_MIN = 0.85

FOLDER = Path(os.environ.get(VARIABLE) or Path(__file__).parents[3] / "shared" / "trajectories")
needs_data = pytest.mark.skipif(
    not sets(FOLDER),
    reason=f"no labelled runs in {FOLDER}: set {VARIABLE} to a folder of sets, see examples/trajectories",
)


@cache
def judged(name: str) -> list[Judged]:
    return judge(FOLDER / name)


@needs_data
@pytest.mark.parametrize("name", SETS)
def test_outcome_agrees_with_the_label(name: str) -> None:
    runs = judged(name)
    assert accuracy(runs) >= ACCURACY_MIN, row(name, runs)


@needs_data
@pytest.mark.parametrize("name", SETS)
def test_scores_rank_successful_runs_above_failed_ones(name: str) -> None:
    runs = judged(name)
    for score in ("depth", "composite"):
        good, bad = ([getattr(r.record.scores, score) for r in runs if r.success is label] for label in (True, False))
        assert auc(good, bad) >= AUC_MIN, (score, row(name, runs))


@needs_data
def test_injected_errors_are_obstacles() -> None:
    """Every run with an injected 503 has an obstacle of kind ``error`` for the tool that failed."""
    for run in judged("taubench"):
        errors = sum(o.retries + 1 for o in run.record.obstacles if o.kind == "error" and o.tool == "get_order_details")
        assert errors >= min(1, INJECTED[run.record.trace_id]), run.task


def _injected() -> dict[str, int]:
    from examples.trajectories.make_tasks import read_lines

    if not (FOLDER / "taubench").is_dir():
        return {}
    return {label["trace_id"]: label["n_injected_503"] for label in read_lines(FOLDER / "taubench" / "labels.jsonl")}


INJECTED = _injected()


def holds(condition: dict[str, object], tool: str | None, args: object = None, text: str | None = None) -> bool:
    """Compile a condition as a task file would and try it on one step."""
    import json

    content = {"task": "t", "milestones": [{"id": "m", "verify": condition}]}
    return load_task_text(json.dumps(content)).milestones[0].condition.holds(View(tool=tool, args=args, text=text))


@pytest.mark.parametrize(
    ("items", "new_items", "expected"),
    [
        (["a", "b"], ["x", "y"], True),
        (["b", "a"], ["y", "x"], True),
        (["b", "a"], ["x", "y"], False),
        (["a"], ["x"], False),
        (["a", "b", "b"], ["x", "y", "y"], False),
    ],
)
def test_lists_that_belong_together_match_item_by_item(items: list[str], new_items: list[str], expected: bool) -> None:
    gold = {"order_id": "#W1", "item_ids": ["a", "b"], "new_item_ids": ["x", "y"]}
    condition = call("exchange", gold, Comparison())
    args = {"order_id": "#W1", "item_ids": items, "new_item_ids": new_items}
    assert holds(condition, "exchange", args) is expected


def test_the_same_item_twice_is_asked_for_twice() -> None:
    condition = call("exchange", {"item_ids": ["a", "a"], "new_item_ids": ["x", "y"]}, Comparison())
    assert holds(condition, "exchange", {"item_ids": ["a", "a"], "new_item_ids": ["y", "x"]})
    assert not holds(condition, "exchange", {"item_ids": ["a", "a"], "new_item_ids": ["x", "x"]})


@pytest.mark.parametrize(
    ("gold", "given", "expected"),
    [
        ({"subject": "Hello"}, {"subject": "HELLO"}, True),
        ({"board": "Back end"}, {"board": "back end"}, False),
        ({"field": "status", "new_value": "Won"}, {"field": "status", "new_value": "won"}, False),
        ({"field": "name", "new_value": "Ada (1.)"}, {"field": "name", "new_value": "ada (1.)"}, True),
        ({"field": "name", "new_value": "Ada (1.)"}, {"field": "name", "new_value": "ada (12)"}, False),
    ],
)
def test_texts_are_compared_as_the_set_compares_them(
    gold: dict[str, str], given: dict[str, str], expected: bool
) -> None:
    comparison = Comparison(case_free=True, exact=frozenset({"status", "board"}))
    assert holds(call("update", gold, comparison), "update", given) is expected


@pytest.mark.parametrize(
    ("text", "reply", "expected"),
    [
        ("1126.04", "That is $1,126.04 in all.", True),
        ("1126.04", "That is $1126.04 in all.", True),
        ("1126.04", "That is $1,126.40 in all.", False),
        ("Camera", "You ordered a camera.", True),
    ],
)
def test_an_answer_is_found_in_what_the_agent_says(text: str, reply: str, expected: bool) -> None:
    assert holds(says(text), None, text=reply) is expected


def test_what_a_tool_returns_is_no_answer() -> None:
    assert not holds(says("10"), "list_products", text="10")


def test_a_write_of_the_graph_is_no_trap_and_any_other_is() -> None:
    writes = [{"id": "n1", "tool": "cancel", "arguments": {"order_id": "#W1"}}]
    cancel, refund = traps(writes, ["refund", "cancel"], Comparison())
    assert not holds(cancel["verify"], "cancel", {"order_id": "#W1"})
    assert holds(cancel["verify"], "cancel", {"order_id": "#W2"})
    assert holds(refund["verify"], "refund", {})


def test_the_same_write_again_is_a_trap_where_it_makes_a_second_thing() -> None:
    send = {"id": "n1", "tool": "email.send_email", "arguments": {"to": "a@b.c"}}
    update = {"id": "n2", "tool": "crm.update_lead", "arguments": {"name": "Ada"}}
    made = {trap["id"]: trap["verify"] for trap in traps([send, update], ["email.send_email"], Comparison())}
    assert set(made) == {"other_email_send_email", "again_n1"}
    assert made["again_n1"]["all"][1] == {"when": '"n1" in run.held'}


def test_a_task_is_known_by_the_conversation_whatever_its_source_and_trial() -> None:
    label = {"dataset": "taubench", "source": "gpt", "task_id": "12", "trial": 3}
    assert open_id("taubench/gpt/12/3", label) == "taubench/*/12/*"
    label = {"dataset": "workbench", "source": "gpt", "task_id": "calendar/7", "trial": 0}
    assert open_id("workbench/gpt/calendar/7", label) == "workbench/*/calendar/7"


def test_auc_counts_ties_half() -> None:
    assert auc([1.0, 0.5], [0.5, 0.0]) == 0.875
    assert auc([], [0.0]) == 0.5

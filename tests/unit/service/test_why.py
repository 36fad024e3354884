"""Each sentence says why, from the closed reasons, the numbers and the task's own names; never with a span's values."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from reach_otel import names
from reach_otel.engine.record import Record
from reach_otel.publish.labels import OUTCOMES, REASONS
from reach_otel.service import why
from reach_otel.task import Task, load_task_text
from tests.support.engines import Driver
from tests.support.records import milestone, record
from tests.support.stand import full_run, ticket_run, ticket_tasks
from tests.support.steps import Steps

TASK = load_task_text(
    """
task: shop
k: 4
grounded: [sku]
milestones:
  - {id: find, verify: {tool: search, result: {ok: true}}, required: [item.sku, item.price], used: true}
  - {id: price, depends_on: [find], verify: {any: [{tool: price_a}, {tool: price_b}]}}
  - {id: ask, type: optional, verify: {tool: "ask_*"}}
  - {id: hold, type: fallback, covers: order, depends_on: [{any: [price, ask]}], verify: {tool: hold}}
  - {id: order, depends_on: [price, {any: [find, ask]}], verify: {tool: order, result: {ok: true}}}
traps:
  - {id: paid_twice, verify: {tool: pay}}
"""
)
SECRET = "S3CR3T-31"


def plainly(made: Record | dict[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(made))
    return read


def scored(calls: list[tuple[str, Any, Any]], task: Task = TASK, *, output: str | None = "well") -> dict[str, Any]:
    """Run an agent that makes these calls: (tool, arguments, result), an exception's text for a failed one."""
    steps = Steps()
    root = steps.agent("a", 0, 1_000, user=f"buy X-1 {SECRET}", output=output, task="shop")
    for n, (tool, args, result) in enumerate(calls):
        failed = isinstance(result, Exception)
        fields: dict[str, Any] = {"error": str(result)} if failed else {"result": result}
        steps.tool(tool, 2 * n + 1, 2 * n + 2, parent=root.span_id, args=args, **fields)
    driver = Driver([task])
    driver.feed(steps.made)
    (found,) = driver.close().values()
    return plainly(found)


def sentences(found: dict[str, Any], task: Task | None = TASK) -> dict[str, str]:
    return why.milestones(found, found["steps"], task)


FOUND = ("search", {"q": "x"}, {"ok": True, "item": {"sku": "X-1", "price": 7, "code": "K-777"}})


@pytest.mark.parametrize(
    ("calls", "which", "sentence"),
    [
        (
            [FOUND, ("price_a", {"code": "K-777"}, 7)],
            "find",
            "Reached at action 1, 0.02 s into the run. Its result was used later.",
        ),
        ([FOUND, ("price_a", {}, 7)], "price", "Reached at action 2, 0.04 s into the run."),
        (
            [FOUND],
            "find",
            "Its condition held at action 1, 0.02 s into the run, but nothing of its result has been used since.",
        ),
        (
            [("price_b", {}, 7)],
            "price",
            "Its condition held at action 1, 0.02 s into the run, but before find, which must come first.",
        ),
        (
            [("order", {}, {"ok": True})],
            "order",
            (
                "Its condition held at action 1, 0.02 s into the run, but before price and find or ask, which must"
                " come first."
            ),
        ),
        (
            [("search", {}, {"ok": True, "item": {"sku": "X-1"}})],
            "find",
            (
                "Its condition held at action 1, 0.02 s into the run, but its result lacks a required field"
                " (item.sku or item.price)."
            ),
        ),
        (
            [("search", {"sku": "made-up-1"}, {"ok": True, "item": {"sku": "X-1", "price": 7}})],
            "find",
            (
                "Its condition held at action 1, 0.02 s into the run, but the call passed an argument value that stood"
                " nowhere before, so it does not count."
            ),
        ),
        (
            [("ask_a", {}, n) for n in range(4)] + [FOUND],
            "find",
            "Its condition held at action 5, 0.1 s into the run, but only the first 4 actions count.",
        ),
        (
            [("search", {}, {"ok": True, "item": {"sku": "X-1"}}), ("price_a", {}, 7)],
            "price",
            "Its condition held at action 2, 0.04 s into the run, but before find, which must come first.",
        ),
        ([], "find", "Never tried: no call of search."),
        ([], "price", "Never tried: no call of price_a or price_b. It comes after find, not reached either."),
        ([("ask_x", {}, 1)], "hold", "Never tried: no call of hold."),
        ([("search", {}, RuntimeError("no"))], "find", "Tried once with search, and every call failed."),
        (
            [("search", {}, {"ok": False})] * 2,
            "find",
            "Tried 2 times with search, but its condition did not hold on any call.",
        ),
    ],
)
def test_a_milestone_says_why(calls: list[tuple[str, Any, Any]], which: str, sentence: str) -> None:
    """For each state and reason that the engine gives there is a sentence with what a person would ask next."""
    assert sentences(scored(calls))[which] == sentence


def test_a_result_that_was_not_captured_is_named_with_the_cure() -> None:
    """Without content a use cannot be seen, and the sentence says what to turn on."""
    steps = Steps()
    root = steps.agent("a", 0, 100, task="t", output="done")
    steps.tool("search", 1, 2, parent=root.span_id)
    task = load_task_text("{task: t, milestones: [{id: find, used: true, verify: {tool: search}}]}")
    driver = Driver([task])
    driver.feed(steps.made)
    (found,) = driver.close().values()
    assert found["milestones"][0]["reason"] == names.NO_CONTENT
    assert why.milestones(found, found["steps"], task)["find"].endswith("turn on the capture of content.")


def test_a_run_that_goes_on_is_told_as_one() -> None:
    """Nothing is final while the run is open."""
    driver = Driver(ticket_tasks())
    driver.feed(ticket_run(1, ended=False))
    (found,) = driver.open_records().values()
    told = why.milestones(found, found["steps"], ticket_tasks()[0])
    assert told["stock"] == "Tried once with check_inventory, and every call failed so far."
    assert told["update"].startswith("Never tried so far: no call of update_ticket.")
    (obstacle,) = why.obstacles(found, ticket_tasks()[0])
    assert obstacle == "check_inventory failed at action 3, in the way of stock. The agent has not got past it so far."
    assert why.outcome(found) == "The run is still going."


def test_levels_have_a_sentence_for_every_reason() -> None:
    """No pair of level and reason that the engine can give falls back to a bare word."""
    given = {("L3", reason) for reason in ("cut_off", "no_content")}  # labels of metrics that no level gives
    for level, reasons in REASONS.items():
        for reason in set(reasons) - {reason for at, reason in given if at == level}:
            (told,) = why.levels({"levels": {level: {"passed": False, "reason": reason}}}).values()
            assert told != "Not passed."
        (told,) = why.levels({"levels": {level: {"passed": True, "reason": None}}}).values()
        assert told != "Passed."


def test_obstacles_say_what_happened_and_whether_it_was_overcome() -> None:
    """Kind, place, retries and digestion are told; a tool is named only if the task names it."""
    failed = RuntimeError(f"no {SECRET}")
    found = scored(
        [("search", {}, failed), ("search", {}, failed), FOUND, ("price_a", {"code": "K-777"}, 7), ("zzz", {}, failed)]
    )
    assert why.obstacles(found, TASK) == [
        (
            "search failed at action 1, in the way of find, and 1 further call went no better. The agent got past it: a"
            " milestone at that layer or deeper was reached after it."
        ),
    ]
    found = scored([("zzz", {}, failed)])
    assert why.obstacles(found, TASK) == ["A tool failed at action 1. The agent did not get past it."]
    found = scored([FOUND, ("price_a", {"code": "K-777"}, 7), ("hold", {}, 1)])
    assert why.obstacles(found, TASK)[0].startswith(
        "A fallback branch had to be taken at action 3, in the way of order."
    )


def test_outcomes_are_told() -> None:
    """Each outcome has its sentence; a trap comes first."""
    (done,) = _verdicts(full_run(1))
    assert why.outcome(done) == "All must-milestones were reached, the run ended well, and the final output delivers."
    (part,) = _verdicts(ticket_run(1))
    assert why.outcome(part) == "1 of 5 must-milestones were reached."
    assert why.outcome(scored([("pay", {}, 1)])) == "The run did what it must not: paid_twice."
    for outcome in (*OUTCOMES, "running"):
        for milestones in ((), (milestone("a"),), (milestone("a", "missed"),)):
            told = why.outcome(plainly(record(outcome=outcome, milestones=milestones)))
            assert re.fullmatch(r"[A-Z0-9].*\.", told)


def _verdicts(steps: Any) -> list[dict[str, Any]]:
    driver = Driver(ticket_tasks())
    driver.feed(steps)
    return [plainly(found) for found in driver.close().values()]


def test_no_sentence_holds_anything_of_a_span() -> None:
    """Whatever stands in names, arguments, results and errors, no sentence repeats it."""
    nasty = f"<{SECRET}>"
    found = scored(
        [
            (nasty, {nasty: nasty}, RuntimeError(nasty)),
            ("search", {"sku": nasty}, {"ok": True, "item": {"sku": nasty, "price": nasty}}),
            ("ask_" + nasty, {"q": nasty}, RuntimeError(nasty)),
            ("order", {"x": nasty}, {"ok": nasty}),
            (nasty, {nasty: nasty}, RuntimeError(nasty)),
        ],
        output=nasty,
    )
    told = [*sentences(found).values(), *why.levels(found).values(), *why.obstacles(found, TASK), why.outcome(found)]
    assert SECRET in str(found["obstacles"])
    assert SECRET not in " ".join(told)


@pytest.mark.parametrize("with_steps", [False, True])
def test_a_run_whose_task_is_gone_is_told_all_the_same(with_steps: bool) -> None:
    """Without the task, or with one that has other milestones by now, sentences are shorter."""
    other = load_task_text("{task: shop, milestones: [{id: new, verify: {tool: search}}]}")
    found = scored([("price_a", {}, 7), ("search", {}, {"ok": False})])
    steps = found["steps"] if with_steps else None
    for task in (None, other):
        told = why.milestones(found, steps, task)
        assert told["price"].endswith("but before what it depends on, which must come first.")
        assert told["order"] == "Its condition did not hold."
        assert why.obstacles(found, task) is not None


def test_long_lists_of_names_are_cut_short() -> None:
    """A task with many ways to do one thing does not make a sentence of a page."""
    assert why._listed("abcdefgh", "or") == "a, b, c, d or 4 more"
    assert why._listed("abcde", "or") == "a, b, c, d or e"
    assert why._listed("", "or") == ""

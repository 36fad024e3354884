"""Check what one action after another does to a run: grounding, order, traps, obstacles, classes, loops."""

from __future__ import annotations

from typing import Any

import pytest

from reach_otel.engine.fold import NAME_CHARS_MAX, NAMES_SHOWN
from tests.support.folds import Folding
from tests.support.steps import Steps
from tests.support.tasks import chain, goal, task


def obstacles(folding: Folding) -> list[tuple[str, int, int]]:
    """Give kind, action and retries of each obstacle."""
    return [(o.kind, o.action, o.retries) for o in folding.fold.obstacles.all]


# Grounding


def test_a_made_up_value_is_fabricated() -> None:
    """A grounded value that nobody said before makes a finding, and keeps the call from its milestone."""
    folding = Folding(task(goal("find"), grounded=["sku"]), heard="Find SKU-1.")
    folding.call("find", {"sku": "SKU-9"}, {})
    assert folding.state("find") == ("passed", "fabricated", 1)
    assert folding.found() == [("fabricated", 1)]
    folding.call("find", {"sku": "SKU-1"}, {})
    assert folding.state("find") == ("reached", None, 2)


def test_constants_and_earlier_results_ground_a_value() -> None:
    """What the task itself names, and what a tool answered earlier, was not made up."""
    goals = [goal("find", verify={"tool": "find", "args": {"sku": "SKU-5"}}), goal("send")]
    folding = Folding(task(*goals, grounded=["sku"]), heard="Go.")
    folding.call("find", {"sku": "SKU-5"}, {"next": "SKU-6"})
    folding.call("send", {"sku": "SKU-6"}, {})
    assert folding.found() == []


def test_a_value_cannot_be_judged_before_anything_was_said() -> None:
    """Without any text or result a value is taken on trust, the next time too; then one can tell."""
    folding = Folding(task(goal("find"), grounded=["sku"]))
    folding.call("find", {"sku": "SKU-1"}, {"ok": 1})
    folding.call("find", {"sku": "SKU-1"}, {"ok": 2})
    folding.call("find", {"sku": "SKU-2"}, {"ok": 3})
    assert folding.found() == [("fabricated", 3)]


def test_an_echo_does_not_ground() -> None:
    """A value that came back from the call which invented it is still invented, and it takes no other value along."""
    folding = Folding(task(goal("find"), grounded=["*_id"]), heard="Go.")
    folding.call("find", {"user_id": "1"}, {"user_id": "1", "order_id": "ORD-1001"})
    folding.call("find", {"order_id": "ORD-1001"}, {})
    folding.call("find", {"user_id": "1"}, {})
    assert folding.found() == [("fabricated", 1), ("fabricated", 3)]


def test_grounding_of_one_milestone_is_its_own() -> None:
    """A name grounded by one milestone keeps a call from that one alone, also where the value has another name too."""
    goals = [goal("a", "act", grounded=["ref"]), goal("b", "act")]
    folding = Folding(task(*goals), heard="Go.")
    folding.call("act", {"ref": "R-1"}, {})
    assert folding.state("a") == ("passed", "fabricated", 1)
    assert folding.state("b") == ("reached", None, 1)
    both = Folding(task(*goals, grounded=["sku"]), heard="Go.")
    both.call("act", {"sku": "R-1", "ref": "R-1"}, {})
    assert both.state("b") == ("passed", "fabricated", 1)


def test_a_finding_shows_names_never_values() -> None:
    """The detail names a few arguments, cut to a length, and no value of theirs."""
    folding = Folding(task(goal("find"), grounded=["*"]), heard="Go.")
    folding.call(
        "find", {f"{'x' * 200}{n}": f"secret-{n}" for n in range(3)} | {f"id{n}": f"secret-{n}" for n in range(50)}
    )
    [finding] = folding.fold.findings
    assert "secret" not in finding.detail
    assert len(finding.detail) < NAMES_SHOWN * (NAME_CHARS_MAX + 2) + 40


# Milestones and traps


def test_milestones_of_one_call_may_depend_on_one_another() -> None:
    """One call may hold several milestones, whatever their declared order."""
    goals = [goal("late", "act", after=["early"]), goal("early", "act")]
    folding = Folding(task(*goals))
    folding.call("act", {}, {})
    assert [folding.state(m)[0] for m in ("late", "early")] == ["reached", "reached"]


def test_order_any_drops_the_rule_of_order() -> None:
    """With ``order: any`` a milestone holds whatever held before."""
    folding = Folding(task(*chain("a", "b"), order="any"))
    folding.call("b", {}, {})
    assert folding.state("b") == ("reached", None, 1)


def test_beyond_the_cap_nothing_but_cut_off_is_noted() -> None:
    """Beyond k a milestone that would have held is cut off; one that would not stays missed."""
    goals = [goal("a"), goal("b", required=["ref"]), goal("c", after=["b"])]
    folding = Folding(task(*goals, k=1))
    for tool in ("x", "a", "b", "c"):
        folding.call(tool, {}, {})
    assert [folding.state(m)[:2] for m in "abc"] == [("passed", "cut_off"), ("missed", None), ("missed", None)]
    assert folding.found() == [("stuck", 2)]


def test_a_trap_springs_once() -> None:
    """A trap is hit by the first action that meets it, also beyond k."""
    folding = Folding(task(goal("a"), k=1, traps=[{"id": "t", "verify": {"tool": "refund"}}]))
    for tool in ("a", "refund", "refund"):
        folding.call(tool, {}, {})
    assert [(t.index, t.n) for t in folding.fold.traps] == [(0, 2)]


def test_a_guarded_trap_rests_once_its_milestones_are_reached() -> None:
    """``when_not_reached``: a trap until all of these are reached, the action itself included."""
    traps = [{"id": "t", "when_not_reached": ["a", "b"], "verify": {"tool": "b"}}]
    calm, caught = (Folding(task(goal("a"), goal("b"), traps=traps)) for _ in range(2))
    for tool in ("a", "b"):
        calm.call(tool, {}, {})
    caught.call("b", {}, {})
    assert (len(calm.fold.traps), len(caught.fold.traps)) == (0, 1)


def test_conditions_see_the_run_before_the_step() -> None:
    """``run`` in a condition is the run so far, without the step that is judged."""
    goals = [goal("a"), goal("again", verify={"tool": "a", "when": "'a' in run.held && run.actions == 2"})]
    folding = Folding(task(*goals))
    folding.call("a", {}, {})
    assert folding.state("again")[0] == "missed"
    folding.call("a", {}, {})
    assert folding.state("again") == ("reached", None, 2)


def test_what_was_said_may_meet_a_condition() -> None:
    """A text of an agent or model holds milestones whose condition names no tool, at the number of actions so far."""
    goals = [goal("said", verify={"when": "tool == null && text.contains('sorry') && agent == 'bot'"})]
    folding = Folding(task(*goals))
    folding.call("x", {}, {})
    folding.fold.hear(Steps().agent("", 4, 5, output="So sorry."), "bot")
    assert folding.state("said") == ("reached", None, 1)


def test_faults_of_conditions_are_noted() -> None:
    """A condition that cannot be computed does not hold, and says so."""
    folding = Folding(task(goal("a", verify={"tool": "a", "when": "result.n > 'x'"})))
    folding.call("a", {}, {"n": 1})
    assert (folding.state("a")[0], folding.fold.faults) == ("missed", ["cel"])


def test_steps_of_no_interest_cost_no_condition() -> None:
    """A tool that no milestone and no trap looks at asks nothing of any condition."""
    folding = Folding(task(goal("a", verify={"tool": "a", "when": "result.n > 'x'"})))
    assert folding.call("b", {}, {"n": 1}).klass == "off_task"
    assert folding.fold.faults == []


# Obstacles


@pytest.mark.parametrize(
    ("result", "more", "kind"),
    [
        ({"ref": None}, {}, "bad_data"),
        ({"ref": 1, "truncated": True}, {}, "bad_data"),
        ({"ref": 1, "truncated": "no"}, {}, None),
        ({"ref": 1}, {"cut": True}, "bad_data"),
        ("<html>", {}, "bad_data"),
        ({"ref": 1}, {"error": "boom"}, "error"),
        ({"ref": 1}, {"ticks": 30}, "slow"),
        ({"ref": 1}, {"ticks": 30, "derived": True}, None),
        ({"ref": 1}, {}, None),
    ],
)
def test_what_opens_an_obstacle(result: Any, more: dict[str, Any], kind: str | None) -> None:
    """A failure, bad data or a slow call stands in the way; derived calls have no duration to be slow with."""
    folding = Folding(task(goal("find", required=["ref"]), baselines={"find": 0.02}))
    folding.call("find", {"n": 0}, {"ref": 0})
    folding.call("find", {"n": 1}, result, **more)
    assert [k for k, _, _ in obstacles(folding)] == ([kind] if kind else [])


def test_content_that_was_not_captured_is_no_bad_data() -> None:
    """A required field in a result that nobody captured is not the tool's fault."""
    folding = Folding(task(goal("find", required=["ref"])))
    folding.call("find", {})
    assert (folding.state("find"), obstacles(folding)) == (("passed", "no_content", 1), [])


def test_retries_beyond_the_cap_are_stuck() -> None:
    """Failing calls beyond the cap are stuck, told once an obstacle; a success closes it."""
    folding = Folding(task(goal("find"), retry_cap=1))
    made = [folding.call("find", {"n": n}, error="down") for n in range(4)]
    assert [a.klass for a in made] == ["effective", "effective", "stuck", "stuck"]
    assert [a.retry for a in made] == [False, True, True, True]
    assert folding.found() == [("stuck", 3)]
    folding.call("find", {"n": 9}, {})
    folding.call("find", {"n": 10}, error="down")
    assert obstacles(folding) == [("error", 1, 3), ("error", 6, 0)]


def test_the_blocked_milestone_is_the_first_not_reached() -> None:
    """An obstacle blocks the shallowest milestone of its tool that is not reached yet."""
    folding = Folding(task(goal("a", "act"), goal("b", verify={"tool": "act", "args": {"n": 2}}, after=["a"])))
    folding.call("act", {"n": 1}, {})
    folding.call("act", {"n": 1}, error="down")
    assert folding.fold.obstacles.all[0].milestone == 1


# Classes, loops and texts that report errors


def test_the_first_class_that_applies_counts() -> None:
    """off_task goes before repeat, repeat before stuck, stuck before cut_off."""
    folding = Folding(task(goal("find"), retry_cap=0, k=3))
    made = [
        folding.call("other", {}, 1),
        folding.call("find", {}, error="e"),
        folding.call("find", {"n": 1}, error="e"),
    ]
    made += [folding.call("find", {"n": 1}, error="e"), folding.call("find", {"n": 2}, error="e")]
    assert [a.klass for a in made] == ["off_task", "effective", "stuck", "repeat", "cut_off"]
    assert folding.fold.classes == {"effective": 1, "off_task": 1, "repeat": 1, "stuck": 1, "cut_off": 1}


def test_a_run_of_no_task_has_no_cap_and_no_off_task() -> None:
    """Without a task loops and errors are seen, and nothing else is asked."""
    folding = Folding(None)
    made = [folding.call("find", {"n": n}, n) for n in range(20)]
    assert {a.klass for a in made} == {"effective"}
    for _ in range(3):
        folding.call("find", {}, {})
    assert folding.found() == [("loop", 23), ("stuck", 23)]


def test_something_new_ends_a_loop() -> None:
    """A milestone that newly holds starts another stretch, of which its own action is the first."""
    folding = Folding(task(goal("a"), goal("b")))
    for tool in ("a", "a", "b", "a", "a"):
        folding.call(tool, {}, {})
    assert folding.found() == []
    folding.call("a", {}, {})
    assert folding.found() == [("loop", 6), ("stuck", 6)]


def test_the_task_says_which_texts_are_errors() -> None:
    """``error_when`` takes the place of the usual patterns, for text results of calls that did not fail otherwise."""
    folding = Folding(task(goal("find"), error_when=["(?i)no luck"]))
    failed = folding.call("find", {}, "No luck today\nmore")
    assert (failed.ok, failed.error, failed.by_text) == (False, "No luck today", True)
    spared = folding.call("find", {"n": 2}, "Error: no such thing", by_text=True)
    assert (spared.ok, spared.error) == (True, None)

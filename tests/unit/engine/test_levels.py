"""Check every reason of every level, and which one is the break point."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.engines import verdict
from tests.support.steps import Steps, call
from tests.support.tasks import chain, goal, task


class Story:
    """Tell a run call by call."""

    def __init__(self) -> None:
        self.steps = Steps()
        self.now = 1

    def call(self, tool: str, args: Any = None, result: Any = None, error: str | None = None) -> Story:
        outcome: dict[str, Any] = {"result": {"ok": 1} if result is None else result} if error is None else {}
        self.steps.tool(tool, self.now, self.now + 1, parent="root", args=args or {}, error=error, **outcome)
        self.now += 2
        return self

    def asks(self, tool: str) -> Story:
        """Let the model ask for a tool that does not exist."""
        self.steps.model(self.now, self.now + 1, parent="root", calls=(call(tool, "c", {}),))
        self.now += 2
        return self

    def ends(self, output: str | None = "All done, REF-1234.", user: str = "Go on.") -> Story:
        self.steps.agent("bot", 0, self.now, span_id="root", user=user, output=output)
        return self


def told(*calls: tuple[Any, ...], **end: Any) -> Story:
    story = Story()
    for each in calls:
        story.call(*each)
    return story.ends(**end)


FIND = goal("find")
USED = goal("find", used=True)
REFUSED = "Access denied for user"

CASES: list[tuple[str, str | None, dict[str, Any], Story]] = [
    # intent
    ("L0", None, {}, told(("find",))),
    ("L0", "no_action", {}, told()),
    ("L0", "intent_missed", {}, told(("other",))),
    ("L0", None, {"intent": {"mentions": ["Ticket", "find"]}}, told(("find", {"what": "TICKET 1"}))),
    ("L0", None, {"intent": {"mentions": ["ticket"]}}, told(("find",), output="Your ticket is closed.")),
    ("L0", "intent_missed", {"intent": {"mentions": ["ticket"]}}, told(("find",))),
    ("L0", "no_action", {"intent": {"mentions": ["ticket"]}}, told(output=None)),
    ("L0", "intent_missed", {"intent": {"mentions": ["late"]}}, told(*[("find",)] * 3, ("find", {"note": "late"}))),
    # resource
    ("L1", None, {}, told(("find", {}, None, "boom"))),
    ("L1", "never_tried", {}, told()),
    ("L1", "wrong_tool", {}, told(("other",))),
    ("L1", "tool_not_found", {}, Story().asks("fly").ends()),
    # action
    ("L2", None, {}, told()),
    ("L2", None, {}, told(("find", {}, None, "boom"), ("find",))),
    ("L2", "tool_error", {}, told(("find", {}, None, "boom"))),
    ("L2", "permission", {}, told(("find", {}, None, "HTTP 403 for you"))),
    ("L2", "timeout", {}, told(("find", {}, None, "Deadline exceeded"))),
    ("L2", "bad_args", {}, told(("find", {}, None, "Invalid value for n"))),
    ("L2", "fabricated", {"grounded": ["sku"]}, told(("find", {"sku": "S-9"}))),
    ("L2", None, {"grounded": ["sku"]}, told(("find", {"sku": "S-9"}), ("find", {"sku": "Go"}))),
    # result
    ("L3", None, {}, told(("find",))),
    ("L3", "missing_field", {"milestones": [goal("find", required=["ref"])]}, told(("find",))),
    ("L3", "unused", {"milestones": [USED]}, told(("find", {}, {"ref": "REF-99"}))),
    ("L3", "unused", {"milestones": [USED, goal("send")]}, told(("find", {}, {"ref": "REF-99"}), ("send",))),
    ("L3", "out_of_order", {"milestones": chain("a", "b")}, told(("b",), ("a",))),
    ("L3", "stuck", {"retry_cap": 0}, told(*[("find", {}, None, "boom")] * 2)),
    ("L3", "gave_up", {}, told(("find", {}, None, "boom"))),
    ("L3", "ignored_result", {}, told(("find", {}, None, "boom"), ("other",))),
    ("L3", "gave_up", {}, told(("other",))),
    # delivery
    ("L4", None, {}, told(("find",))),
    ("L4", "no_output", {}, told(("find",), output=None)),
    ("L4", None, {"delivery": {"required": False}}, told(("find",), output=None)),
    ("L4", "hallucinated_success", {"delivery": {"claims_success": ["(?i)done"]}}, told(("other",))),
    ("L4", None, {"delivery": {"claims_success": ["(?i)done"]}}, told(("find",))),
    ("L4", "incomplete", {"delivery": {"contains_results_of": ["find"]}}, told(("find", {}, {"ref": "REF-99"}))),
    ("L4", None, {"delivery": {"contains_results_of": ["find"]}}, told(("find", {}, {"ref": "REF-1234"}))),
    ("L4", "incomplete", {"delivery": {"contains_results_of": ["find"]}}, told(("other",))),
    ("L4", "error_as_answer", {}, told(("find", {}, None, REFUSED), output=f"Sorry: {REFUSED}.")),
    ("L4", None, {}, told(("find", {}, None, "boom"), output="It said boom.")),
]


@pytest.mark.parametrize(
    ("level", "reason", "more", "story"), CASES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_each_level_passes_or_says_why(level: str, reason: str | None, more: dict[str, Any], story: Story) -> None:
    """A level fails for one of its own reasons, whatever the others say."""
    goals = more.get("milestones", [FIND])
    record = verdict(
        task(*goals, **{k: v for k, v in more.items() if k != "milestones"}, match={"agent": "bot"}), story.steps.made
    )
    assert record["levels"][level] == {"passed": reason is None, "reason": reason}


def test_a_result_that_was_not_captured_counts_as_unused() -> None:
    """L3 cannot tell of a use; the milestone says that there was no content."""
    steps = Steps()
    steps.tool("find", 1, 2, parent="root", args={})
    steps.agent("bot", 0, 3, span_id="root", output="done")
    record = verdict(task(USED), steps.made)
    assert (record["milestones"][0]["reason"], record["levels"]["L3"]["reason"]) == ("no_content", "unused")


def test_nothing_captured_is_no_missing_output() -> None:
    """Where no content was captured at all, the missing output is not the agent's."""
    steps = Steps()
    steps.tool("find", 1, 2, parent="root")
    steps.agent("bot", 0, 3, span_id="root")
    record = verdict(task(FIND), steps.made)
    assert (record["content"], record["levels"]["L4"]["passed"], record["outcome"]) == ("missing", True, "success")


def test_the_break_point_is_the_first_level_that_fails() -> None:
    """L1 goes before L3; a run where all pass has none."""
    broken = verdict(task(FIND, match={"agent": "bot"}), told(("other",)).steps.made)
    assert broken["break_point"] == {"level": "L0", "reason": "intent_missed"}
    half = verdict(task(FIND, goal("send"), match={"agent": "bot"}), told(("find",)).steps.made)
    assert half["break_point"] == {"level": "L1", "reason": "never_tried"}
    assert verdict(task(FIND), told(("find",)).steps.made)["break_point"] is None

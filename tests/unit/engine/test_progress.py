"""Check when a milestone holds, goes by, is reached, and what counts as a use of its result."""

from __future__ import annotations

from typing import Any

import pytest

from reach_otel.engine.action import Action
from reach_otel.engine.progress import NOTHING, Mark, use_of
from reach_otel.engine.sources import Sources
from tests.support.folds import ABSENT, Folding
from tests.support.tasks import chain, goal, task


def looked_up(result: Any, *, args: Any = None) -> Action:
    return Action(
        kind="tool",
        span_id="s",
        start_ns=10,
        end_ns=20,
        tool="find",
        args=args,
        has_args=args is not None,
        result=None if result is ABSENT else result,
        has_result=result is not ABSENT,
    )


@pytest.mark.parametrize(
    ("args", "used"),
    [
        ({"ref": "REF-1234"}, True),
        ({"any": {"depth": ["REF-1234"]}}, True),
        ({"note": "please see REF-1234, thanks"}, True),
        ({"note": "REF-12345"}, False),
        ({"count": 7}, True),
        ({"other": 7}, False),
        ({"address": "to 12 Main Street"}, True),
        ({"address": "Main Street 12"}, False),
        ({"sku": "SKU-1"}, False),
        (ABSENT, False),
    ],
)
def test_a_result_is_used_by_a_later_argument(args: Any, used: bool) -> None:
    """A new value counts anywhere as a whole, a trivial one under its own key, one that was known before not at all."""
    folding = Folding(task(goal("find", used=True)), heard="About SKU-1.")
    folding.call("find", {}, {"ref": "REF-1234", "count": 7, "address": "12 Main Street", "sku": "SKU-1"})
    assert folding.state("find") == ("passed", "unused", 1)
    folding.call("send", args, {})
    assert folding.state("find") == (("reached", None, 1) if used else ("passed", "unused", 1))


def test_a_call_under_way_cannot_have_used_the_result() -> None:
    """Only a call that starts after the result was there makes use of it."""
    folding = Folding(task(goal("find", used=True)))
    folding.call("find", {}, {"ref": "REF-1234"})
    folding.now -= 1
    folding.call("send", {"ref": "REF-1234"}, {})
    assert folding.state("find") == ("passed", "unused", 1)


def test_the_final_output_uses_words_and_phrases_only() -> None:
    """A trivial value in the output proves nothing; a new word does."""
    folding = Folding(task(goal("find", used=True)))
    folding.call("find", {}, {"ref": "REF-1234", "count": 7})
    progress = folding.fold.progress.copy()
    progress.use_in_output("There are 7.", Mark(1, 0, ""))
    assert progress.uses
    progress.use_in_output("It is REF-1234.", Mark(1, 0, ""))
    assert progress.reached == [True]
    assert folding.fold.progress.reached == [False]


def test_what_the_caller_said_is_nothing_new() -> None:
    """Values of the call's own arguments, also inside a longer text, are no proof of use."""
    use = use_of(
        looked_up({"ref": 1234, "at": "A-17", "n": 5}, args={"note": "about 1234, as asked", "n": 5}), Sources()
    )
    assert (use.words, use.pairs) == (frozenset({"A-17"}), frozenset())


def test_ids_within_a_longer_text_count() -> None:
    """Of a longer text the whole counts, and those of its tokens that hold a digit."""
    use = use_of(looked_up({"note": "moved to bay B12 by Ann"}), Sources())
    assert (use.words, use.phrases) == (frozenset({"B12"}), ("moved to bay B12 by Ann",))


def test_a_result_that_was_not_captured_cannot_be_used() -> None:
    """Such a milestone stays passed, and says why."""
    assert use_of(looked_up(ABSENT), Sources()) is NOTHING
    folding = Folding(task(goal("find", used=True)))
    folding.call("find", {})
    folding.call("send", {"ref": "x-1"}, {})
    assert folding.state("find") == ("passed", "no_content", 1)


def test_one_of_each_group_of_dependencies_is_enough() -> None:
    """``depends_on`` is an AND of ORs."""
    goals = [goal("a"), goal("b"), goal("c"), goal("end", after=["a", {"any": ["b", "c"]}])]
    folding = Folding(task(*goals))
    for tool in ("c", "end", "a", "end"):
        folding.call(tool, {}, {})
    assert folding.state("end") == ("reached", None, 4)
    assert folding.state("b") == ("missed", None, None)


def test_the_latest_reason_and_the_first_place_count() -> None:
    """A milestone that went by twice says where first and why last."""
    goals = [*chain("a", "b")]
    goals[1]["required"] = ["ref"]
    folding = Folding(task(*goals))
    folding.call("b", {}, {})
    folding.call("a", {}, {})
    folding.call("b", {}, {})
    assert folding.state("b") == ("passed", "missing_field", 1)


def test_sums_follow_what_is_reached() -> None:
    """Counts and weights of reached must-milestones are kept up, the deepest layer apart."""
    folding = Folding(task(*chain("a", "b"), goal("extra", type="optional")))
    for tool in ("a", "extra", "b"):
        folding.call(tool, {}, {})
    progress = folding.fold.progress
    assert (progress.reached_must, progress.reached_weight, progress.reached_deepest) == (2, 3.0, 1)


def test_a_fallback_taken_with_nothing_in_the_way_is_an_obstacle() -> None:
    """A forced branch opens an obstacle of its own, unless an undigested one explains it."""
    goals = [goal("a"), goal("plan_b", type="fallback", covers="a")]
    calm = Folding(task(*goals))
    calm.call("plan_b", {}, {})
    [obstacle] = calm.fold.obstacles.all
    assert (obstacle.kind, obstacle.tool, obstacle.milestone, obstacle.action) == ("fallback", "plan_b", 0, 1)
    rough = Folding(task(*goals))
    rough.call("a", {}, error="down")
    rough.call("plan_b", {}, {})
    assert [o.kind for o in rough.fold.obstacles.all] == ["error"]

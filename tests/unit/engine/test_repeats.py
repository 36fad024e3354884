"""Check which calls are repeats and what is a loop."""

from __future__ import annotations

from typing import Any

from reach_otel.engine.action import Action
from reach_otel.engine.repeats import Repeats, encode

ABSENT: Any = object()


def action(args: Any = ABSENT, result: Any = ABSENT, *, tool: str = "find", error: str | None = None) -> Action:
    return Action(
        kind="tool",
        span_id="s",
        start_ns=0,
        end_ns=1,
        tool=tool,
        args=None if args is ABSENT else args,
        has_args=args is not ABSENT,
        result=None if result is ABSENT else result,
        has_result=result is not ABSENT,
        ok=error is None,
        error=error,
    )


def test_the_latest_like_call_over_again_is_a_repeat() -> None:
    """Same tool, arguments in any order and answer; a poll whose answer changed is none, nor is one back again."""
    repeats = Repeats(None)
    told = [({"a": 1, "b": 2}, 1), ({"b": 2, "a": 1}, 1), ({"a": 1, "b": 2}, 2), ({"a": 1, "b": 2}, 1), ({"a": 3}, 1)]
    assert [repeats.repeats(action(*each)) for each in told] == [False, True, False, False, False]


def test_failures_compare_by_their_error() -> None:
    """A failing call is repeated when it fails in the same way."""
    repeats = Repeats(None)
    assert not repeats.repeats(action({}, error="not found"))
    assert repeats.repeats(action({}, error="not found"))
    assert not repeats.repeats(action({}, error="timed out"))


def test_what_was_not_captured_is_like_nothing() -> None:
    """Calls with no known arguments or answer are neither repeats nor a loop."""
    repeats = Repeats(None)
    for bare in (action(), action({}), action(result=1)) * 4:
        assert not repeats.repeats(bare)
        assert not repeats.loops()


def test_the_third_of_its_like_closes_a_loop_once() -> None:
    """Three in one stretch are a loop, told once; something new starts another stretch."""
    repeats = Repeats(None)

    def loops(times: int) -> list[bool]:
        return [(repeats.repeats(action({}, 1)), repeats.loops())[1] for _ in range(times)]

    assert loops(4) == [False, False, True, False]
    repeats.start_stretch()
    assert loops(3) == [False, False, True]


def test_a_cycle_is_a_loop() -> None:
    """Calls that take turns are found by the count of each."""
    repeats = Repeats(None)
    found = [(repeats.repeats(action({}, 1, tool=tool)), repeats.loops())[1] for tool in "abcabca"]
    assert found == [False] * 6 + [True]


def test_free_text_counts_for_repeats_only() -> None:
    """The same in other words is a loop, yet no repeat."""
    repeats = Repeats(lambda name: name == "note")
    calls = [action({"id": 1, "in": {"note": word}}, "no") for word in ("a", "b", "c")]
    assert [(repeats.repeats(c), repeats.loops()) for c in calls] == [(False, False), (False, False), (False, True)]


def test_any_value_can_be_compared() -> None:
    """What is no JSON is spelled too, equal for equal values."""
    for value in ({"text": "\ud800"}, {1: "a", "b": 2}, {"s": {1, 2}}, [float("nan")]):
        assert encode(value) == encode(value)
    assert encode({"a": 1, "b": 2}) == encode({"b": 2, "a": 1})

"""Check what a verdict says beside the record, and which runs get none because a part of them is missing."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest

from reach_otel.engine import Counted, Engine, Limits, ModelCall, Root, RunClosed, RunDropped
from reach_otel.span import Step
from reach_otel.task import Tasks
from tests.support.steps import TICK_NS, Steps, at, trace_id

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reach_otel.engine import Event


def told(
    steps: Iterable[Step], *, since_ns: int | None = None, listen_ns: int | None = None, **limits: Any
) -> list[Event]:
    """Feed steps one by one, end the input, and give what was said at the end."""
    engine = Engine(Tasks(), Limits(**limits), since_ns=since_ns)
    if listen_ns is not None:
        engine.listen(listen_ns)
    events: list[Event] = []
    for step in steps:
        events += engine.feed([step], 0)
    return [e for e in (*events, *engine.close(0)) if isinstance(e, RunClosed | RunDropped | Counted)]


def closed(steps: Iterable[Step], **limits: Any) -> RunClosed:
    [event] = told(steps, **limits)
    assert isinstance(event, RunClosed)
    return event


# The root


def test_the_root_is_the_outermost_agent_that_ended_last() -> None:
    """Not an inner one, nor the request around it; one under a span that was never seen only if there is no other."""
    steps = Steps()
    steps.agent("worker", 2, 3, parent="boss", span_id="inner")
    steps.agent("first", 0, 1, parent="web")
    steps.agent("boss", 1, 4, parent="web", span_id="boss", ok=False, error="broke", sampled=True)
    steps.add("other", 0, 5, span_id="web", sampled=False)
    steps.agent("stray", 5, 9, parent="never seen")
    for order in permutations(steps.made):
        assert closed(order).root == Root(trace_id(1), "boss", at(1), at(4), ok=False, error="broke", sampled=True)


def test_without_an_agent_the_root_is_the_earliest_top_span() -> None:
    """Be that a step or a span of no interest; without any there is no root."""
    steps = Steps()
    steps.tool("find", 1, 2, parent="job")
    steps.tool("check", 4, 6, span_id="top")
    steps.add("other", 3, 7, span_id="later", parent="elsewhere", parent_remote=True, sampled=True)
    for order in permutations(steps.made):
        found = closed(order).root
        assert found == Root(trace_id(1), "later", at(3), at(7), ok=True, error=None, sampled=True)
    steps.tool("ask", 0, 1, span_id="first", error="no")
    for order in permutations(steps.made):
        found = closed(order).root
        assert found == Root(trace_id(1), "first", at(0), at(1), ok=False, error="no", sampled=None)
    assert closed(steps.made[:1]).root is None


@pytest.mark.parametrize("hot", [1, 9])
def test_a_root_that_is_no_step_tells_how_it_failed(hot: int) -> None:
    """Be it a request or a chain; also after a rest, and where two parts of a run turn out to be one."""
    steps = Steps()
    steps.tool("find", 1, 2, parent="web", conversation_id="c")
    steps.add("other", 0, 9, span_id="web", ok=False, error="Request timed out.", output="text")
    for order in permutations(steps.made):
        events = told([*order, Steps(2).tool("find", 0, 1)], hot_runs_max=hot, run_scope="conversation")
        [event] = [e for e in events if isinstance(e, RunClosed) and e.record.run == "c"]
        assert event.root is not None
        assert (event.root.span_id, event.root.ok, event.root.error) == ("web", False, "Request timed out.")


def test_the_root_of_a_run_of_several_traces_names_its_own() -> None:
    """The ids are as they were sent."""
    first, second = Steps(1), Steps(2)
    first.agent("bot", 0, 2, conversation_id="c")
    second.agent("bot", 3, 4, conversation_id="c", span_id="last")
    root = closed([*first.made, *second.made], run_scope="conversation").root
    assert root is not None
    assert (root.trace_id, root.span_id) == (trace_id(2), "last")


def test_a_span_above_a_run_is_not_its_root() -> None:
    """With several runs in a trace, what stands above them belongs to none: neither as a root nor by what it masked."""
    steps = Steps()
    steps.tool("find", 1, 2, span_id="tool", parent="middle")
    steps.agent("one", 0, 2, span_id="one", parent="web")
    steps.add("other", 0, 9, span_id="web", masked=7)
    events = [e for e in told(steps.made, run_scope="agent") if isinstance(e, RunClosed)]
    assert {e.record.run: e.root and e.root.span_id for e in events} == {
        f"{trace_id(1)}-one": "one",
        f"{trace_id(1)}-middle": None,
    }
    assert [e.masked for e in events] == [(), ()]


# Models and masked values


def test_model_calls_are_told_with_their_errors() -> None:
    """Agent as the step names it, seconds, and what went wrong."""
    steps = Steps()
    steps.model(0, 3, agent="bot", ok=False, error="timed out")
    steps.model(3, 4)
    assert closed(steps.made).models == (
        ModelCall("bot", 0.03, ok=False, error="timed out"),
        ModelCall(None, 0.01, ok=True, error=None),
    )


def test_a_model_call_that_two_spans_report_is_one() -> None:
    """A framework's span around the SDK's is left out, with or without tokens; calls beside each other all count."""
    steps = Steps()
    steps.model(2, 9, parent="chain", span_id="sdk", agent="bot", ok=False, error="timed out")
    steps.model(1, 10, parent="root", span_id="framework", ok=False, error="timed out")
    steps.add("other", 2, 9, parent="framework", span_id="chain")
    steps.model(10, 12, parent="root")
    steps.agent("bot", 0, 13, span_id="root")
    for order in permutations(steps.made):
        assert sorted(closed(order).models, key=lambda call: call.ok) == [
            ModelCall("bot", 0.07, ok=False, error="timed out"),
            ModelCall(None, 0.02, ok=True, error=None),
        ]


def masking() -> list[Step]:
    steps = Steps()
    model = steps.model(0, 1, parent="root", masked=2)
    steps.add("content", 1, 1, parent=model.span_id, span_id=f"{model.span_id}#1", masked=3, output="hi")
    steps.tool("find", 2, 3, parent="root", masked=5)
    steps.tool("find", 3, 4, parent="root", args={"n": 1}, masked=7)
    steps.add("other", 1, 2, parent="root", masked=11)
    steps.agent("bot", 0, 5, span_id="root", masked=0)
    steps.add("other", 0, 6, span_id="web", masked=13)
    return steps.made


@pytest.mark.parametrize("hot", [1, 9])
def test_masked_values_are_added_up_by_kind(hot: int) -> None:
    """Texts that came in log records count with their model call; equal spans once; at rest nothing is forgotten."""
    others = [Steps(n).tool("find", 0, 1) for n in (2, 3)]
    expected = (("model", 5), ("other", 24), ("tool", 12))
    for steps in (masking(), masking()[::-1]):
        events = told([*steps[:4], *others, *steps[2:], *steps], hot_runs_max=hot)
        [event] = [e for e in events if isinstance(e, RunClosed) and e.record.run == trace_id(1)]
        assert event.masked == expected
        assert event.root is not None
        assert event.root.span_id == "root"


def test_masked_values_of_runs_that_are_one_are_added_up() -> None:
    """What two traces of a conversation hold is one sum, also where the conversation is named last."""
    first, second = Steps(1), Steps(2)
    first.add("other", 0, 2, span_id="web", masked=1)
    first.tool("find", 0, 1, parent="web", masked=2)
    second.tool("find", 3, 4, conversation_id="c", masked=4)
    first.agent("bot", 0, 1, parent="web", conversation_id="c", masked=8)
    for order in ([0, 1, 2, 3], [1, 0, 3, 2], [3, 2, 1, 0]):
        steps = [[*first.made, *second.made][n] for n in order]
        [event] = [e for e in told(steps, run_scope="conversation") if isinstance(e, RunClosed)]
        assert event.masked == (("agent", 8), ("other", 1), ("tool", 6)), order


# Runs of which a part is elsewhere


def run_of(start: int, end: int, *, root: bool = True, around: tuple[int, int] | None = None) -> list[Step]:
    steps = Steps()
    steps.tool("find", start + 1, start + 2, parent="root", args={"n": 1}, result=1)
    steps.tool("find", end - 2, end - 1, parent="root", args={"n": 2}, result=2)
    if root:
        steps.agent("bot", start, end, span_id="root", parent="web" if around else None, output="done")
    if around:
        steps.add("other", *around, span_id="web")
    return steps.made


INCOMPLETE = [RunDropped(trace_id(1)), Counted("incomplete", "began_before")]


@pytest.mark.parametrize(
    ("steps", "since", "is_scored"),
    [
        (run_of(0, 20), 0, True),  # began with the scorer
        (run_of(0, 20), 1, False),
        (run_of(0, 20), 20, False),  # ended as it began
        (run_of(0, 20), 21, True),  # a record of the past
        (run_of(0, 20)[1:], 1, False),  # the first call went elsewhere
        (run_of(0, 20)[2:], 10, False),  # all but the root did
        (run_of(0, 20, root=False), 10, False),  # no end was seen
        (run_of(0, 20, root=False), 20, True),
        (run_of(0, 20, root=False)[1:], 18, True),  # by all that has been seen it began with the scorer
        (run_of(5, 20, around=(0, 30)), 3, False),  # an agent of the same request may have ended before
        (run_of(5, 20, around=(0, 30)), 25, False),  # another may have been under way
        (run_of(5, 20, around=(0, 30)), 31, True),
    ],
)
@pytest.mark.parametrize("hot", [1, 9])
def test_a_run_that_was_under_way_at_the_start_is_counted_and_dropped(
    steps: list[Step], since: int, is_scored: bool, hot: int
) -> None:
    """Whatever the order in which its spans come; and a recorded run, that had ended by then, is scored as ever."""
    for order in permutations(steps):
        other = Steps(2).agent("bot", 90, 99)
        events = told([*order, other], since_ns=at(since), hot_runs_max=hot, parent_wait_seconds=0)
        if is_scored:
            assert {e.record.run for e in events if isinstance(e, RunClosed)} == {trace_id(1), trace_id(2)}
            assert len(events) == 2
        else:
            assert events[:2] == INCOMPLETE
            assert [e.record.run for e in events[2:] if isinstance(e, RunClosed)] == [trace_id(2)]


def test_a_replay_knows_no_start() -> None:
    """Without a time, everything is scored."""
    assert isinstance(told(run_of(0, 20)[2:])[0], RunClosed)
    assert isinstance(told(run_of(0, 20, root=False))[0], RunClosed)


def inner(start: int, end: int, *, ends: bool = True) -> list[Step]:
    """Make a call of an inner agent, which ends or does not, and whose outer agent is never seen."""
    steps = Steps()
    steps.tool("find", start, start + 1, parent="inner")
    if ends:
        steps.agent("inner", start, end, span_id="inner", parent="outer", output="done")
    return steps.made


@pytest.mark.parametrize(
    ("steps", "since", "reason"),
    [
        (inner(10, 20), 5, "no_root"),  # what is above it may have begun before
        (inner(10, 20), 1, "no_root"),
        (inner(10, 20), 0, None),  # ten ticks of waiting are over
        (inner(10, 20), 10, "no_root"),  # began with the scorer
        (inner(10, 20), 20, "began_before"),
        (inner(10, 20), 21, None),  # a record of the past
        (inner(10, 20, ends=False), 5, "no_root"),  # no agent of it ended
        (inner(10, 20, ends=False), 0, None),
        (run_of(10, 20), 5, None),  # its root was seen
        (run_of(10, 20, around=(9, 30)), 5, None),
    ],
)
@pytest.mark.parametrize("hot", [1, 9])
@pytest.mark.parametrize("scope", ["trace", "agent"])
def test_a_run_without_a_root_is_not_known_to_be_whole_at_first(
    steps: list[Step], since: int, reason: str | None, hot: int, scope: str
) -> None:
    """For as long as runs wait for a parent; later on, where roots are never sent, such runs have their scores."""
    for order in permutations(steps):
        events = told(
            [*order, Steps(2).agent("bot", 90, 99)],
            since_ns=at(since),
            hot_runs_max=hot,
            run_scope=scope,
            parent_wait_seconds=10 * TICK_NS / 1e9,
        )
        counted = [e for e in events if isinstance(e, Counted)]
        assert counted == ([Counted("incomplete", reason)] if reason else [])
        assert len([e for e in events if isinstance(e, RunClosed)]) == (1 if reason else 2)


def test_a_part_of_a_run_is_dropped_whenever_its_root_comes() -> None:
    """A scorer that joins gets an inner agent, then nothing for longer than it waits: how long decides nothing."""
    steps = Steps()
    part = inner(110, 112)
    outer = steps.agent("outer", 10, 200, span_id="outer")
    for wait in (0, 40):
        engine = Engine(Tasks(), since_ns=at(100))
        events = engine.feed(part, 0)
        events += engine.tick(wait * 10**9)
        events += engine.feed([outer], wait * 10**9)
        events += engine.close(wait * 10**9)
        assert not [e for e in events if isinstance(e, RunClosed)]
        assert [e.reason for e in events if isinstance(e, Counted)] == (
            ["no_root", "verdict"] if wait else ["began_before"]
        )


@pytest.mark.parametrize(
    ("steps", "since", "is_scored"),
    [
        (run_of(5, 20, around=(0, 30)), 3, True),  # all that was done began with the scorer
        (run_of(5, 20, around=(0, 30)), 6, False),
        (run_of(5, 20, around=(0, 30)), 25, True),  # only the span around it was left open
        (run_of(0, 20)[1:], 1, False),
        (inner(10, 20), 5, True),  # the span above may be a notebook
        (inner(10, 20, ends=False), 5, True),
        (inner(10, 20), 11, False),
    ],
)
@pytest.mark.parametrize("hot", [1, 9])
def test_in_a_process_only_steps_tell_what_was_under_way(
    steps: list[Step], since: int, is_scored: bool, hot: int
) -> None:
    """A program, notebook or request that was open when it began to listen does not keep what it starts from scores."""
    for order in permutations(steps):
        events = told([*order, Steps(2).agent("bot", 90, 99)], listen_ns=at(since), hot_runs_max=hot)
        assert [e for e in events if isinstance(e, Counted)] == ([] if is_scored else [INCOMPLETE[1]])
        assert len([e for e in events if isinstance(e, RunClosed)]) == 1 + is_scored


def test_what_a_scorer_in_a_process_waits_for_decides_no_score() -> None:
    """A run is scored alike, whether the span around it ends at once or after its verdict."""
    for wait in (0, 40):
        engine = Engine(Tasks())
        engine.listen(at(100))
        events = engine.feed(inner(110, 112), 0)
        events += engine.tick(wait * 10**9)
        events += engine.feed([Steps().add("other", 99, 200, span_id="outer")], wait * 10**9)
        events += engine.close(wait * 10**9)
        assert [e.record.outcome for e in events if isinstance(e, RunClosed)] == ["success"]


def test_what_comes_later_of_a_dropped_run_is_late() -> None:
    """It is decided like any other: no second run is made of its last spans."""
    engine = Engine(Tasks(), since_ns=at(10))
    steps = run_of(0, 20)
    engine.feed(steps[1:], 0)
    assert [e for e in engine.tick(10**12) if isinstance(e, RunDropped)] == [RunDropped(trace_id(1))]
    assert [(e.what, e.reason) for e in engine.feed(steps[:1], 2 * 10**12) if isinstance(e, Counted)] == [
        ("late", "verdict")
    ]
    assert len(engine) == 0


def test_one_that_has_to_go_early_is_dropped_too() -> None:
    """It counts as evicted, which it is, and as incomplete."""
    engine = Engine(Tasks(), Limits(runs_max=1), since_ns=at(5))
    engine.feed([Steps(1).tool("find", 1, 9, parent="root")], 0)
    events = engine.feed([Steps(2).tool("find", 10, 11)], 0)
    assert [e for e in events if isinstance(e, Counted | RunDropped | RunClosed)] == [
        Counted("evicted", "runs_max"),
        *INCOMPLETE,
    ]


def test_a_text_without_a_time_proves_nothing() -> None:
    """Log records need not tell when they were made; the spans of the run do."""
    steps = run_of(10, 20)
    untimed = Step(kind="content", trace_id=trace_id(1), span_id="root#1", start_ns=0, end_ns=0, output="done")
    assert isinstance(told([untimed, *steps], since_ns=at(5))[0], RunClosed)
    assert told([untimed, *steps], since_ns=at(15))[:2] == INCOMPLETE


def test_a_request_above_several_runs_makes_none_of_them_incomplete() -> None:
    """With a run per agent, only those agents that were under way themselves are dropped."""
    steps = Steps()
    for n, (start, end) in enumerate([(0, 10), (8, 20), (12, 18)]):
        steps.agent("bot", start, end, span_id=f"a{n}", parent="web")
    steps.add("other", 0, 30, span_id="web")
    for order in permutations(steps.made):
        events = told(order, run_scope="agent", since_ns=at(11))
        assert {e.record.run[-2:] for e in events if isinstance(e, RunClosed)} == {"a0", "a2"}
        assert {e.run_id[-2:] for e in events if isinstance(e, RunDropped)} == {"a1"}


def test_a_conversation_that_goes_on_is_one_run() -> None:
    """A turn of the past and one of now make a run that was under way.

    Of a conversation whose earlier turns went elsewhere nothing tells that there were any: the later ones are scored as
    if they were all of it. No rule on the spans of these can know, so the documentation says so.
    """
    first, second = Steps(1), Steps(2)
    first.agent("bot", 0, 5, conversation_id="c")
    second.agent("bot", 20, 25, conversation_id="c")
    steps = [*first.made, *second.made]
    assert told(steps, run_scope="conversation", since_ns=at(10)) == [
        RunDropped("c"),
        Counted("incomplete", "began_before"),
    ]
    assert isinstance(told(steps[1:], run_scope="conversation", since_ns=at(10))[0], RunClosed)

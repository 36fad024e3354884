"""Check the life of runs: when they open, close, make room, and that nothing bad takes others along."""

from __future__ import annotations

import pytest

from reach_otel.engine import Counted, Engine, Limits, ModelCall, RunChanged, RunClosed, RunDropped, RunOpened
from reach_otel.engine.store import BARE_SPANS_MAX, DUE_SLACK, SECOND_NS
from reach_otel.span.step import Step
from reach_otel.task import Tasks
from tests.support.engines import Driver
from tests.support.steps import Steps, trace_id
from tests.support.tasks import goal, task

SHOP = task(goal("find"), match={"agent": "bot"})


def whole(run: int = 1, *, root: bool = True, tools: int = 1) -> list[Step]:
    """Tell a run of some calls, and of the agent around them."""
    steps = Steps(run)
    for n in range(tools):
        steps.tool("find", 2 * n, 2 * n + 1, parent="root", args={"n": n}, result=n)
    if root:
        steps.agent("bot", 0, 2 * tools, span_id="root", output="done")
    return steps.made


# When a run is over


def test_a_verdict_follows_the_root_s_end_after_grace() -> None:
    """It comes once ``grace`` has passed with nothing more arriving, not before."""
    driver = Driver((SHOP,), grace_seconds=2)
    driver.feed(whole())
    driver.wait(1.9)
    driver.feed([Steps().tool("find", 5, 6, parent="root", span_id="late")])
    driver.wait(1.9)
    assert not driver.records
    driver.wait(0.1)
    assert [r["outcome"] for r in driver.records.values()] == ["success"]
    assert driver.engine.due_ns() is None


@pytest.mark.parametrize(("remote", "seconds"), [(True, 2), (None, 30)])
def test_an_agent_under_an_unseen_local_span_is_waited_for(remote: bool | None, seconds: int) -> None:
    """Its parent may still send more; a parent in another process is not waited for."""
    driver = Driver((SHOP,), grace_seconds=2, parent_wait_seconds=30)
    driver.feed([*whole(root=False), Steps().agent("bot", 0, 3, span_id="root", parent="web", parent_remote=remote)])
    driver.wait(seconds - 0.5)
    assert not driver.records
    driver.wait(0.5)
    assert len(driver.records) == 1


def test_the_web_request_around_an_agent_ends_the_wait() -> None:
    """A span of no interest above the agent tells that nothing more is to come."""
    driver = Driver((SHOP,))
    steps = Steps()
    driver.feed([steps.tool("find", 1, 2, parent="root"), steps.agent("bot", 0, 3, span_id="root", parent="web")])
    driver.feed([steps.add("other", 0, 4, span_id="web")])
    driver.wait(2)
    assert len(driver.records) == 1


def test_a_silent_run_is_abandoned() -> None:
    """A run whose root never ended closes after ``idle``; each arrival starts the wait anew."""
    driver = Driver((SHOP,), idle_seconds=600)
    driver.feed(whole(root=False))
    driver.wait(599)
    driver.feed([Steps().tool("find", 5, 6, parent="root", span_id="more")])
    driver.wait(599)
    assert not driver.records
    driver.wait(1)
    assert [r["outcome"] for r in driver.records.values()] == ["abandoned"]


def test_the_end_of_input_closes_all() -> None:
    """``close`` gives every open run its verdict."""
    driver = Driver((SHOP,))
    driver.feed([*whole(1), *whole(2, root=False)])
    assert sorted(r["outcome"] for r in driver.close().values()) == ["abandoned", "success"]
    assert len(driver.engine) == 0


# Late, twice, too many


def test_what_comes_after_the_verdict_is_late() -> None:
    """It is counted with its age, and makes no second run."""
    engine = Engine(Tasks([SHOP]), Limits())
    engine.feed(whole(), 0)
    engine.tick(2 * SECOND_NS)
    assert engine.feed(whole()[:1], 5 * SECOND_NS) == [Counted("late", "verdict", seconds=3.0)]
    assert len(engine) == 0


def test_a_verdict_given_before_a_restart_is_remembered() -> None:
    """``remember`` makes the steps of a run late that another process has judged."""
    driver = Driver((SHOP,))
    driver.engine.remember(trace_id(1), 0)
    driver.feed(whole())
    assert (driver.counts, len(driver.engine)) == ({("late", "verdict"): 2}, 0)


def test_only_so_many_verdicts_are_remembered() -> None:
    """The oldest is forgotten first."""
    driver = Driver((), verdicts_max=2)
    for run in (1, 2, 3):
        driver.engine.remember(trace_id(run), 0)
    driver.feed([*whole(1), *whole(2), *whole(3)])
    assert [run.trace_id for run in driver.engine.runs()] == [trace_id(1)]


def test_equal_spans_count_once() -> None:
    """Also when the second one says something else: the first wins."""
    driver = Driver((SHOP,))
    driver.feed(whole())
    driver.feed([Steps().tool("other", 8, 9, span_id=whole()[0].span_id)])
    [record] = driver.close().values()
    assert (driver.counts, record["actions"]["effective"]) == ({("duplicate", "span"): 1}, 1)


def test_a_span_of_no_interest_does_not_hide_one_of_interest() -> None:
    """A run opened by a step that bears the id of a span set aside before holds that step."""
    driver = Driver((SHOP,))
    step = whole()[0]
    driver.feed([Steps().add("other", 0, 1, span_id=step.span_id), step])
    [record] = driver.close().values()
    assert sum(record["actions"].values()) == 1


def test_extra_actions_are_counted_and_not_kept() -> None:
    """Beyond ``actions_max`` actions, and ``steps_max`` other steps, a run takes no more; its agent's end it does."""
    driver = Driver((SHOP,), actions_max=3, steps_max=5)
    driver.feed(whole(root=False, tools=5))
    driver.feed([Steps().model(n, n + 1, span_id=f"m{n}", parent="root") for n in range(4)])
    assert driver.counts == {("overflow", "actions"): 2, ("overflow", "steps"): 2}
    [record] = driver.open_records().values()
    assert sum(record["actions"].values()) == 3


def test_the_oldest_run_makes_room() -> None:
    """Beyond ``runs_max`` the run silent for longest is evicted; one that is over goes first, in good order."""
    driver = Driver((SHOP,), runs_max=2)
    driver.feed(whole(1, root=False))
    driver.feed(whole(2))
    driver.feed(whole(3, root=False))
    assert [r["outcome"] for r in driver.records.values()] == ["success"]
    driver.feed(whole(4, root=False))
    assert [(r["trace_id"], r["outcome"]) for r in driver.records.values()][1:] == [(trace_id(1), "evicted")]
    assert driver.counts == {("evicted", "runs_max"): 1}


def test_spans_of_no_interest_open_no_run() -> None:
    """They are kept for a while, so many a trace, as one may stand above an agent."""
    driver = Driver((SHOP,), runs_max=2)
    for run in range(9):
        driver.feed([Steps(run).add("other", 0, 1, span_id=f"s{n}") for n in range(BARE_SPANS_MAX + 9)])
    assert len(driver.engine) == 0
    assert [len(kept) for kept in driver.engine._bare.values()] == [BARE_SPANS_MAX] * 2


def test_deadlines_of_closed_runs_do_not_pile_up() -> None:
    """Without any tick, as in a replay, the list of deadlines is bounded by the runs that are open."""
    engine = Engine(Tasks(), Limits(runs_max=5))
    for run in range(3 * DUE_SLACK):
        engine.feed(whole(run), 0)
    assert len(engine._due) <= 2 * 5 + DUE_SLACK + 1
    assert engine.due_ns() is not None
    assert len(engine.tick(10**12)) == 5


# What is said


def test_one_change_a_run_and_feed() -> None:
    """A batch tells each of its runs once, after it was opened."""
    engine = Engine(Tasks([SHOP]), Limits())
    events = engine.feed([*whole(1, tools=3), *whole(2)], 0)
    assert [type(e) for e in events] == [RunOpened, RunOpened, RunChanged, RunChanged]
    summaries = [e.summary for e in events if isinstance(e, RunChanged)]
    assert [(s.actions, s.depth, s.last_tool) for s in summaries] == [(3, 1.0, "find"), (1, 1.0, "find")]
    assert engine.runs() == summaries


def test_nobody_looks_in_a_replay() -> None:
    """Not ``live``: no changes are told, and the verdicts are the same."""
    live, dead = Engine(Tasks([SHOP])), Engine(Tasks([SHOP]), live=False)
    live.feed(whole(), 0)
    assert [type(e) for e in dead.feed(whole(), 0)] == [RunOpened]
    verdicts = [[e.record for e in engine.close(0) if isinstance(e, RunClosed)] for engine in (dead, live)]
    assert verdicts[0] == verdicts[1]


def test_steps_are_written_where_asked() -> None:
    """``keep_steps`` fills the records of closed runs, ``steps`` that of an open one."""
    for keep in (True, False):
        engine = Engine(Tasks([SHOP]), keep_steps=keep)
        engine.feed(whole(), 0)
        record = engine.record(trace_id(1), steps=True)
        assert record is not None
        assert len(record.steps or ()) == 2
        [closed] = [e for e in engine.close(0) if isinstance(e, RunClosed)]
        assert (closed.record.steps is not None) is keep
    assert engine.record(trace_id(1)) is None


def test_a_verdict_comes_with_actions_and_model_calls() -> None:
    """Publishers get what they count: each action, and agent, seconds and success of each model step."""
    engine = Engine(Tasks([SHOP]))
    engine.feed([*whole(root=False), Steps().model(3, 5, parent="root", agent="bot", ok=False, span_id="m")], 0)
    [closed] = [e for e in engine.close(0) if isinstance(e, RunClosed)]
    assert [a.tool for a in closed.actions] == ["find"]
    assert closed.models == (ModelCall("bot", 0.02, ok=False, error=None),)


def test_attributes_are_needed_where_a_task_asks() -> None:
    """For a match by attributes, or a condition on them."""
    assert not Engine(Tasks([SHOP])).needs_attributes
    assert Engine(Tasks([task(goal("a"), match={"attributes": {"tenant": "x"}})])).needs_attributes
    assert Engine(Tasks([task(goal("a", verify={"when": "attributes['x'] == 1"}))])).needs_attributes


# Faults


class Odd:
    """A value that fails whenever it is looked at, and has a secret."""

    def __repr__(self) -> str:
        raise RuntimeError("secret")

    __str__ = __hash__ = __eq__ = __repr__  # type: ignore[assignment]


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("hot", [1, 9])
def test_a_step_that_breaks_the_engine_takes_no_other_along(live: bool, hot: int) -> None:
    """Its run is dropped and counted, never to come back; the others of the batch are scored; no value is told."""
    engine = Engine(Tasks([SHOP]), Limits(hot_runs_max=hot), live=live)
    bad = [Steps(1).tool("find", 0, 1, args={"sku": Odd()}, result=1), *whole(1, tools=3)[1:]]
    events = engine.feed([*whole(2), *bad, *whole(3)], 0)
    events += engine.feed(whole(4), 0)
    events += engine.close(0)
    assert [e for e in events if isinstance(e, RunDropped)] == [RunDropped(trace_id(1))]
    closed = [e.record for e in events if isinstance(e, RunClosed)]
    assert [(r.trace_id, r.outcome) for r in closed] == [(trace_id(n), "success") for n in (2, 3, 4)]
    counted = [(e.what, e.reason) for e in events if isinstance(e, Counted)]
    assert counted == [("fault", "step"), ("evicted", "fault")]
    told = [e.where or "" for e in events if isinstance(e, Counted)]
    assert all(where.startswith("RuntimeError in __repr__:") for where in told)
    assert "secret" not in "".join(told)
    assert [type(e) for e in engine.feed(whole(1), 0)] == [Counted, Counted]


def test_a_broken_run_is_given_up_in_its_own_feed() -> None:
    """It does not stay open without a deadline."""
    engine = Engine(Tasks([SHOP]))
    engine.feed([Steps(1).tool("find", 0, 1, args={"sku": Odd()}, result=1)], 0)
    assert (len(engine), engine.due_ns()) == (0, None)


def test_faults_of_conditions_are_counted_once() -> None:
    """Folding anew for late steps meets the same faults again and tells only new ones."""
    driver = Driver((task(goal("find", verify={"tool": "find", "when": "result > 'x'"})),))
    steps = whole(tools=4)
    for step in [steps[2], steps[0], steps[3], steps[1], steps[4]]:
        driver.feed([step])
    driver.close()
    assert driver.counts == {("fault", "cel"): 4}


def test_a_condition_that_raises_does_not_hold() -> None:
    """The run goes on, and its other milestones are judged."""
    goals = [goal("bad", verify={"tool": "find", "python": "operator:concat"}), goal("find")]
    driver = Driver((task(*goals),))
    driver.feed(whole())
    [record] = driver.close().values()
    assert [m["state"] for m in record["milestones"]] == ["missed", "reached"]
    assert driver.counts == {("fault", "python"): 1}

"""Check the fleet: what agents do depends on the seed and on the time alone, and they stop when told to."""

from __future__ import annotations

import threading
import time
from collections import Counter
from random import Random

import pytest

from reach_otel.demo.behaviours import BEHAVIOURS, Behaviour, choose
from reach_otel.demo.desk import Desk
from reach_otel.demo.fleet import Fleet, Plan, handle_ticket
from reach_otel.demo.work import Work

STATUS_AFTER = {
    "clean": "resolved",
    "recovers": "resolved",
    "brute force": "resolved",
    "falls back": "pending_customer",
    "slow tool": "resolved",
    "ignores results": "resolved",
    "makes up an id": "resolved",
    "gives up": "open",
    "claims success": "open",
    "loops": "open",
    "refunds at once": "resolved",
}


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda behaviour: behaviour.name)
def test_a_behaviour_does_what_its_name_says(behaviour: Behaviour) -> None:
    """The ticket really stands as expected afterwards, whatever the agent says about it."""
    with Desk() as desk:
        answer = handle_ticket(desk, behaviour, Random(7), lambda _: None)
        assert answer
        assert desk.status_of("T-100001") == STATUS_AFTER[behaviour.name]


def test_shares_are_percent() -> None:
    """Both columns of shares add up to 100."""
    assert sum(behaviour.share for behaviour in BEHAVIOURS) == 100
    assert sum(behaviour.bad_share for behaviour in BEHAVIOURS) == 100


def test_most_runs_are_good_until_the_fleet_is_degraded() -> None:
    """The share of runs that update the ticket in a way the task allows falls from far above one half to far below."""
    arrive = {"clean", "recovers", "brute force", "falls back", "slow tool", "ignores results"}
    rng = Random(1)
    good, bad = (Counter(choose(rng, degraded=degraded).name for _ in range(2_000)) for degraded in (False, True))
    assert sum(good[name] for name in arrive) > 0.8 * 2_000
    assert sum(bad[name] for name in arrive) < 0.4 * 2_000


@pytest.mark.parametrize(
    ("plan", "seconds", "degraded"),
    [
        (Plan(), 1e6, False),
        (Plan(degrade_after_seconds=5), 4.9, False),
        (Plan(degrade_after_seconds=5), 5, True),
        (Plan(degrade_after_seconds=5, recover_after_seconds=9), 8.9, True),
        (Plan(degrade_after_seconds=5, recover_after_seconds=9), 9, False),
    ],
)
def test_a_plan_says_when_the_fleet_is_degraded(plan: Plan, seconds: float, degraded: bool) -> None:
    """Seconds count from the start of the fleet."""
    assert plan.degraded(seconds) is degraded


def test_the_same_seed_does_the_same() -> None:
    """The first runs of each agent are the same in two fleets, however the threads interleave."""

    def first_runs(seed: int) -> list[str]:
        chosen: list[str] = []
        lock = threading.Lock()

        def choose_and_note(rng: Random, *, degraded: bool) -> Behaviour:
            behaviour = choose(rng, degraded=degraded)
            with lock:
                chosen.append(behaviour.name)
            return behaviour

        with Desk() as desk, Fleet(desk, Plan(agents=1, seed=seed, pace=0), choose_and_note):
            while len(chosen) < 10:
                time.sleep(0.01)
        return chosen[:10]

    assert first_runs(3) == first_runs(3)
    assert first_runs(3) != first_runs(4)


def test_agents_stop_within_a_moment_though_they_wait_for_a_slow_tool() -> None:
    """Leaving the block ends all waiting and joins all threads."""
    before = threading.active_count()
    with Desk() as desk:
        with Fleet(desk, Plan(agents=3, pace=1_000)):
            time.sleep(0.05)
            started = time.monotonic()
        assert time.monotonic() - started < 2
    assert threading.active_count() == before


def test_what_an_agent_dies_of_is_not_lost() -> None:
    """A fault in a behaviour reaches the one who runs the demo."""

    def break_down(work: Work) -> str:
        raise ZeroDivisionError

    broken = Behaviour("broken", break_down, 100, 100)
    with Desk() as desk:
        fleet = Fleet(desk, Plan(agents=1, pace=0), lambda rng, *, degraded: broken).__enter__()
        with pytest.raises(ZeroDivisionError):
            fleet.stop()
        with pytest.raises(ZeroDivisionError):
            fleet.check()


def test_what_the_agents_did_is_told_once() -> None:
    """Each run that has ended is given with its trace, its behaviour and its answer, and is then forgotten."""
    with Desk() as desk, Fleet(desk, Plan(agents=2, pace=0)) as fleet:
        while len(done := fleet.take_done()) < 3:
            time.sleep(0.05)
        fleet.stop()
        rest = fleet.take_done()
        assert fleet.take_done() == []
    assert {run.behaviour for run in done} <= {behaviour.name for behaviour in BEHAVIOURS}
    assert all(run.answer and run.seconds >= 0 and len(run.trace_id) == 32 for run in done)
    behaviours = {run.trace_id: run.behaviour for run in [*done, *rest] if int(run.trace_id, 16)}
    assert all(fleet.behaviour_of(trace_id) in (behaviour, None) for trace_id, behaviour in behaviours.items())


def test_healthy_agents_are_seldom_wrong_about_what_they_did() -> None:
    """Fewer than one run in twenty makes something up or claims what is not so: nobody is to be alerted about them."""
    wrong = {"makes up an id", "claims success", "ignores results", "refunds at once"}
    assert sum(behaviour.share for behaviour in BEHAVIOURS if behaviour.name in wrong) < 5

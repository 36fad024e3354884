"""Open runs are shown as the engine tells of them, whatever they are called and however many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reach_otel.engine import Engine, Event, Limits, Record
from reach_otel.engine.events import RunChanged, RunClosed, RunDropped, RunMerged
from reach_otel.service.live import Lately, Live
from reach_otel.span.step import Step
from tests.support.records import record, summary
from tests.support.stand import full_run, ticket_run, ticket_tasks


class Owner:
    """An engine that tells its listeners at once, on the caller's thread."""

    def __init__(self, **limits: Any) -> None:
        self.engine = Engine(ticket_tasks(), Limits(**limits), keep_steps=True)
        self.closing: Mapping[str, Record] = {}
        self.listeners: list[Callable[[Sequence[Event]], object]] = []

    def add_listener(self, listener: Callable[[Sequence[Event]], object], /) -> None:
        self.listeners.append(listener)

    async def acall(self, function: Callable[[Engine], Any], /) -> Any:
        return function(self.engine)

    def tell(self, events: Sequence[Event]) -> None:
        for listener in self.listeners:
            listener(events)

    def feed(self, steps: Iterable[Step], now_ns: int = 0) -> None:
        self.tell(self.engine.feed(steps, now_ns))

    def tick(self, now_ns: int) -> None:
        self.tell(self.engine.tick(now_ns))


def shown(live: Live) -> dict[str, Any]:
    return {run.run_id: run for run in live.snapshot().open}


@given(st.permutations([*ticket_run(1), *full_run(2), *ticket_run(3, ended=False)]), st.integers(1, 7))
def test_what_is_shown_is_what_the_engine_has_open(steps: list[Step], size: int) -> None:
    """After each batch, in any order, and after the verdicts, both lists of open runs are equal."""
    owner = Owner(runs_max=2)
    live, lately = Live(owner), Lately()
    owner.add_listener(lately.publish)
    for n in range(0, len(steps), size):
        owner.feed(steps[n : n + size], n)
        assert shown(live) == {run.run_id: run for run in owner.engine.runs()}
    owner.tick(3_600 * 10**9)
    assert live.count == 0
    assert len(lately.records()) == 3


def test_a_run_that_gets_another_name_or_is_dropped_is_not_shown_twice() -> None:
    """A merger leaves one run, under its new name even before anything else is told of it."""
    owner = Owner()
    live = Live(owner)
    owner.tell([RunChanged(summary("a")), RunChanged(summary("b", actions=7)), RunChanged(summary("c"))])
    owner.tell([RunMerged("a", "new"), RunMerged("c", "b"), RunMerged("never", "seen")])
    assert {run: one.actions for run, one in shown(live).items()} == {"new": 4, "b": 7}
    owner.tell([RunDropped("new"), RunClosed(record("b"), (), ()), RunDropped("unknown")])
    assert live.count == 0


def test_only_the_latest_verdicts_are_kept() -> None:
    """Memory for what ended lately is bounded; the oldest go first."""
    lately = Lately(runs_max=3)
    lately.publish([RunClosed(record(f"r{n}"), (), ()) for n in range(5)])
    assert [one.run for one in lately.records()] == ["r2", "r3", "r4"]
    assert (lately.record("r1"), lately.record("r4") is not None) == (None, True)

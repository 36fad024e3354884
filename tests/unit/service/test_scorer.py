"""Check the owner thread: listeners, questions, verdicts that wait for the journal, replay, stop."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from reach_otel.engine import Engine, Limits
from reach_otel.engine.events import Counted, Event, RunChanged, RunClosed, RunDropped
from reach_otel.errors import StateError
from reach_otel.service.journal import Journal
from reach_otel.service.journal_rows import rows_of
from reach_otel.service.ledger import Ledger
from reach_otel.service.limits import Room
from reach_otel.service.scorer import Batch, Scorer
from reach_otel.span import Step
from reach_otel.task.task import Tasks

GRACE_SECONDS = 0.05


def call(trace: str, span: str) -> Step:
    return Step("tool", trace, span, 1, 2, parent_id="root", tool="look", has_args=True, args={"x": span})


def root(trace: str) -> Step:
    return Step("agent", trace, "root", 1, 9, agent="bot", output="done")


class Rig:
    """A scorer on a journal in a folder, with what it told."""

    def __init__(
        self, folder: Path, *, journal: bool = True, engine: Engine | None = None, spans_max: int = 100
    ) -> None:
        self.journal = Journal(folder / "journal.db") if journal else None
        limits = Limits(grace_seconds=GRACE_SECONDS)
        ledger = Ledger("trace", verdicts_max=100, traces_max=100, idle_seconds=600)
        engine = Engine(Tasks(), limits, keep_steps=True) if engine is None else engine
        self.scorer = Scorer(engine, Room(spans_max, 1 << 20), ledger, journal=self.journal)
        self.told: list[Event] = []
        self.scorer.add_listener(self.told.extend)

    def take(self, *steps: Step) -> None:
        """Journal steps and score them, as the intake does."""
        assert self.journal is not None
        assert self.scorer.room.take(len(steps), 10)
        done = threading.Event()

        def tell(seq: int | None) -> None:
            self.scorer.enqueue(Batch(steps, seq or 0, 10, time.monotonic_ns()))
            done.set()

        self.journal.append(rows_of(steps), len(steps), tell)
        assert done.wait(10)

    def verdicts(self) -> list[str]:
        return [event.record.run for event in self.told if isinstance(event, RunClosed)]

    def rows(self) -> int:
        assert self.journal is not None
        return int(self.journal.run(lambda c: c.execute("SELECT count(*) FROM journal").fetchone()[0]).result(10))

    def close(self) -> None:
        assert self.scorer.stop()
        if self.journal is not None:
            assert self.journal.close()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    made: list[Rig] = []

    def build(**options: Any) -> Rig:
        made.append(Rig(tmp_path, **options))
        return made[-1]

    yield build
    for rig in made:
        rig.close()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_run_is_told_live_and_at_its_verdict(make: Callable[..., Rig]) -> None:
    """Listeners hear of each change, and of the verdict with its steps once it is safe; then the rows are gone."""
    rig = make()
    rig.scorer.start()
    rig.take(call("t1", "a"))
    until(lambda: any(isinstance(event, RunChanged) for event in rig.told))
    rig.take(root("t1"))
    until(lambda: rig.verdicts() == ["t1"])
    (closed,) = [event for event in rig.told if isinstance(event, RunClosed)]
    assert [step.kind for step in closed.record.steps or ()] == ["tool", "agent"]
    assert rig.rows() == 0
    assert rig.scorer.closing == {}
    assert rig.scorer.room.spans == rig.scorer.room.size == 0


def test_a_verdict_is_told_only_once_it_is_safe(make: Callable[..., Rig]) -> None:
    """Until the database has it, the record is among those that are closing, where who asks can find it."""
    rig = make()
    rig.scorer.start()
    until(lambda: not rig.scorer.is_replaying)  # it reads the database, which would be at a halt
    scorer_gate, gate = threading.Event(), threading.Event()
    rig.scorer._ask(lambda _: scorer_gate.wait(10))  # no verdict before the database is at a halt
    rig.take(call("t1", "a"), root("t1"))
    assert rig.journal is not None
    rig.journal.run(lambda _: gate.wait(10))
    scorer_gate.set()
    until(lambda: "t1" in rig.scorer.closing)
    assert rig.verdicts() == []
    found = asyncio.run(rig.scorer.record("t1"))
    assert found is not None
    assert found.final
    gate.set()
    until(lambda: rig.verdicts() == ["t1"])
    assert asyncio.run(rig.scorer.record("t1")) is None


def test_open_runs_go_on_after_a_restart(make: Callable[..., Rig]) -> None:
    """A stop leaves open runs in the journal; the next start has them as they were, and gives one verdict."""
    rig = make()
    rig.scorer.start()
    rig.take(call("t1", "a"))
    rig.take(call("t2", "a"))
    rig.close()
    assert rig.verdicts() == []
    again = make()
    assert again.scorer.is_replaying
    again.scorer.start()
    until(lambda: not again.scorer.is_replaying)
    assert again.scorer.call(lambda engine: len(engine)) == 2
    again.take(call("t1", "b"), root("t1"))
    until(lambda: again.verdicts() == ["t1"])
    (closed,) = [event for event in again.told if isinstance(event, RunClosed)]
    assert [step.span_id for step in closed.record.steps or ()] == ["a", "b", "root"]
    assert again.rows() == 1


def test_a_run_with_a_verdict_never_gets_another(make: Callable[..., Rig]) -> None:
    """Spans that are sent again after a restart are late, and open no run."""
    rig = make()
    rig.scorer.start()
    rig.take(call("t1", "a"), root("t1"))
    until(lambda: rig.verdicts() == ["t1"])
    rig.close()
    again = make()
    again.scorer.start()
    again.take(call("t1", "a"), root("t1"))
    again.take(call("t1", "z"))
    time.sleep(4 * GRACE_SECONDS)
    assert again.scorer.call(lambda engine: len(engine)) == 0
    assert again.verdicts() == []


def test_a_run_of_which_a_part_is_elsewhere_is_dropped_once(make: Callable[..., Rig]) -> None:
    """It is counted; its rows go; after a restart its spans are late, and what was under way *then* is scored."""

    def engine(since_ns: int) -> Engine:
        return Engine(Tasks(), Limits(grace_seconds=GRACE_SECONDS), keep_steps=True, since_ns=since_ns)

    def dropped(rig: Rig) -> list[str]:
        return [event.run_id for event in rig.told if isinstance(event, RunDropped)]

    rig = make(engine=engine(5))
    rig.scorer.start()
    rig.take(Step("tool", "late", "b", 6, 7, parent_id="root", tool="look"))
    rig.take(Step("tool", "t1", "b", 6, 7, parent_id="root", tool="look"), root("t1"))
    until(lambda: dropped(rig) == ["t1"])
    assert [(e.what, e.reason) for e in rig.told if isinstance(e, Counted)] == [("incomplete", "began_before")]
    assert (rig.verdicts(), rig.scorer.closing, rig.rows()) == ([], {}, 1)
    assert rig.journal is not None
    assert rig.journal.run(lambda c: c.execute("SELECT run FROM verdicts").fetchall()).result(10) == [("t1",)]
    rig.close()
    again = make(engine=engine(5))
    again.scorer.start()
    again.take(call("t1", "c"), root("t1"))
    again.take(Step("agent", "late", "root", 5, 9, agent="bot", output="done"))
    until(lambda: again.verdicts() == ["late"])
    assert dropped(again) == []
    assert [(e.what, e.reason) for e in again.told if isinstance(e, Counted)] == [("late", "verdict")] * 2
    assert len(again.scorer.call(Engine.runs)) == 0


def test_a_damaged_row_is_counted_and_the_others_are_scored(make: Callable[..., Rig]) -> None:
    """One row that cannot be read takes no other along."""
    rig = make()
    rig.scorer.start()
    rig.take(call("t1", "a"))
    rig.take(call("t2", "a"))
    assert rig.journal is not None
    rig.journal.run(lambda c: c.execute("UPDATE journal SET steps = x'6d00' WHERE trace = 't1'")).result(10)
    rig.close()
    again = make()
    again.scorer.start()
    until(lambda: not again.scorer.is_replaying)
    assert [run.run_id for run in again.scorer.call(Engine.runs)] == ["t2"]
    assert again.journal is not None
    assert again.journal.errors["read"] == 1


def test_the_replay_waits_for_a_database_that_cannot_be_read(
    make: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is scored, and so no row forgotten, before all rows have been replayed."""
    rig = make()
    rig.scorer.start()
    rig.take(call("t1", "a"))
    rig.close()
    again = make()
    assert again.journal is not None
    real, fails = again.journal.replay, [2]

    def replay(after: int = 0) -> Any:
        if fails[0]:
            fails[0] -= 1
            raise sqlite3.OperationalError("database is locked")
        return real(after)

    monkeypatch.setattr(again.journal, "replay", replay)
    again.scorer.start()
    again.take(root("t1"))
    until(lambda: again.verdicts() == ["t1"])
    (closed,) = [event for event in again.told if isinstance(event, RunClosed)]
    assert len(closed.record.steps or ()) == 2
    assert again.scorer.health.errors["journal"] == 2


def test_a_listener_that_fails_is_counted(make: Callable[..., Rig]) -> None:
    """The others are told all the same."""
    rig = make(journal=False)

    def fail(_: Sequence[Event]) -> None:
        raise RuntimeError("of the listener")

    rig.scorer._listeners.insert(0, fail)
    rig.scorer.start()
    assert rig.scorer.submit([call("t1", "a")])
    until(lambda: bool(rig.told))
    assert rig.scorer.health.errors["publish"] == 1


def test_an_engine_that_fails_is_counted_and_the_other_steps_are_scored(make: Callable[..., Rig]) -> None:
    """A step on which it raises is one step."""

    class Fragile(Engine):
        def feed(self, steps: Any, now_ns: int) -> list[Event]:
            if any(step.span_id == "bad" for step in steps):
                raise RuntimeError("of the engine")
            return super().feed(steps, now_ns)

    rig = make(journal=False, engine=Fragile(Tasks(), keep_steps=True))
    rig.scorer.start()
    rig.scorer.submit([call("t1", "a"), call("t1", "bad"), call("t1", "b")])
    until(lambda: bool(rig.told))
    (run,) = rig.scorer.call(Engine.runs)
    assert run.actions == 2
    assert rig.scorer.health.errors["engine"] == 2
    assert rig.scorer.room.spans == 0


def test_a_full_queue_says_so(make: Callable[..., Rig]) -> None:
    """Beyond the bound nothing is taken; once scored, there is room again."""
    rig = make(journal=False, spans_max=3)
    assert rig.scorer.submit([call("t1", str(n)) for n in range(3)])
    assert not rig.scorer.submit([call("t1", "x")])
    assert rig.scorer.lag_seconds() > 0
    rig.scorer.start()
    until(lambda: rig.scorer.room.spans == 0)
    assert rig.scorer.submit([call("t1", "x")])


def test_questions_are_answered_on_the_owner_thread(make: Callable[..., Rig]) -> None:
    """What they return or raise is the caller's; also after the end, when the engine has no other user."""
    rig = make(journal=False)
    rig.scorer.start()
    assert rig.scorer.call(lambda _: threading.current_thread().name) == "reach-otel-scorer"
    assert asyncio.run(rig.scorer.acall(lambda engine: len(engine))) == 0
    with pytest.raises(ZeroDivisionError):
        rig.scorer.call(lambda _: 1 // 0)
    gate = threading.Event()
    busy = rig.scorer._ask(lambda _: gate.wait(10))
    with pytest.raises(StateError, match=r"no answer within 0\.05 s"):
        rig.scorer.call(len, timeout_seconds=0.05)
    gate.set()
    busy.result(10)
    rig.close()
    assert rig.scorer.call(len) == 0


def test_stop_scores_what_was_taken(make: Callable[..., Rig]) -> None:
    """What is queued is scored before the end; a stop without a start is no matter."""
    rig = make(journal=False)
    rig.scorer.start()
    gate = threading.Event()
    rig.scorer._ask(lambda _: gate.wait(10))
    for n in range(20):
        rig.scorer.submit([call("t1", str(n))])
    gate.set()
    rig.close()
    assert rig.scorer.call(Engine.runs)[0].actions == 20
    assert make(journal=False).scorer.stop()

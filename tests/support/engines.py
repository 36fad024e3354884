"""Drive an engine in tests: feed it, close it, and collect what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reach_otel.engine.events import Counted, RunClosed, RunMerged
from reach_otel.engine.store import Engine, Limits
from tests.support.steps import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reach_otel.engine.events import Event
    from reach_otel.span.step import Step
    from reach_otel.task.task import Task

SECOND_NS = 1_000_000_000


class Driver:
    """Feed one engine and keep its verdicts, counts and any breach of what it promises."""

    def __init__(self, tasks: Sequence[Task], *, make: Any = Engine, **limits: Any) -> None:
        self.engine = make(tuple(tasks), Limits(**limits), keep_steps=True)
        self.now_ns = 0
        self.records: dict[str, dict[str, Any]] = {}
        self.counts: dict[tuple[str, str], int] = {}
        self.merged: set[str] = set()

    def take(self, events: Iterable[Event]) -> None:
        """Keep what is said; a second verdict on a run is a breach."""
        for event in events:
            if isinstance(event, RunClosed):
                assert event.record.run not in self.records, f"two verdicts on {event.record.run}"
                assert event.record.run not in self.merged
                assert event.record.final
                self.records[event.record.run] = plain(event.record)
            elif isinstance(event, RunMerged):
                self.merged.add(event.run_id)
            elif isinstance(event, Counted):
                key = (event.what, event.reason)
                self.counts[key] = self.counts.get(key, 0) + event.n

    def feed(self, steps: Iterable[Step]) -> None:
        self.take(self.engine.feed(list(steps), self.now_ns))

    def wait(self, seconds: float) -> None:
        """Let time go by and tell the engine so."""
        self.now_ns += int(seconds * SECOND_NS)
        self.take(self.engine.tick(self.now_ns))

    def close(self) -> dict[str, dict[str, Any]]:
        """End the input and give all verdicts by run."""
        self.take(self.engine.close(self.now_ns))
        return self.records

    def open_records(self) -> dict[str, dict[str, Any]]:
        """Give the records of all open runs, with their steps."""
        found = {run.run_id: self.engine.record(run.run_id, steps=True) for run in self.engine.runs()}
        return {run_id: plain(record) for run_id, record in found.items() if record is not None}


def verdicts(tasks: Sequence[Task], batches: Iterable[Iterable[Step]], **limits: Any) -> dict[str, dict[str, Any]]:
    """Feed batches at one moment and give the verdicts on all runs."""
    driver = Driver(tasks, **limits)
    for batch in batches:
        driver.feed(batch)
    return driver.close()


def verdict(task: Task | None, steps: Sequence[Step], **limits: Any) -> dict[str, Any]:
    """Feed the steps of one run in the order in which they ended, and give its verdict."""
    in_order = sorted(steps, key=lambda s: (s.end_ns, s.start_ns, s.span_id))
    [record] = verdicts(() if task is None else (task,), [in_order], **limits).values()
    return record

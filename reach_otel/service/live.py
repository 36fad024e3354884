"""Know the runs that are open now, and those that ended so lately that the database may not have them yet."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from reach_otel.engine.events import Event, RunChanged, RunClosed, RunDropped, RunMerged, RunSummary
from reach_otel.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from reach_otel.engine.record import Record
    from reach_otel.engine.store import Engine

T = TypeVar("T")

LATELY_MAX: Final = 512
ANSWER_SECONDS: Final = 5.0


class Scorer(Protocol):
    """Ask the engine on the thread that owns it, on which alone ``closing`` changes, and be told its events."""

    @property
    def closing(self) -> Mapping[str, Record]:
        """Give the verdicts that are on their way to the database, by run."""

    def acall(self, function: Callable[[Engine], T], /) -> Awaitable[T]: ...

    def add_listener(self, listener: Callable[[Sequence[Event]], object], /) -> None: ...


class Lately:
    """Keep the records of the runs that ended last. The owner thread writes, any reads.

    While the database fails, verdicts are told but not written; here the latest can be looked at all the same.
    """

    def __init__(self, runs_max: int = LATELY_MAX) -> None:
        self._runs_max = runs_max
        self._records: OrderedDict[str, Record] = OrderedDict()
        self._lock = threading.Lock()

    def publish(self, events: Sequence[Event]) -> None:
        """Take note of verdicts."""
        records = [event.record for event in events if isinstance(event, RunClosed)]
        if records:
            with self._lock:
                for record in records:
                    self._records[record.run] = record
                while len(self._records) > self._runs_max:
                    self._records.popitem(last=False)

    def record(self, run_id: str) -> Record | None:
        """Return the record of a run that ended lately."""
        return self._records.get(run_id)

    def records(self) -> list[Record]:
        """Return all that are kept, in the order of their verdicts."""
        with self._lock:
            return list(self._records.values())


class Snapshot(Struct, frozen=True):
    """Show one moment: the open runs in the order in which they were first seen, and the records of closing ones."""

    open: Sequence[RunSummary]
    closing: Sequence[Record]


class Live:
    """Show the open runs, by what the scorer tells of them: a look at all of them costs its thread nothing.

    A run is shown as open until its verdict is told, and then in :class:`Lately`: there is no moment in between.
    """

    def __init__(self, scorer: Scorer) -> None:
        """Listen to ``scorer``, which must not have been started."""
        self._scorer = scorer
        self._open: dict[str, RunSummary] = {}
        self._lock = threading.Lock()
        scorer.add_listener(self.publish)

    def publish(self, events: Sequence[Event]) -> None:
        """Take note of what happened; for the owner thread."""
        with self._lock:
            for event in events:
                if isinstance(event, RunChanged):
                    self._open[event.summary.run_id] = event.summary
                elif isinstance(event, RunClosed):
                    self._open.pop(event.record.run, None)
                elif isinstance(event, RunDropped):
                    self._open.pop(event.run_id, None)
                elif isinstance(event, RunMerged):
                    part = self._open.pop(event.run_id, None)
                    if part is not None and event.into not in self._open:  # it only got another name
                        self._open[event.into] = replace(part, run_id=event.into)

    @property
    def count(self) -> int:
        """Count the open runs."""
        return len(self._open)

    def snapshot(self) -> Snapshot:
        """Show all runs that are not in the database; any thread may look."""
        with self._lock:
            open_runs = list(self._open.values())
        while True:
            try:
                return Snapshot(open_runs, list(self._scorer.closing.values()))
            except RuntimeError:  # it changed at this moment
                continue

    async def record(self, run_id: str) -> Record | None:
        """Write the record, with steps, of a run that is open or closing.

        :raises StateError: the scorer gives no answer in time.
        """
        asked = self._scorer.acall(lambda engine: engine.record(run_id, steps=True) or self._scorer.closing.get(run_id))
        try:
            return await asyncio.wait_for(asked, ANSWER_SECONDS)
        except TimeoutError:
            raise StateError(f"the scorer gave no answer within {ANSWER_SECONDS:g} s") from None

"""Keep the open runs in the order in which they were last fed; those at the far end are packed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

from reach_otel.engine.events import RunSummary
from reach_otel.engine.pack import PackedRun, pack, unpack
from reach_otel.engine.run import Run


class Shelf:
    """Hold open runs by id, at most ``hot_max`` of them ready to be fed; the others rest, packed if they can be."""

    __slots__ = ("_actions_max", "_hot", "_hot_max", "_resting")

    def __init__(self, hot_max: int, actions_max: int) -> None:
        self._hot_max = hot_max
        self._actions_max = actions_max
        self._hot: dict[str, Run] = {}  # least recently fed first
        self._resting: dict[str, PackedRun | Run] = {}  # likewise; all fed before the hot ones

    def __len__(self) -> int:
        return len(self._hot) + len(self._resting)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the ids, least recently fed first."""
        return chain(self._resting, self._hot)

    def _all(self) -> Iterator[PackedRun | Run]:
        return chain(self._resting.values(), self._hot.values())

    def get(self, run_id: str) -> Run | None:
        """Return a run, unpacked if need be."""
        run = self._hot.get(run_id)
        if run is None and run_id in self._resting:
            run = self._hot[run_id] = self._woken(self._resting.pop(run_id))
        return run

    def look(self, run_id: str) -> Run | None:
        """Return a run to be looked at only: one at rest stays there, in its place."""
        resting = self._resting.get(run_id)
        return self._woken(resting) if resting is not None else self._hot.get(run_id)

    def put(self, run: Run) -> None:
        """Add a run, or note that it was just fed."""
        self._hot.pop(run.id, None)
        self._hot[run.id] = run

    def due_ns(self, run_id: str) -> int | None:
        """Tell when a run falls due, without unpacking it; ``None`` where it is not open."""
        run = self._hot.get(run_id) or self._resting.get(run_id)
        return run.due_ns if run is not None else None

    def pop(self, run_id: str) -> Run | None:
        """Take a run out."""
        resting = self._resting.pop(run_id, None)
        return self._woken(resting) if resting is not None else self._hot.pop(run_id, None)

    def oldest(self, looks: int) -> str:
        """Name the run to give up first: of the ``looks`` least recently fed one that is over, else the very oldest."""
        oldest = list(islice(self._all(), looks))
        return next((run.id for run in oldest if run.is_over), oldest[0].id)

    def summaries(self) -> list[RunSummary]:
        """Show all runs, least recently fed first."""
        return [run.summary() for run in self._all()]

    def tidy(self) -> None:
        """Lay to rest what has been silent for longest, until only ``hot_max`` runs are left ready."""
        while len(self._hot) > self._hot_max:
            run = self._hot.pop(next(iter(self._hot)))
            self._resting[run.id] = pack(run) or run

    def _woken(self, resting: PackedRun | Run) -> Run:
        return unpack(resting, self._actions_max) if isinstance(resting, PackedRun) else resting

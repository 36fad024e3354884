"""Own all runs: which run is this step's, when is a run over, what goes when there are too many (SPEC 5, 15)."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from reach_otel.engine.choose import Chooser
from reach_otel.engine.conclude import conclude
from reach_otel.engine.events import Counted, Event, RunChanged, RunDropped, RunMerged, RunOpened, RunSummary
from reach_otel.engine.plan import no_plan, plan_of
from reach_otel.engine.record import Record
from reach_otel.engine.run import Run
from reach_otel.engine.scope import outline, qualify, scope_of
from reach_otel.engine.shelf import Shelf
from reach_otel.engine.tree import SPANS_MAX
from reach_otel.engine.verdict import missing_part, verdict
from reach_otel.span.step import ACTION_KINDS, Step

if TYPE_CHECKING:
    from reach_otel.task import Tasks

SECOND_NS = 1_000_000_000
BARE_SPANS_MAX = 64  # of one trace without an agent
DUE_SLACK = 1_000  # deadlines kept of runs that are gone, beside as many as runs are open
EVICT_LOOKS = 32  # oldest runs looked at for one that is over anyway


class Limits(Struct, frozen=True):
    """Bound what the engine keeps and how long it waits."""

    run_scope: Literal["trace", "agent", "conversation"] = "trace"
    runs_max: int = 50_000
    hot_runs_max: int = 5_000  # kept ready; the least recently fed beyond that are packed
    actions_max: int = 1_000  # a run
    steps_max: int = 5_000  # a run, of all kinds
    verdicts_max: int = 200_000
    grace_seconds: float = 2.0  # after the root agent's end
    parent_wait_seconds: float = 30.0  # after an agent's end whose parent has not been seen
    idle_seconds: float = 600.0


class Engine:
    """Turn steps into runs, numbers and verdicts. Not thread-safe: it has one owner.

    ``now_ns`` is the caller's own monotonic time; it decides when a run is over, never what its score is.
    """

    def __init__(
        self,
        tasks: Tasks,
        limits: Limits | None = None,
        *,
        keep_steps: bool = False,
        live: bool = True,
        since_ns: int | None = None,
    ) -> None:
        """``keep_steps``: records of closed runs carry their steps. Not ``live``: no :class:`RunChanged` is made.

        ``since_ns`` is the Unix time since when every span comes here. Of a run that was under way then, a part may be
        elsewhere: it is counted and dropped. One that had ended by then is scored, as its spans come from a record. So
        are later turns of a conversation whose earlier ones went elsewhere: nothing tells of those.
        """
        self._since_ns = since_ns
        self._in_process = False
        self._limits = limits or Limits()
        self._keep_steps = keep_steps
        self._live = live
        self._chooser = Chooser(tasks)
        self._plans = {task.name: plan_of(task) for task in tasks}
        self._no_plan = no_plan()
        self._scope = scope_of(self._limits.run_scope, self._limits.runs_max)
        self._runs = Shelf(self._limits.hot_runs_max, self._limits.actions_max)
        self._bare: dict[str, list[Step]] = {}  # spans of traces in which no agent has acted so far
        self._verdicts: dict[str, int] = {}  # run -> when it was given; oldest first
        self._due: list[tuple[int, str]] = []  # heap; entries may be out of date

    @property
    def needs_attributes(self) -> bool:
        """Say whether steps must keep their raw attributes for matching or conditions."""
        return bool(self._chooser.attribute_keys) or any(p.task.needs_attributes for p in self._plans.values())

    def listen(self, since_ns: int) -> None:
        """Note that all spans of this process, and no others, come here since a Unix time."""
        self._in_process = True  # first: the owner may be giving a verdict meanwhile
        self._since_ns = since_ns

    # In.

    def feed(self, steps: Iterable[Step], now_ns: int) -> list[Event]:
        """Take in steps; returns what happened, with at most one :class:`RunChanged` a run."""
        events: list[Event] = []
        touched: dict[str, bool] = {}
        for step in steps:
            try:
                self._place(step, now_ns, events, touched)
            except Exception as error:  # noqa: BLE001 - one bad step must not take the others along
                events.append(Counted("fault", "step", where=_place_of(error)))
        for run_id, changed in touched.items():
            run = self._runs.get(run_id)
            if run is None:
                continue
            try:
                self._settle(run, now_ns, events, changed=changed)
            except Exception as error:  # noqa: BLE001 - as above
                self._give_up(run, now_ns, events, error)
        self._runs.tidy()
        return events

    def _place(self, step: Step, now_ns: int, events: list[Event], touched: dict[str, bool]) -> None:
        """Bring a step to its run, and runs to each other where the step shows that they are one."""
        placement = self._scope.place(step)
        for old, new in placement.moves:
            self._move(old, new, now_ns, events)
            touched[new] = True
        for run_id in placement.also:
            self._see(self._runs.get(run_id), outline(step), outside=True)
            touched.setdefault(run_id, False)
        run_id = placement.run_id
        if placement.mixed:
            step = qualify(step)
        if self._take(run_id, step, now_ns, events, touched):
            for span in placement.above:
                self._see(self._runs.get(run_id), span, outside=True)

    def _give_up(self, run: Run, now_ns: int, events: list[Event], error: Exception) -> None:
        """Drop a run that cannot be folded, so that it fails once and not on every step."""
        self._runs.pop(run.id)
        self.remember(run.id, now_ns)
        events.append(RunDropped(run.id))
        events.append(Counted("evicted", "fault", where=_place_of(error)))

    def _take(self, run_id: str, step: Step, now_ns: int, events: list[Event], touched: dict[str, bool]) -> bool:
        """Add a step to its run; says whether it was taken."""
        decided_ns = self._verdicts.get(run_id)
        if decided_ns is not None:
            events.append(Counted("late", "verdict", seconds=(now_ns - decided_ns) / SECOND_NS))
            return False
        run = self._runs.get(run_id)
        if run is None:
            if step.kind == "other":
                self._set_aside(run_id, step)
                return False
            run = self._open(run_id, step, now_ns, events)
        if step.span_id in run.tree.parents:
            events.append(Counted("duplicate", "span"))
            return False
        if not self._has_room(run, step):
            kind = "actions" if step.kind in ACTION_KINDS else "steps"
            events.append(Counted("overflow", kind))
            return False
        self._runs.put(run)
        touched[run_id] = touched.get(run_id, False) or step.kind != "other"
        self._enter(run, step)
        return True

    def _see(self, run: Run | None, step: Step, *, outside: bool = False) -> None:
        """Show a run a span that it may know already."""
        if run is not None and step.span_id not in run.tree.parents:
            self._enter(run, step, outside=outside)

    def _enter(self, run: Run, step: Step, *, outside: bool = False) -> None:
        if run.evidence.add(step, self._chooser):
            self._choose_task(run)
        run.add(step, outside=outside)

    def _choose_task(self, run: Run) -> None:
        task = self._chooser.choose(run.evidence)
        run.replan(self._plans[task.name] if task is not None else self._no_plan)

    def _has_room(self, run: Run, step: Step) -> bool:
        if step.kind in ACTION_KINDS:
            return run.tool_steps < self._limits.actions_max
        if step.kind == "other":
            return len(run.tree.parents) < SPANS_MAX
        return len(run.steps) < self._limits.steps_max

    # Opening, merging, making room.

    def _open(self, run_id: str, first: Step, now_ns: int, events: list[Event]) -> Run:
        while len(self._runs) >= self._limits.runs_max:
            self._evict(now_ns, events)
        run = Run(run_id, first.trace_id, self._no_plan, self._limits.actions_max)
        self._runs.put(run)
        events.append(RunOpened(run_id))
        for step in self._bare.pop(run_id, ()):
            if step.span_id != first.span_id:  # else the run would be one of no step at all
                self._see(run, step)
        return run

    def _set_aside(self, run_id: str, step: Step) -> None:
        """Keep a span which may turn out to stand above an agent; most traces of a service never see one."""
        steps = self._bare.pop(run_id, [])
        if len(steps) < BARE_SPANS_MAX and all(s.span_id != step.span_id for s in steps):
            steps.append(step)
        self._bare[run_id] = steps
        if len(self._bare) > self._limits.runs_max:
            del self._bare[next(iter(self._bare))]

    def _move(self, old: str, new: str, now_ns: int, events: list[Event]) -> None:
        """Make one run of two, or give a run its final name."""
        bare = self._bare.pop(old, [])
        part = self._runs.pop(old)
        if part is not None:
            events.append(RunMerged(old, new))
            decided_ns = self._verdicts.get(new)
            if decided_ns is not None:
                age_seconds = (now_ns - decided_ns) / SECOND_NS
                events.append(Counted("late", "verdict", n=len(part.steps), seconds=age_seconds))
                return
            whole = self._runs.get(new)
            if whole is None:
                part.id = new
                part.due_ns = 0
                self._runs.put(part)
                events.append(RunOpened(new))
                bare += self._bare.pop(new, [])
            else:
                whole.absorb(part)
                self._choose_task(whole)
        run = self._runs.get(new)
        for step in bare:
            if run is not None:
                self._see(run, step)
            else:
                self._set_aside(new, step)

    def _evict(self, now_ns: int, events: list[Event]) -> None:
        """Close the run that has been silent for longest; one that is over anyway goes first and in good order."""
        run = self._runs.get(self._runs.oldest(EVICT_LOOKS))
        if run is None:
            return
        if not run.is_over:
            events.append(Counted("evicted", "runs_max"))
        self._decide(run, now_ns, events, evicted=not run.is_over)

    # Out.

    def _settle(self, run: Run, now_ns: int, events: list[Event], *, changed: bool) -> None:
        """Publish the new numbers of a run and set its deadline."""
        if self._live and changed:
            run.settle()
            events.extend(Counted("fault", fault) for fault in run.new_faults())
            events.append(RunChanged(run.summary()))
        due_ns = now_ns + int(self._wait_seconds(run) * SECOND_NS)
        if not run.due_ns or due_ns < run.due_ns:
            heapq.heappush(self._due, (due_ns, run.id))
        run.due_ns = due_ns
        if len(self._due) > 2 * len(self._runs) + DUE_SLACK:
            self._due = [(at_ns, run_id) for run_id in self._runs if (at_ns := self._runs.due_ns(run_id))]
            heapq.heapify(self._due)

    def _wait_seconds(self, run: Run) -> float:
        limits = self._limits
        if limits.run_scope == "conversation":
            return limits.idle_seconds  # another turn may always follow
        state = run.over_state()
        if state == "over":
            return limits.grace_seconds
        return min(limits.parent_wait_seconds, limits.idle_seconds) if state == "agent_over" else limits.idle_seconds

    def due_ns(self) -> int | None:
        """Return the caller's time at which :meth:`tick` should be called next; ``None`` while nothing is open."""
        return self._due[0][0] if self._due else None

    def tick(self, now_ns: int) -> list[Event]:
        """Give the verdicts that have fallen due."""
        events: list[Event] = []
        while self._due and self._due[0][0] <= now_ns:
            _, run_id = heapq.heappop(self._due)
            due_ns = self._runs.due_ns(run_id)
            if due_ns is None:
                continue
            if due_ns > now_ns:
                heapq.heappush(self._due, (due_ns, run_id))
            elif (run := self._runs.get(run_id)) is not None:
                self._decide(run, now_ns, events)
        return events

    def close(self, now_ns: int) -> list[Event]:
        """Give a verdict on every open run: the input has ended."""
        events: list[Event] = []
        for run_id in list(self._runs):
            if (run := self._runs.get(run_id)) is not None:
                self._decide(run, now_ns, events)
        return events

    def _decide(self, run: Run, now_ns: int, events: list[Event], *, evicted: bool = False) -> None:
        self._runs.pop(run.id)
        self.remember(run.id, now_ns)
        missing = self._missing_part(run)
        if missing is not None:
            events.append(RunDropped(run.id))
            events.append(Counted("incomplete", missing))
            return
        try:
            record = conclude(run, final=True, steps=self._keep_steps, evicted=evicted)
        except Exception as error:  # noqa: BLE001 - as above
            self._give_up(run, now_ns, events, error)
            return
        events.extend(Counted("fault", fault) for fault in run.new_faults())
        events.append(verdict(run, record))

    def _missing_part(self, run: Run) -> str | None:
        if self._since_ns is None:
            return None
        wait_ns = int(self._limits.parent_wait_seconds * SECOND_NS)
        return missing_part(run, self._since_ns, wait_ns, in_process=self._in_process)

    def remember(self, run_id: str, now_ns: int) -> None:
        """Note that a run has its verdict, so that later steps of it are late; also one given before a restart."""
        self._verdicts[run_id] = now_ns
        while len(self._verdicts) > self._limits.verdicts_max:
            del self._verdicts[next(iter(self._verdicts))]

    # Looking.

    def __len__(self) -> int:
        """Count the open runs."""
        return len(self._runs)

    def runs(self) -> list[RunSummary]:
        """Show all open runs, least recently fed first."""
        return self._runs.summaries()

    def record(self, run_id: str, *, steps: bool = False) -> Record | None:
        """Write the record of an open run as it stands; ``None`` for one that is not open."""
        run = self._runs.look(run_id)
        return conclude(run, final=False, steps=steps) if run is not None else None


def _place_of(error: Exception) -> str:
    """Say what failed and where in the code; the message is left out, as it may hold a value of a span."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    place = f"{frame.tb_frame.f_code.co_name}:{frame.tb_lineno}" if frame is not None else "?"
    return f"{type(error).__name__} in {place}"

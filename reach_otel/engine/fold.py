"""Fold the actions of a run, in the order of time, into milestones, obstacles, classes and findings (SPEC 6, 7).

A fold sees actions in the order of :attr:`Action.key` only; its owner starts anew when an earlier action turns up.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from reach_otel import names
from reach_otel.engine.action import Action
from reach_otel.engine.obstacles import Baselines, Obstacle, Obstacles
from reach_otel.engine.progress import NOTHING, Mark, Progress, Use, use_of
from reach_otel.engine.repeats import LOOP_REPEATS, Repeats
from reach_otel.engine.sources import Sources, canonical, leaves
from reach_otel.span.errors_text import first_line
from reach_otel.task.condition import MISSING, View

if TYPE_CHECKING:
    from reach_otel.engine.plan import Plan
    from reach_otel.span.step import Step
    from reach_otel.task import Milestone, Trap

GROUNDED_MAX = 200  # values of one call that are judged
NAMES_SHOWN = 5  # argument names in one finding; the agent makes them up
NAME_CHARS_MAX = 64
TRUNCATED_KEYS = ("truncated", "is_truncated", "incomplete", "is_incomplete")


class Finding(Struct, frozen=True, gc=False):
    """One flag on the trajectory; ``detail`` never holds a value that came from a span."""

    finding: str
    action: int | None
    detail: str
    span_id: str | None


class TrapHit(Struct, frozen=True, gc=False):
    """A trap that was hit."""

    index: int
    n: int
    span_id: str


class Fold:
    """Hold everything that the actions folded so far say about one run against one task."""

    __slots__ = (
        "_baselines",
        "_capped",
        "_json_tools",
        "_repeats",
        "actions",
        "classes",
        "errors",
        "faults",
        "findings",
        "found",
        "latest_start_ns",
        "obstacles",
        "plan",
        "progress",
        "sources",
        "task",
        "traps",
    )

    def __init__(self, plan: Plan, sources: Sources) -> None:
        self.plan = plan
        self.task = task = plan.task
        self.sources = sources
        self.obstacles = Obstacles(task.retry_cap)
        self.progress = Progress(plan, self.obstacles)
        self.actions = 0
        self.errors = 0
        self.classes = dict.fromkeys(("effective", "off_task", "repeat", "stuck", "cut_off"), 0)
        self.traps: list[TrapHit] = []
        self.findings: list[Finding] = []
        self.found: tuple[str, ...] = ()  # kinds of findings, in order of first sight
        self.faults: list[str] = []  # of conditions
        self.latest_start_ns = -1
        self._baselines = Baselines(task.baselines)
        self._json_tools: set[str] = set()  # tools that have answered with an object or a list
        self._repeats = Repeats(task.is_free_text if task.free_text else None)
        self._capped = False

    # What conditions may ask about the run.

    def as_cel(self) -> dict[str, Any]:
        """Show the run to CEL and Python conditions."""
        milestones = self.task.milestones
        progress = self.progress
        return {
            "task": self.task.name,
            "actions": self.actions,
            "errors": self.errors,
            "reached": [m.id for m in milestones if progress.reached[m.index]],
            "held": [m.id for m in milestones if progress.held[m.index] is not None],
        }

    # What comes in.

    def feed(self, action: Action) -> None:
        """Fold the next action in time; sets its number, its class and whether it is a retry."""
        task = self.task
        self.actions += 1
        action.n = self.actions
        self.latest_start_ns = max(self.latest_start_ns, action.start_ns)
        if task.error_when is not None and (action.ok or action.by_text) and isinstance(action.result, str):
            self._judge_text(action, task.error_when)
        self.errors += not action.ok
        candidates = task.milestones_for(action.tool)
        invented = self._invented(action, candidates) if action.has_args else {}
        in_time = not self.plan.k or action.n <= self.plan.k
        true, traps = self._met(action) if candidates or task.traps_for(action.tool) else ([], [])
        stuck = False
        if in_time:
            self.progress.use_in_call(action)
            stuck = self._meet_obstacle(action, true)
        news = 0
        if true or traps:
            mark = Mark(action.n, action.end_ns, action.span_id, action.tool)
            news = self._advance(true, mark, action, invented, in_time)
            self._spring(traps, mark)
        self._classify(action, stuck, in_time, news)
        self._learn(action, invented)

    def _met(self, action: Action) -> tuple[list[Milestone], list[Trap]]:
        """Return the milestones and traps whose condition holds on an action, seen from before it."""
        view = View(
            tool=action.tool,
            ok=action.ok,
            args=action.args,
            result=action.result,
            text=action.result if isinstance(action.result, str) else None,
            agent=action.agent,
            duration=action.seconds,
            attributes=action.attributes,
            run=self,
        )
        true = self._true(self.task.milestones_for(action.tool), view)
        traps = self._true_traps(self.task.traps_for(action.tool), view)
        self.faults.extend(view.faults)
        return true, traps

    def _judge_text(self, action: Action, error_when: tuple[re.Pattern[str], ...]) -> None:
        """Let the task say which texts report a failure, in place of the usual patterns (SPEC 4)."""
        failed = any(pattern.search(action.result) for pattern in error_when)
        action.ok, action.by_text = not failed, failed
        action.error = first_line(action.result) if failed else None

    def hear(self, step: Step, agent: str | None) -> None:
        """Fold a text that a model or agent gave; it may meet conditions that name no tool."""
        task = self.task
        view = View(
            tool=None,
            ok=step.ok,
            args=None,
            result=None,
            text=step.output,
            agent=agent,
            duration=max(0, step.end_ns - step.start_ns) / 1e9,
            attributes=step.attributes,
            run=self,
        )
        mark = Mark(self.actions, step.end_ns, step.span_id)
        true = self._true(task.milestones_for(None), view)
        traps = self._true_traps(task.traps_for(None), view)
        if true and self._advance(true, mark, None, {}, not self.plan.k or self.actions <= self.plan.k):
            self._repeats.start_stretch()
        self._spring(traps, mark)
        self.faults.extend(view.faults)

    def _flag(self, finding: str, action: int, detail: str, span_id: str) -> None:
        self.findings.append(Finding(finding, action, detail, span_id))
        if finding not in self.found:
            self.found = (*self.found, finding)

    # Grounding (7.1).

    def _invented(self, action: Action, candidates: tuple[int, ...]) -> dict[str, list[str]]:
        """Return the values (canonical value -> argument names) that the agent cannot have known at the call."""
        task = self.task
        own = [pattern for i in candidates for pattern in task.milestones[i].grounded]
        invented: dict[str, list[str]] = {}
        if not (task.grounded or own):
            return invented
        sources = self.sources
        asked = (
            (name, leaf)
            for name, leaf in leaves(action.args)
            if task.is_grounded(name) or any(fnmatchcase(name, pattern) for pattern in own)
        )
        for name, leaf in islice(asked, GROUNDED_MAX):
            value = canonical(leaf)
            if value is None or isinstance(leaf, bool):
                continue
            if sources.earliest_ns is None or sources.earliest_ns > action.start_ns:
                sources.trust(value, action.start_ns)  # no text at all so far: it cannot be judged
            elif not sources.knows(value, action.start_ns):
                invented.setdefault(value, []).append(name)
        if invented:
            named = list(dict.fromkeys(name[:NAME_CHARS_MAX] for name in chain(*invented.values())))[:NAMES_SHOWN]
            self._flag(names.FABRICATED, action.n, f"{', '.join(named)}: value seen nowhere before", action.span_id)
        return invented

    def _is_invented(self, milestone: Milestone, invented: dict[str, list[str]]) -> bool:
        return any(
            self.task.is_grounded(name) or any(fnmatchcase(name, pattern) for pattern in milestone.grounded)
            for name in chain(*invented.values())
        )

    # Milestones and traps.

    def _true(self, candidates: tuple[int, ...], view: View) -> list[Milestone]:
        """Return the milestones whose condition holds.

        One that held before matters only for its required fields, or while nobody has used its result.
        """
        held, unused = self.progress.held, self.progress.uses
        milestones = self.task.milestones
        return [
            milestones[i]
            for i in candidates
            if (held[i] is None or milestones[i].required or i in unused) and milestones[i].condition.holds(view)
        ]

    def _advance(
        self, true: list[Milestone], mark: Mark, action: Action | None, invented: dict[str, list[str]], in_time: bool
    ) -> int:
        """Let milestones hold or go by; returns how many newly hold. Those of one step may depend on one another."""
        progress = self.progress
        waiting = []
        for milestone in true:
            fabricated = bool(invented) and self._is_invented(milestone, invented)
            if progress.held[milestone.index] is not None:
                again = in_time and not fabricated and milestone.index in progress.uses
                if again and action is not None and not _lacks(milestone, action):
                    progress.hold_again(milestone, use_of(action, self.sources))
            elif in_time and fabricated:
                progress.pass_by(milestone, mark, names.FABRICATED)
            else:
                waiting.append(milestone)
        news = 0
        while waiting:
            ready = [m for m in waiting if self.task.order == "any" or progress.ready(m)]
            if not ready:
                break
            waiting = [m for m in waiting if m not in ready]
            for milestone in ready:
                news += self._admit(milestone, mark, action, invented, in_time)
        if in_time:
            for milestone in waiting:
                progress.pass_by(milestone, mark, names.OUT_OF_ORDER)
            progress.open_fallbacks()
        return news

    def _admit(
        self, milestone: Milestone, mark: Mark, action: Action | None, invented: dict[str, list[str]], in_time: bool
    ) -> bool:
        """Let a milestone hold whose dependencies hold, unless something else stands against it."""
        lacks = action is not None and _lacks(milestone, action)
        if not in_time:
            if not lacks and not (invented and self._is_invented(milestone, invented)):
                self.progress.pass_by(milestone, mark, names.CUT_OFF)
            return False
        if lacks and action is not None:
            self.progress.pass_by(milestone, mark, names.MISSING_FIELD if action.has_result else names.NO_CONTENT)
            return False
        self.progress.hold(milestone, mark, self._use(milestone, action))
        return True

    def _use(self, milestone: Milestone, action: Action | None) -> Use | None:
        if not milestone.used:
            return None
        return use_of(action, self.sources) if action is not None else NOTHING

    def _true_traps(self, candidates: tuple[int, ...], view: View) -> list[Trap]:
        """Return the traps not hit so far whose condition holds, seen from before this step."""
        if not candidates:
            return []
        hit = {trap.index for trap in self.traps}
        traps = self.task.traps
        return [traps[i] for i in candidates if i not in hit and traps[i].condition.holds(view)]

    def _spring(self, true: list[Trap], mark: Mark) -> None:
        """Spring traps, but those whose milestones have all been reached by now."""
        for trap in true:
            guards = trap.when_not_reached
            if not (guards and all(self.progress.reached[i] for i in guards)):
                self.traps.append(TrapHit(trap.index, mark.n, mark.span_id))
                self._flag(names.TRAP, mark.n, f"trap {trap.id}", mark.span_id)

    # Obstacles (6.3).

    def _meet_obstacle(self, action: Action, true: list[Milestone]) -> bool:
        """Open an obstacle or count a retry of it; says whether this is a failing call beyond the retry cap."""
        kind = self._trouble(action, true)
        action.retry = self.obstacles.is_open(action.tool)
        if kind is None:
            self.obstacles.succeed(action.tool)
            return False
        blocked = self._blocked(action.tool) if not action.retry else None
        obstacle = self.obstacles.meet(
            Obstacle(
                kind=kind,
                tool=action.tool,
                milestone=blocked.index if blocked else None,
                layer=blocked.layer if blocked else 0,
                action=action.n,
                span_id=action.span_id,
            )
        )
        over = obstacle.retries - self.task.retry_cap
        if over == 1:
            detail = f"{self.task.retry_cap} retries were not enough"
            self._flag(names.STUCK, action.n, detail, action.span_id)
        return over > 0 and not action.ok

    def _trouble(self, action: Action, true: list[Milestone]) -> str | None:
        if not action.ok:
            return "error"
        result = action.result
        if action.cut or (action.has_result and any(_lacks(m, action) for m in true)):
            return "bad_data"
        if isinstance(result, dict):
            if any(result.get(key) is True for key in TRUNCATED_KEYS):
                return "bad_data"
        elif isinstance(result, str) and action.tool in self._json_tools:
            return "bad_data"
        if not action.derived:  # a derived call has no duration of its own
            baseline = self._baselines.of(action.tool)
            if baseline is not None and action.seconds > self.task.slow_factor * baseline:
                return "slow"
        return None

    def _blocked(self, tool: str) -> Milestone | None:
        blocked = self.task.blocked_by(tool)
        reached = self.progress.reached
        index = next((i for i in blocked if not reached[i]), blocked[0] if blocked else None)
        return None if index is None else self.task.milestones[index]

    # Classes and loops (6.2, 7.3, 7.4).

    def _classify(self, action: Action, stuck: bool, in_time: bool, news: int) -> None:
        task = self.task
        repeat = self._repeats.repeats(action)
        if self.plan.matched and not task.effective(action.tool):
            action.klass = "off_task"
        elif repeat:
            action.klass = "repeat"
        elif stuck:
            action.klass = "stuck"
        elif not in_time:
            action.klass = "cut_off"
        else:
            action.klass = "effective"
        self.classes[action.klass] += 1
        if not in_time:
            if not self._capped:
                self._capped = True
                self._flag(names.STUCK, action.n, f"more than {task.k} actions", action.span_id)
            return
        if news:
            self._repeats.start_stretch()
        if self._repeats.loops():
            detail = f"the same call with the same result {LOOP_REPEATS} times and nothing new reached between"
            self._flag(names.LOOP, action.n, detail, action.span_id)
            self._flag(names.STUCK, action.n, "loop", action.span_id)

    def _learn(self, action: Action, invented: dict[str, list[str]]) -> None:
        """Take in what this action teaches for later ones."""
        if action.ok:
            if not action.derived:
                self._baselines.learn(action.tool, action.seconds)
            if isinstance(action.result, dict | list):
                self._json_tools.add(action.tool)
        if self.plan.traces_values:
            if action.has_result:
                self.sources.add_result(action.result, action.end_ns, invented=invented)
            if action.error:
                self.sources.add_result(action.error, action.end_ns, invented=invented, tells=False)


def _lacks(milestone: Milestone, action: Action) -> bool:
    """Say whether a required path of the result is missing or null."""
    for path in milestone.required:
        value = path.get(action.result)
        if value is None or value is MISSING:
            return True
    return False

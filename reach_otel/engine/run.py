"""Keep one run: its steps, and everything that follows from the set of them, whatever the order in which they came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from reach_otel.engine.action import FOREVER_NS
from reach_otel.engine.assemble import Assembly, Effect
from reach_otel.engine.beside import Beside
from reach_otel.engine.calls import is_put_off
from reach_otel.engine.choose import Evidence
from reach_otel.engine.events import MilestoneView, RunSummary
from reach_otel.engine.fold import Fold
from reach_otel.engine.scores import high_layer, overall
from reach_otel.engine.sources import Sources
from reach_otel.engine.tree import Tree
from reach_otel.span.step import ACTION_KINDS, Step

if TYPE_CHECKING:
    from reach_otel.engine.action import Action
    from reach_otel.engine.events import VariantBy
    from reach_otel.engine.plan import Plan

Key = tuple[int, int, str]


def step_key(step: Step) -> Key:
    """Sort steps by end, then start; ids only make the order total."""
    return (step.end_ns, step.start_ns, step.span_id)


class Run:
    """Hold the steps of one run and fold them as they come; what arrives late is folded anew when somebody looks.

    A step that ended after all others costs constant time. Any other only marks the fold as stale, so that a batch of
    late steps costs one new fold, of at most the kept actions.
    """

    __slots__ = (
        "_folded",
        "_latest",
        "_stale",
        "_texts",
        "_views",
        "assembly",
        "beside",
        "due_ns",
        "evidence",
        "faults_told",
        "fold",
        "id",
        "latest_ns",
        "plan",
        "sources",
        "started_ns",
        "steps",
        "tool_steps",
        "trace_id",
        "tree",
    )

    def __init__(self, run_id: str, trace_id: str, plan: Plan, actions_max: int) -> None:
        self.id = run_id
        self.trace_id = trace_id
        self.plan = plan
        self.steps: dict[str, Step] = {}
        self.tree = Tree()
        self.assembly = Assembly(actions_max)
        self.evidence = Evidence()
        self.beside = Beside()
        self.started_ns = 0  # Unix time of the earliest start
        self.latest_ns = 0  # Unix time of the latest end
        self.due_ns = 0  # caller's time of the verdict, if nothing more comes
        self.tool_steps = 0
        self.faults_told: Counter[str] = Counter()  # by kind
        self._latest: Key = (-1, -1, "")
        self._folded: tuple[int, int, str, int] = (-1, -1, "", 0)  # key of the last thing folded
        self._texts: dict[str, int] = {}  # text -> time from which it could be read
        self._stale = False
        self._views: list[MilestoneView] = []
        self._start_over()

    def _start_over(self) -> None:
        self.sources = Sources()
        for value in self.plan.constants:
            self.sources.trust(value, 0)
        self.fold = Fold(self.plan, self.sources)
        self._folded = (-1, -1, "", 0)

    # Taking steps in.

    def add(self, step: Step, *, outside: bool = False) -> None:
        """Add a step that is not there yet; ``outside``: it stands above the run and takes no part in it."""
        awaited = self.tree.add(step)
        if step.kind == "other" and not is_put_off(step):
            if not outside:
                self.beside.note(step)
            if awaited and not self._stale:
                self._stale = self.plan.asks_agent or self.tree.tool_above(step.span_id) is not None
            return
        if not self.steps or step.start_ns < self.started_ns:
            self.started_ns = step.start_ns
        self.latest_ns = max(self.latest_ns, step.end_ns)
        self.steps[step.span_id] = step
        self.tool_steps += step.kind in ACTION_KINDS
        if not self._stale:
            self._stale = True  # also if what follows fails
            self._stale = not self._follow(step, awaited)

    def _follow(self, step: Step, awaited: bool) -> bool:
        """Fold a step that ended after all others; says whether that was possible, or all must be folded anew."""
        key = step_key(step)
        if key < self._latest or (step.kind == "agent" and awaited and self.plan.asks_agent):
            return False
        self._latest = key
        before = len(self.assembly.actions)
        recalled = len(self.assembly.recalled)
        effect = self.assembly.extend(step, self.tree, awaited)
        if effect is Effect.REBUILD or not self._read(step) or not self._recall(recalled):
            return False
        if effect is Effect.APPENDED:
            new = self.assembly.actions[before:]
            self.name_agents(new)
            for action in new:
                if action.key < self._folded:
                    return False
                self._folded = action.key
                self.fold.feed(action)
        return not self.plan.hears or step.output is None or self._hear(step)

    def _hear(self, step: Step) -> bool:
        key = (*step_key(step), 0)
        if key < self._folded:
            return False
        self._folded = key
        self.fold.hear(step, self.agent_of(step))
        return True

    def _read(self, step: Step) -> bool:
        """Add what the agent was told; says whether no action folded so far would have been judged otherwise."""
        if not step.texts or not self.plan.traces_values or self.tree.tool_above(step.span_id) is not None:
            return True
        at_ns = step.start_ns
        for text in step.texts:
            known_ns = self._texts.get(text.text, FOREVER_NS)
            if known_ns <= at_ns:
                continue
            if at_ns <= self.fold.latest_start_ns and any(
                at_ns <= action.start_ns < known_ns for action in self.assembly.actions
            ):
                return False
            self._texts[text.text] = at_ns
            self.sources.add_text(text.text, at_ns)
        return True

    def _recall(self, already: int) -> bool:
        """Add results of earlier runs which the history of a message brings back; says as :meth:`_read` does."""
        if self.plan.traces_values:
            for answer, at_ns in self.assembly.recalled[already:]:
                if at_ns <= self.fold.latest_start_ns:
                    return False
                self.sources.add_result(answer.result, at_ns)
        return True

    def replan(self, plan: Plan) -> None:
        """Score against another task from now on."""
        if plan is not self.plan:
            self.plan = plan
            self._views = []
            if self.steps:
                self._stale = True
            else:
                self._start_over()

    def absorb(self, other: Run) -> None:
        """Take over everything of a run that turned out to be a part of this one."""
        self.tree.absorb(other.tree)
        for span_id, step in other.steps.items():
            self.steps.setdefault(span_id, step)
        self.evidence.absorb(other.evidence)
        self.beside.absorb(other.beside)
        self.faults_told += other.faults_told
        self.tool_steps = sum(step.kind in ACTION_KINDS for step in self.steps.values())
        self.started_ns = min(self.started_ns, other.started_ns)
        self.latest_ns = max(self.latest_ns, other.latest_ns)
        self._stale = True

    def restore(self, steps: list[Step], parents: dict[str, str | None], tops: dict[str, bool]) -> None:
        """Become the run of these steps; it is folded when somebody looks."""
        self.tree.restore(steps, parents, tops)
        self.steps = {step.span_id: step for step in steps}
        self.tool_steps = sum(step.kind in ACTION_KINDS for step in steps)
        self.started_ns = min((step.start_ns for step in steps), default=0)
        self.latest_ns = max((step.end_ns for step in steps), default=0)
        self._stale = True

    # Looking.

    def settle(self, *, final: bool = False) -> None:
        """Fold anew if something arrived that changes what was folded; ``final``: nothing more will come."""
        if final or self._stale or self.assembly.asks.open:
            over_ns = FOREVER_NS if final else self._over_ns()
            if self._stale or (over_ns is not None and self.assembly.would_give_up(over_ns)):
                self._refold(over_ns)

    def _over_ns(self) -> int | None:
        """Return the Unix time by which the run had ended, if it has; another turn of a conversation may follow it."""
        if not self.is_over:
            return None
        rooted = self.tree.rooted
        return max((a.end_ns for a in self.tree.outer_agents() if a.span_id in rooted), default=FOREVER_NS)

    def _refold(self, over_ns: int | None) -> None:
        self._stale = True  # also if what follows fails
        self._views = []
        self._start_over()
        steps = sorted(self.steps.values(), key=step_key)
        self._latest = step_key(steps[-1]) if steps else (-1, -1, "")
        if self.plan.traces_values:
            self._read_all(steps)
        self.assembly.rebuild(steps, self.tree, over_ns=over_ns)
        if self.plan.traces_values:
            for answer, at_ns in self.assembly.recalled:
                self.sources.add_result(answer.result, at_ns)
        self.name_agents(self.assembly.actions)
        entries: list[tuple[tuple[int, int, str, int], Action | Step]] = [(a.key, a) for a in self.assembly.actions]
        if self.plan.hears:
            entries.extend(((*step_key(s), 0), s) for s in steps if s.output is not None)
            entries.sort(key=_entry_key)
        for key, entry in entries:
            self._folded = key
            if isinstance(entry, Step):
                self.fold.hear(entry, self.agent_of(entry))
            else:
                self.fold.feed(entry)
        self._stale = False

    def _read_all(self, steps: list[Step]) -> None:
        self._texts = {}
        for step in steps:
            if step.texts and self.tree.tool_above(step.span_id) is None:
                for text in step.texts:
                    self._texts[text.text] = min(self._texts.get(text.text, FOREVER_NS), step.start_ns)
        for known, at_ns in self._texts.items():
            self.sources.add_text(known, at_ns)

    def name_agents(self, actions: Iterable[Action]) -> None:
        """Give actions the name of the nearest agent above them, which often ends after they do."""
        if self.tree.agents:
            for action in actions:
                action.agent = self.agent_of(action)

    def agent_of(self, acting: Step | Action) -> str | None:
        """Name the agent that a step or action tells itself, else the nearest one above it."""
        if acting.agent is not None:
            return acting.agent
        agent = self.tree.agent_above(acting.span_id)
        return agent.agent if agent is not None else None

    def new_faults(self) -> list[str]:
        """Return the faults of conditions not told so far; folding anew meets the old ones again."""
        if not self.fold.faults:
            return []
        met = Counter(self.fold.faults)
        new = met - self.faults_told
        self.faults_told |= met
        return list(new.elements())

    @property
    def is_over(self) -> bool:
        """Say whether the root has ended: the outermost agent, with nothing above it that could still be open."""
        return self.over_state() == "over"

    def over_state(self) -> str:
        """Return ``over``, ``agent_over`` (an agent has ended, but what started it has not been seen) or ``open``."""
        tree = self.tree
        if tree.agents:
            return "over" if tree.is_ended else "agent_over"
        return "open" if tree.awaited or not tree.tops else "over"

    @property
    def variant(self) -> str | None:
        """Name what is compared (SPEC 2)."""
        return self._variant[0]

    @property
    def variant_by(self) -> VariantBy | None:
        """Say where :attr:`variant` comes from."""
        return self._variant[1]

    @property
    def _variant(self) -> tuple[str | None, VariantBy | None]:
        fixed, evidence = self.plan.task.variant, self.evidence
        if fixed:
            return fixed, "task"
        if evidence.variant:
            _, name, on_span = evidence.variant
            return name, "span" if on_span else "named"
        if evidence.version:
            return evidence.version[1], "named"
        return (evidence.model[1], "model") if evidence.model else (None, None)

    @property
    def agent(self) -> str | None:
        """Name the agent whose run this is: the outermost one that has a name, else the earliest named."""
        if len(self.evidence.agents) < 2:
            return self.evidence.agents[0] if self.evidence.agents else None
        outer, rooted = self.tree.outer_agents(), self.tree.rooted
        if rooted:  # these go first: another may be an inner one whose parent was lost
            named = next((a.agent for a in outer if a.agent is not None and a.span_id in rooted), None)
            if named is not None:
                return named
        named = next((a.agent for a in outer if a.agent is not None), None)
        if named is not None:
            return named
        inner = [s for s in self.tree.agents.values() if s.agent is not None]
        inner = inner or [s for s in self.steps.values() if s.agent is not None]
        return min(inner, key=lambda s: (s.start_ns, s.span_id)).agent if inner else None

    def summary(self) -> RunSummary:
        """Show the run in small."""
        self.settle()
        fold = self.fold
        progress = fold.progress
        depth, purity, digestion, composite = overall(
            progress, fold.classes, has_output=False, trapped=bool(fold.traps)
        )
        return RunSummary(
            run_id=self.id,
            trace_id=self.trace_id,
            task=self.plan.task.name,
            agent=self.agent,
            variant=self.variant,
            started_ns=self.started_ns,
            latest_ns=self.latest_ns,
            actions=fold.actions,
            last_tool=self.assembly.actions[-1].tool if self.assembly.actions else None,
            depth=depth,
            purity=purity,
            digestion=digestion,
            composite=composite,
            high_layer=high_layer(progress),
            milestones=self._milestones(),
            findings=fold.found,
            variant_by=self.variant_by,
        )

    def _milestones(self) -> tuple[MilestoneView, ...]:
        progress = self.fold.progress
        milestones = self.plan.task.milestones
        if not self._views:
            progress.changed.update(range(len(milestones)))
            self._views = [MilestoneView(m.id, m.type, m.layer, "missed", None, None) for m in milestones]
        for index in progress.changed:
            state, reason, mark = progress.state(index)
            m = milestones[index]
            self._views[index] = MilestoneView(m.id, m.type, m.layer, state, reason, mark.n if mark else None)
        progress.changed.clear()
        return tuple(self._views)


def _entry_key(entry: tuple[tuple[int, int, str, int], object]) -> tuple[int, int, str, int]:
    return entry[0]

"""Score a whole run at once, slowly and plainly: the second opinion against which the streaming engine is held.

Written from the definitions alone (sections 3, 4, 6 and 7 of the specification), it sees all steps together, looks at
everything as often as it likes, and keeps no state between calls. It models a run's actions, classes, milestones,
obstacles, traps, the findings in ``FINDINGS`` and all scores; not levels, tokens or cost.
"""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from reach_otel.span.step import ACTION_KINDS
from reach_otel.task.condition import View
from reach_otel.task.path import MISSING
from tests.property.plain_actions import Tree, actions_of
from tests.property.plain_values import Sources, held_in, leaves, same_scalar, tokens, trivial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reach_otel.engine.action import Action
    from reach_otel.span.step import Step
    from reach_otel.task.task import Milestone, Task

FINDINGS = frozenset({"fabricated", "unused", "loop", "stuck", "trap", "hallucinated_success"})
AT_THE_END = 10**9  # "action number" at which the final output makes a result used


class NoRun:
    """Stand in for the run in conditions; the tasks of these tests do not ask for it."""

    def as_cel(self) -> dict[str, Any]:
        raise AssertionError("conditions of these tests do not look at the run")


@dataclass
class Goal:
    """Where one milestone stands."""

    milestone: Milestone
    held: Action | None = None
    again: list[Action] = field(default_factory=list)  # later actions on which it would hold: their results count too
    passed: Action | None = None
    reason: str | None = None
    reached_at: int | None = None  # number of the action that made it reached
    by_use: bool = False  # reached because that action used its result: before that action came to anything


@dataclass
class Block:
    """One obstacle."""

    kind: str
    tool: str
    milestone: Milestone | None
    action: int
    retries: int = 0
    satisfied_at: int | None = None  # the first action by which a milestone at the same depth or deeper was reached


class Run:
    """One run, scored when made."""

    def __init__(self, task: Task | None, steps: Iterable[Step], *, final: bool) -> None:
        self.task, self.final = task, final
        self.tree = Tree(steps)
        self.actions = actions_of(self.tree, final=final)
        self.k = task.k if task else AT_THE_END
        self.retry_cap = task.retry_cap if task else 2
        self.counted = [a for a in self.actions if a.n <= self.k]
        self.output = self.tree.final_output() if final or self.tree.ended() else None
        told = [s for s in self.tree.steps if s.kind != "other"] or self.tree.steps
        self.start_ns = min(s.start_ns for s in told)
        self.end_ns = max(s.end_ns for s in told)
        self.sources = Sources(self.tree, self.actions, task.constants if task else ())
        self.findings: set[tuple[str, int | None]] = set()
        self.goals = [Goal(m) for m in (task.milestones if task else ())]
        self.blocks: list[Block] = []
        self.traps: list[tuple[str, Action]] = []
        self.hold()
        self.reach()
        self.obstruct()
        self.trap()
        self.classify()
        self.loop()
        self.claim()

    def true(self, condition: Any, action: Action) -> bool:
        text = action.result if isinstance(action.result, str) else json.dumps(action.result)
        view = View(
            tool=action.tool,
            ok=action.ok,
            args=action.args,
            result=action.result,
            text=text if action.has_result else None,
            agent=action.agent,
            duration=action.seconds,
            attributes=None,
            run=NoRun(),
        )
        return bool(condition.holds(view))

    # Milestones

    def hold(self) -> None:
        """Go through the actions in order and see which milestones hold."""
        grounded = self.task.is_grounded if self.task else never
        for action in self.actions:
            candidates = self.task.milestones_for(action.tool) if self.task else ()
            asks = [grounded, *(named_by(self.goals[index].milestone) for index in candidates)]
            made_up = bool(self.sources.ungrounded(action, grounded))
            for goal in self.in_graph_order():
                if self.true(goal.milestone.condition, action):
                    own = bool(self.sources.ungrounded(action, named_by(goal.milestone)))
                    if goal.held is None:
                        self.meet(goal, action, fabricated=made_up or own)
                    elif action.n <= self.k and not (made_up or own or self.misses_field(goal.milestone, action)):
                        goal.again.append(action)
            if any(self.sources.ungrounded(action, asked_for) for asked_for in asks):
                self.findings.add(("fabricated", action.n))
            for asked_for in asks:
                self.sources.take(action, asked_for)

    def in_graph_order(self) -> list[Goal]:
        done: list[Goal] = []

        def visit(index: int) -> None:
            for group in self.goals[index].milestone.depends_on:
                for dependency in group:
                    visit(dependency)
            if self.goals[index] not in done:
                done.append(self.goals[index])

        for index in range(len(self.goals)):
            visit(index)
        return done

    def meet(self, goal: Goal, action: Action, *, fabricated: bool) -> None:
        """Decide what a true condition is worth."""
        assert self.task is not None
        milestone = goal.milestone
        early = not all(any(self.goals[d].held for d in group) for group in milestone.depends_on)
        reason = None
        if fabricated:
            reason = "fabricated"
        elif early and self.task.order == "strict":
            reason = "out_of_order"
        elif self.misses_field(milestone, action):
            reason = "missing_field" if action.has_result else "no_content"
        if action.n > self.k:
            if reason is not None:
                return
            reason = "cut_off"
        if reason is None:
            goal.held, goal.reason = action, None
        else:
            goal.passed, goal.reason = goal.passed or action, reason

    def misses_field(self, milestone: Milestone, action: Action) -> bool:
        found = [path.get(action.result) for path in milestone.required]
        return any(value is None or value is MISSING for value in found)

    def reach(self) -> None:
        """Find out when each held milestone was reached."""
        for goal in self.goals:
            if goal.held is None:
                continue
            if not goal.milestone.used:
                goal.reached_at = goal.held.n
                continue
            sources = [goal.held, *goal.again]
            uses = [n for n in map(self.used_at, sources) if n is not None]
            goal.reached_at, goal.by_use = min(uses, default=None), True
            if not uses:
                goal.reason = "unused" if any(source.has_result for source in sources) else "no_content"
                self.findings.add(("unused", goal.held.n))

    def used_at(self, source: Action) -> int | None:
        own = [value for _, value in leaves(source.args)]
        said = [value for _, value in leaves(source.result)]
        said += [token for text in said if isinstance(text, str) for token in tokens(text)]
        values = [
            value
            for value in said
            if not trivial(value)
            and not self.sources.know(value, source)
            and not any(held_in(value, arg) for arg in own)
        ]

        def has(action: Action, key: str | None, value: Any) -> bool:
            return any(key == name and same_scalar(value, arg) for name, arg in leaves(action.args))

        pairs = [(key, value) for key, value in leaves(source.result) if trivial(value) and key is not None]
        pairs = [(key, value) for key, value in pairs if not has(source, key, value)]
        for action in self.counted:
            if action.n > source.n and action.start_ns >= source.end_ns:
                args = [arg for _, arg in leaves(action.args)]
                if any(held_in(value, arg) for value in values for arg in args) or any(has(action, *p) for p in pairs):
                    return action.n
        if self.output is not None and any(held_in(value, self.output) for value in values):
            return AT_THE_END
        return None

    # Obstacles

    def obstruct(self) -> None:
        """Open, prolong and close obstacles, and see which were overcome."""
        is_open: dict[str, Block] = {}
        for action in self.counted:
            kind = self.trouble(action)
            if kind is None:
                is_open.pop(action.tool, None)
            elif action.tool in is_open:
                block = is_open[action.tool]
                block.retries += 1
                if block.retries > self.retry_cap and not action.ok:
                    action.klass = "stuck"
                if block.retries == self.retry_cap + 1:
                    self.findings.add(("stuck", action.n))
            else:
                is_open[action.tool] = self.block(kind, action, self.blocked(action))
            for goal in self.in_graph_order():
                fresh = goal.milestone.type == "fallback" and goal.reached_at == action.n
                if fresh and all(self.digested(block, action.n) for block in self.blocks):
                    covers = goal.milestone.covers
                    blocked = None if covers is None else self.goals[covers].milestone
                    self.block("fallback", action, blocked)

    def block(self, kind: str, action: Action, milestone: Milestone | None) -> Block:
        layer = milestone.layer if milestone else 0
        block = Block(kind, action.tool, milestone, action.n)
        done = self.reached_by if kind == "fallback" else self.reached_before
        later = [g for g in self.goals if g.milestone.type == "must" and not done(g, action)]
        reached = [g.reached_at for g in later if g.milestone.layer >= layer]
        block.satisfied_at = min((n for n in reached if n is not None), default=None)
        self.blocks.append(block)
        return block

    def reached_before(self, goal: Goal, action: Action) -> bool:
        """Say whether a milestone was reached before an action came to anything."""
        n = goal.reached_at
        return n is not None and (n < action.n or (n == action.n and goal.by_use))

    def reached_by(self, goal: Goal, action: Action) -> bool:
        """Say whether a milestone was reached when all that an action brought was counted."""
        return goal.reached_at is not None and goal.reached_at <= action.n

    def digested(self, block: Block, now: int) -> bool:
        return block.satisfied_at is not None and block.satisfied_at <= now and block.retries <= self.retry_cap

    def trouble(self, action: Action) -> str | None:
        """Say what is wrong with an action: ``error``, ``bad_data``, ``slow`` or nothing."""
        if not action.ok:
            return "error"
        earlier = [a for a in self.actions if a.n < action.n and a.tool == action.tool and a.ok]
        flagged = isinstance(action.result, dict) and any(
            action.result.get(name) is True for name in ("truncated", "incomplete", "is_truncated")
        )
        unparsable = isinstance(action.result, str) and any(isinstance(a.result, dict | list) for a in earlier)
        incomplete = action.has_result and any(
            self.misses_field(g.milestone, action) and self.true(g.milestone.condition, action) for g in self.goals
        )
        if action.cut or flagged or unparsable or incomplete:
            return "bad_data"
        if action.derived:
            return None  # such calls have no duration of their own
        seconds = [a.seconds for a in earlier if not a.derived][-64:]
        learned = statistics.median(seconds) if len(seconds) >= 5 else None
        baseline = self.task.baselines.get(action.tool, learned) if self.task else learned
        factor = self.task.slow_factor if self.task else 3.0
        return "slow" if baseline is not None and action.seconds > factor * baseline else None

    def blocked(self, action: Action) -> Milestone | None:
        goals = [self.goals[i] for i in (self.task.blocked_by(action.tool) if self.task else ())]
        missing = [g for g in goals if not self.reached_before(g, action)]
        return (missing or goals)[0].milestone if goals else None

    # Traps, classes, loops

    def trap(self) -> None:
        for trap in self.task.traps if self.task else ():
            for action in self.actions:
                gates = [self.goals[i].reached_at for i in trap.when_not_reached]
                open_ = not gates or not all(n is not None and n <= action.n for n in gates)
                if open_ and self.true(trap.condition, action):
                    self.traps.append((trap.id, action))
                    self.findings.add(("trap", action.n))
                    break

    def classify(self) -> None:
        for action in self.actions:
            before = [a for a in self.actions if a.n < action.n and a.has_args and outcome_of(a) is not None]
            twins = [a for a in before if a.tool == action.tool and a.args == action.args]
            again = action.has_args and bool(twins) and outcome_of(twins[-1]) == outcome_of(action)
            if self.task and not self.task.effective(action.tool):
                action.klass = "off_task"
            elif again:
                action.klass = "repeat"
            elif action.klass != "stuck" and action.n > self.k:
                action.klass = "cut_off"
        if len(self.actions) > self.k:
            self.findings.add(("stuck", self.k + 1))

    def loop(self) -> None:
        """Find the same thing done three times with no new milestone between; once for each such stretch."""
        stretch: list[Any] = []
        flagged = False
        for action in self.counted:
            if any(g.held is action for g in self.goals):
                stretch, flagged = [], False
            stretch.append(self.signature(action))
            if not flagged and stretch[-1] is not None and stretch.count(stretch[-1]) >= 3:
                flagged = True
                self.findings |= {("loop", action.n), ("stuck", action.n)}

    def signature(self, action: Action) -> Any:
        if outcome_of(action) is None or not action.has_args:
            return None
        args = action.args
        if isinstance(args, dict) and self.task:
            args = {name: value for name, value in args.items() if not self.task.is_free_text(name)}
        return (action.tool, args, outcome_of(action))

    # Scores

    def scores(self) -> dict[str, Any]:
        must = [g for g in self.goals if g.milestone.type == "must"]
        deepest = max((g.milestone.layer for g in must), default=0)
        depth = self.depth(must)
        purity = sum(a.klass == "effective" for a in self.actions) / max(1, len(self.actions))
        digested = [self.digested(block, AT_THE_END) for block in self.blocks]
        digestion = sum(digested) / len(digested) if digested else None
        optional = share([g for g in self.goals if g.milestone.type == "optional"])
        return {
            "depth": depth,
            "purity": purity,
            "digestion": digestion,
            "composite": self.composite(depth, purity, digestion, optional),
            "high_layer": share([g for g in must if g.milestone.layer == deepest]),
            "coverage": int(depth == 1),
            "reach_at_k": {
                str(k): share(must, k) if must else depth for k in ((5, 10, self.k) if self.task else (5, 10))
            },
            "optional_reach": optional,
            "fallback_reach": share([g for g in self.goals if g.milestone.type == "fallback"]),
        }

    def depth(self, must: list[Goal]) -> float:
        if self.task is None or not must:
            return float(self.task is not None and not self.traps and self.output is not None)
        weights = [self.task.layer_weights[g.milestone.layer - 1] for g in must]
        return sum(w for g, w in zip(must, weights, strict=True) if g.reached_at is not None) / sum(weights)

    def composite(self, depth: float, purity: float, digestion: float | None, optional: float | None) -> float:
        if self.traps or depth == purity == 0:
            return 0.0  # also under no_obstacle: one, who does nothing of use scores nothing
        if self.task is None:
            parts: list[tuple[float, float | None]] = [(0.4, depth), (0.3, purity), (0.3, digestion)]
            bonus = 0.0
        else:
            if digestion is None and self.task.no_obstacle == "one":
                digestion = 1.0
            w = self.task.weights
            parts = [(w.depth, depth), (w.purity, purity), (w.digestion, digestion)]
            bonus = self.task.optional_bonus * (optional or 0.0)
        present = [(weight, value) for weight, value in parts if value is not None]
        return min(1.0, sum(w * v for w, v in present) / sum(w for w, _ in present) + bonus)

    def claim(self) -> None:
        """Look whether the final output claims a success that there was not."""
        must = [g for g in self.goals if g.milestone.type == "must"]
        claims = self.task.delivery.claims_success if self.task and self.task.delivery else ()
        if self.output is not None and not all(g.reached_at for g in must):
            self.findings |= {("hallucinated_success", None) for claim in claims if claim.search(self.output)}

    def outcome(self) -> str:
        """Name the outcome; a ``delivery`` of these tests asks for no more than an output where all is reached."""
        roots = self.tree.roots()
        if not self.final:
            return "running"
        if not roots:
            return "abandoned"
        must = [g for g in self.goals if g.milestone.type == "must"]
        ended_well = all(r.ok for r in roots)
        if self.traps or not (any(g.reached_at for g in must) if must else ended_well):
            return "failed"
        unseen = self.task is None or (bool(must) and not self.content())
        answered = self.output is not None or unseen
        if ended_well and answered and all(g.reached_at for g in must):
            return "success"
        return "partial" if must or self.task is None else "failed"

    def content(self) -> bool:
        """Say whether anything of what was said can be seen at all."""
        return any(s.has_args or s.has_result or s.texts or s.output or s.calls for s in self.tree.steps)


def share(goals: list[Goal], k: int = AT_THE_END) -> float | None:
    """Give the share of reached milestones among these, or None if there is none."""
    done = [g for g in goals if g.reached_at is not None and g.held is not None and g.held.n <= k]
    return len(done) / len(goals) if goals else None


def outcome_of(action: Action) -> Any:
    """What came of a call, for comparing two; None where that is not known."""
    if action.has_result:
        return ("result", action.result)
    return None if action.ok else ("error", action.error)


def never(_name: str) -> bool:
    return False


def named_by(milestone: Milestone) -> Callable[[str], bool]:
    """Say of an argument name whether this milestone wants it grounded."""
    return lambda name: any(fnmatchcase(name, glob) for glob in milestone.grounded)


def choose(tasks: Iterable[Task], steps: Iterable[Step]) -> Task | None:
    """Choose the task of a run: named on a step, matching its agent, or the only one that knows one of its tools."""
    steps = Tree(steps).steps
    in_time = sorted(steps, key=lambda s: (s.start_ns, s.end_ns, s.span_id))
    by_name = {task.name: task for task in tasks}
    for step in in_time:
        if step.task in by_name:
            return by_name[step.task]
    matching = [
        task
        for name, task in sorted(by_name.items())
        if task.match and task.match.agent and any(fnmatchcase(s.agent or "", task.match.agent) for s in steps)
    ]
    if matching:
        return matching[0]
    asked = [(s.end_ns, s.start_ns, s.span_id, 0, s.tool) for s in steps if s.kind in ACTION_KINDS and s.tool]
    asked += [(s.end_ns, s.start_ns, s.span_id, index, call.tool) for s in steps for index, call in enumerate(s.calls)]
    for *_, tool in sorted(asked):
        knowing = [task for task in by_name.values() if task.knows(tool)]
        if len(knowing) == 1:
            return knowing[0]
    return None


def model(task: Task | None, steps: Iterable[Step], *, final: bool = True) -> dict[str, Any]:
    """Score one run; the result has the shape of :func:`modelled`."""
    run = Run(task, steps, final=final)
    scores = run.scores()
    milestones = []
    for goal in run.goals:
        first = goal.held or goal.passed
        milestones.append(
            {
                "id": goal.milestone.id,
                "type": goal.milestone.type,
                "layer": goal.milestone.layer,
                "state": "reached" if goal.reached_at is not None else "passed" if first else "missed",
                "reason": goal.reason,
                "action": first.n if first else None,
                "seconds": (first.end_ns - run.start_ns) / 1e9 if first else None,
                "span_id": first.span_id if first else None,
            }
        )
    return {
        "task": task.name if task else "unmatched",
        "final": final,
        "start": datetime.fromtimestamp(run.start_ns / 1e9, UTC),
        "duration_seconds": (run.end_ns - run.start_ns) / 1e9,
        "outcome": run.outcome(),
        "scores": scores,
        "high_risk": scores["high_layer"] is not None and scores["high_layer"] < 0.5,
        "milestones": milestones,
        "traps": [{"id": id_, "action": action.n, "span_id": action.span_id} for id_, action in run.traps],
        "obstacles": [
            {
                "kind": block.kind,
                "tool": block.tool,
                "milestone": block.milestone.id if block.milestone else None,
                "action": block.action,
                "retries": block.retries,
                "digested": run.digested(block, AT_THE_END),
            }
            for block in run.blocks
        ],
        "findings": sorted(f for f in run.findings if f[0] != "unused" or final),
        "actions": {
            klass: sum(a.klass == klass for a in run.actions)
            for klass in ("effective", "off_task", "repeat", "stuck", "cut_off")
        },
        "steps": [
            {
                name: getattr(a, name)
                for name in ("tool", "agent", "args", "result", "ok", "error", "derived", "span_id")
            }
            | {"class": a.klass, "kind": a.kind}
            for a in run.actions
        ],
    }


def modelled(record: dict[str, Any]) -> dict[str, Any]:
    """Keep of a record (as built-ins, with steps) what the plain model speaks about, in the same shape."""
    kept = {name: record[name] for name in ("task", "final", "duration_seconds", "outcome", "scores", "high_risk")}
    kept |= {name: record[name] for name in ("milestones", "traps", "obstacles", "actions")}
    kept["start"] = datetime.fromisoformat(record["start"])
    kept["findings"] = sorted(
        {
            (f["finding"], f["action"])
            for f in record["findings"]
            if f["finding"] in FINDINGS and (f["finding"] != "unused" or record["final"])
        }
    )
    names = ("tool", "agent", "args", "result", "ok", "error", "derived", "span_id", "class", "kind")
    kept["steps"] = [{name: step[name] for name in names} for step in record["steps"] if step["class"] is not None]
    return kept

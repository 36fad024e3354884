"""Put a run's spans together into its actions, slowly and plainly: merged duplicates, and calls that left no span."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from reach_otel.engine.action import Action
from reach_otel.span.step import ACTION_KINDS, Call, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Tree:
    """The known steps of one run, each counted once, with their known ancestors."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self.by_id: dict[str, Step] = {}
        for step in steps:
            self.by_id.setdefault(step.span_id, step)
        self.steps = sorted(self.by_id.values(), key=lambda s: (s.end_ns, s.start_ns, s.span_id))
        self.models = sorted(
            (s for s in self.steps if s.kind == "model"), key=lambda s: (s.start_ns, s.end_ns, s.span_id)
        )

    def above(self, step: Step) -> Iterator[Step]:
        """Walk the ancestors from the nearest on."""
        seen = {step.span_id}
        while step.parent_id in self.by_id and step.parent_id not in seen:
            step = self.by_id[step.parent_id]
            seen.add(step.span_id)
            yield step

    def agent_of(self, step: Step) -> str | None:
        return step.agent or next((s.agent for s in self.above(step) if s.kind == "agent" and s.agent), None)

    def in_action(self, step: Step) -> bool:
        return any(s.kind in ACTION_KINDS for s in self.above(step))

    def roots(self) -> list[Step]:
        return [s for s in self.steps if s.kind == "agent" and not any(a.kind == "agent" for a in self.above(s))]

    def ended(self) -> bool:
        """Say whether a root agent has ended, with nothing above it that has still to come."""
        tops = [list(self.above(root))[-1:] or [root] for root in self.roots()]
        return any(top.parent_id is None or top.parent_remote for [top] in tops)

    def final_output(self) -> str | None:
        """What the outermost agent said; else the last agent, else the last model, that is no part of an action."""

        def last(steps: list[Step]) -> Step | None:
            said = [s for s in steps if s.output is not None and not s.calls and not self.in_action(s)]
            return max(said, key=lambda s: (s.end_ns, s.start_ns, s.span_id), default=None)

        agents = [s for s in self.steps if s.kind == "agent"]
        found = last(self.roots()) or last(agents) or last(self.models)
        return found.output if found else None


def same_name(a: str | None, b: str | None) -> bool:
    return canonical(a or "") == canonical(b or "")


def canonical(tool: str) -> str:
    tool = re.sub(r"^(mcp__.+?__|functions[._])", "", tool)
    return re.sub(r"[^a-z0-9]", "_", tool.lower())


def actions_of(tree: Tree, *, final: bool) -> list[Action]:
    """List the actions of a run in order: merged spans, and calls that left no span."""
    spans = [merged(tree, group) for group in groups(tree)]
    calls = [(model, i, call) for model in tree.models for i, call in enumerate(model.calls)]
    claimed = claims(tree, spans, calls)
    derived = [derive(tree, *entry, final=final) for place, entry in enumerate(calls) if place not in claimed]
    asked = {action.span_id: (calls[place][0], calls[place][2]) for place, action in claimed.items()}
    asked_ids = {call.id for _, _, call in calls}
    for action in spans:
        model, call = asked.get(action.span_id, (None, None))
        of_another = action.call_id in asked_ids and (call is None or call.id != action.call_id)
        found = answer_to(tree, action.call_id, None, 0 if model is None else model.end_ns)
        if found is None or action.has_result or of_another or (model is None and found[0].start_ns < action.end_ns):
            continue
        answer = found[1]
        action.result, action.has_result = answer.result, answer.result is not None
        action.ok, action.error = action.ok and answer.ok, action.error or answer.error
    actions = sorted([*spans, *(a for a in derived if a is not None)], key=lambda a: a.key)
    for n, action in enumerate(actions, 1):
        action.n = n
    return actions


def groups(tree: Tree) -> list[list[Step]]:
    """Put spans that report the same call together, the outer one first."""
    spans = [s for s in tree.steps if s.kind in ACTION_KINDS]
    group = {s.span_id: {s.span_id} for s in spans}
    for a in spans:
        for b in spans:
            if a is not b and (nested(tree, a, b) or overlapping(a, b)):
                union = group[a.span_id] | group[b.span_id]
                group.update(dict.fromkeys(union, union))
    distinct = {frozenset(ids) for ids in group.values()}

    def place(ids: frozenset[str], step: Step) -> tuple[int, int, str]:
        return (sum(a.span_id in ids for a in tree.above(step)), step.start_ns, step.span_id)

    return [sorted((tree.by_id[i] for i in ids), key=lambda s, ids=ids: place(ids, s)) for ids in distinct]  # type: ignore[misc]


def nested(tree: Tree, inner: Step, outer: Step) -> bool:
    """Say whether ``inner`` lies in ``outer``, with the same tool and no agent between."""
    for step in tree.above(inner):
        if step.kind == "agent":
            return False
        if step is outer:
            return same_name(inner.tool, outer.tool)
    return False


def overlapping(a: Step, b: Step) -> bool:
    same = a.call_id is not None and a.call_id == b.call_id and same_name(a.tool, b.tool)
    return same and max(a.start_ns, b.start_ns) < min(a.end_ns, b.end_ns)


def merged(tree: Tree, group: list[Step]) -> Action:
    outer = group[0]
    wraps_agent = any(s.kind == "agent" and any(a in group for a in tree.above(s)) for s in tree.steps)
    args = next((s for s in group if s.has_args), outer)
    result = next((s for s in group if s.has_result), outer)
    return Action(
        kind="handoff" if wraps_agent else outer.kind,  # type: ignore[arg-type]
        span_id=outer.span_id,
        start_ns=outer.start_ns,
        end_ns=outer.end_ns,
        tool=group[-1].tool or "",
        agent=tree.agent_of(outer),
        call_id=next((s.call_id for s in group if s.call_id is not None), None),
        args=args.args,
        has_args=args.has_args,
        result=result.result,
        has_result=result.has_result,
        ok=all(s.ok for s in group),
        error=next((s.error for s in group if s.error is not None), None),
        cut=any(s.cut for s in group),
    )


def claims(tree: Tree, spans: list[Action], calls: list[tuple[Step, int, Call]]) -> dict[int, Action]:
    """Say which of the asked-for calls (by their place) left a span of their own.

    A span belongs to the latest earlier message that asks for it: by call id, with the same tool if possible; else,
    where either side has no id, by equal arguments; else by tool alone, if the same agent has not asked in between.
    """
    claimed: dict[int, Action] = {}
    taken: set[str] = set()

    def by_id(_model: Step, call: Call, action: Action) -> bool:
        return call.id is not None and call.id == action.call_id

    def by_id_and_name(model: Step, call: Call, action: Action) -> bool:
        return by_id(model, call, action) and same_name(call.tool, action.tool)

    def by_args(_model: Step, call: Call, action: Action) -> bool:
        return by_name(call, action) and action.has_args and call.args is not None and action.args == call.args

    def by_turn(model: Step, call: Call, action: Action) -> bool:
        return by_name(call, action) and action.start_ns < asks_again(tree, model)

    def by_name(call: Call, action: Action) -> bool:
        return not (call.id and action.call_id) and same_name(call.tool, action.tool)

    for fits in (by_id_and_name, by_id, by_args, by_turn):
        for action in sorted(spans, key=lambda a: (a.start_ns, a.key)):
            if action.span_id in taken:
                continue
            open_ = [
                (model, -index, place)
                for place, (model, index, call) in enumerate(calls)
                if place not in claimed and model.start_ns <= action.start_ns and fits(model, call, action)
            ]
            if open_:
                *_, place = max(open_, key=lambda o: (o[0].start_ns, o[0].end_ns, o[0].span_id, o[1]))
                claimed[place] = action
                taken.add(action.span_id)
                complete(action, calls[place][2])
    return claimed


def complete(action: Action, call: Call) -> None:
    """Let a span that says less have its id and arguments from the message that asked for it."""
    action.call_id = action.call_id or call.id
    if not action.has_args and call.args is not None:
        action.args, action.has_args = call.args, True


def asks_again(tree: Tree, model: Step) -> float:
    """Give the time at which the same agent's model next asks for tools."""
    agent = tree.agent_of(model)
    later = [m for m in tree.models if m.start_ns > model.start_ns and m.calls and tree.agent_of(m) == agent]
    return min((m.start_ns for m in later), default=float("inf"))


def answer_to(tree: Tree, call_id: str | None, tool: str | None, since_ns: int) -> tuple[Step, Any] | None:
    for model in tree.models:
        for answer in model.answers:
            by_id = call_id is not None and answer.call_id == call_id
            by_tool = call_id is None and answer.call_id is None and tool is not None and answer.tool == tool
            if model.start_ns >= since_ns and (by_id or by_tool):
                return model, answer
    return None


def derive(tree: Tree, model: Step, index: int, call: Call, *, final: bool) -> Action | None:
    """Make the action of a call that left no span, or None while it may still be going on."""
    action = Action(
        kind=call.kind,
        span_id=model.span_id,
        start_ns=model.end_ns,
        end_ns=model.end_ns,
        index=index,
        tool=call.tool,
        agent=tree.agent_of(model),
        call_id=call.id,
        args=call.args,
        has_args=call.args is not None,
        derived=True,
    )
    answered = answer_to(tree, call.id, call.tool, model.end_ns)
    if answered is not None:
        asked, answer = answered
        action.end_ns, action.result, action.has_result = asked.start_ns, answer.result, answer.result is not None
        action.ok, action.error = answer.ok, answer.error
        return action
    went_on = any(m.start_ns >= model.end_ns for m in tree.models) or any(s.kind == "agent" for s in tree.steps)
    if went_on and (final or tree.ended()):
        if call.kind != "handoff":  # who hands over may never hear an answer
            action.ok, action.error = False, "no result"
        return action
    return None

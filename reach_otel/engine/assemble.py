"""Assemble the actions of one run from its steps: each call once, however many spans reported it (SPEC 4).

:meth:`Assembly.rebuild` sees all steps and is the definition. :meth:`Assembly.extend` takes a step that ended after all
others and does the same in constant time where nothing seen so far is affected; where something is, it says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto

from reach_otel.engine.action import FOREVER_NS, Action
from reach_otel.engine.calls import (
    Asked,
    Asks,
    answer_key,
    complete,
    derive,
    give_answer,
    is_nameless,
    is_put_off,
    is_sure,
    match,
    may_be,
    plain_name,
)
from reach_otel.engine.tree import Tree
from reach_otel.span.step import ACTION_KINDS, Answer, Step


class Effect(Enum):
    """What a step did to the list of actions."""

    NONE = auto()
    APPENDED = auto()  # new ones stand at the end
    REBUILD = auto()  # earlier ones change: rebuild and fold anew


class Assembly:
    """Hold the actions of a run, in the order of :attr:`Action.key`, and who asked for them."""

    __slots__ = (
        "_actions_max",
        "_answered",
        "_derived",
        "_ids",
        "_latest_start_ns",
        "_loose",
        "_mute",
        "_recalled",
        "_settled",
        "_strays",
        "actions",
        "asks",
        "gave_up",
        "recalled",
    )

    def __init__(self, actions_max: int = 1_000) -> None:
        self.actions: list[Action] = []
        self._actions_max = actions_max
        self.asks = Asks()
        self.recalled: list[tuple[Answer, int]] = []  # results of earlier runs in the history, and when they were read
        self.gave_up: tuple[int | None, int] = (None, 0)  # by when calls were given up, of how many
        self._answered: set[int] = set()  # id() of calls whose answer was seen
        self._derived: dict[str, list[Asked]] = {}  # calls with no span, by plain name
        self._ids: dict[str, tuple[int, int]] = {}  # call id -> earliest and latest end of an action with it
        self._settled: dict[str, int] = {}  # key -> how many calls have it, all answered; what repeats it says nothing
        self._mute: set[str] = set()  # call ids of actions whose span has no result
        self._strays: dict[str, Answer] = {}  # answers to actions that no message asked for, by call id
        self._recalled: set[str] = set()
        self._loose: set[str] = set()  # plain names claimed by name alone
        self._latest_start_ns = -1

    # The definition.

    def rebuild(self, steps: Iterable[Step], tree: Tree, *, over_ns: int | None) -> None:
        """Assemble the actions of a whole set of steps, given in the order of their end.

        Calls asked for by ``over_ns`` that left neither a span nor an answer are given up: they failed.
        """
        Assembly.__init__(self, self._actions_max)
        ordered = list(steps)
        self.actions = [_merge(group) for group in _groups(ordered, tree)]
        self._mark_handoffs(ordered, tree)
        self.actions.sort(key=_key)
        for action in self.actions:
            self._note(action)
        asking = [s for s in ordered if s.kind in ("model", "content")]
        for step in asking:
            self.asks.add(step)
        put_off = [_action_of(step) for step in ordered if is_put_off(step)]  # no actions, but what was asked for
        for asked, action in match(self.asks, [*self.actions, *put_off]):
            self._close(asked, action)
        answers: dict[int, tuple[Answer, int]] = {}
        for step in asking:
            for asked, answer in self._new_answers(step):
                answers[id(asked)] = (answer, step.start_ns)
        latest_model_ns = max((step.start_ns for step in asking if step.kind == "model"), default=-1)
        for asked in self.asks.all:
            answered = answers.get(id(asked))
            if asked.action is not None:
                complete(asked.action, asked, answered[0] if answered else None)
            elif answered is not None:
                self._add_derived(asked, *answered)
            elif over_ns is not None and asked.end_ns <= (over_ns if tree.agents else min(over_ns, latest_model_ns)):
                # A model call alone in its trace says nothing of what became of the calls that it asked for.
                self._add_derived(asked, None, asked.end_ns)
        self.gave_up = (over_ns, len(self.asks.all))
        self._answer_strays()
        for action in self.actions:
            if action.derived and action.kind == "tool":
                agent = _named_after(action, tree)
                if agent is not None:
                    action.kind, action.to_agent = "handoff", agent.agent
        self.actions.sort(key=_key)
        del self.actions[self._actions_max :]

    def _answer_strays(self) -> None:
        """Give actions whose asking message was lost the result that a later message quotes."""
        for action in self.actions:
            if action.call_id is not None and not action.has_result:
                answer = self._strays.get(action.call_id)
                if answer is not None:
                    give_answer(action, answer)

    # The short cut.

    def extend(self, step: Step, tree: Tree, awaited: bool) -> Effect:
        """Take a step that ended after all others; ``awaited`` says whether something seen earlier lies beneath it."""
        if (awaited or step.kind == "agent") and tree.tool_above(step.span_id) is not None:
            return Effect.REBUILD
        if step.kind == "agent" and step.agent is not None and plain_name(step.agent) in self._derived:
            return Effect.REBUILD
        if step.kind in ACTION_KINDS:
            return self._extend_tool(step, tree, awaited)
        if step.kind in ("model", "content"):
            return self._extend_model(step, tree)
        return Effect.REBUILD if is_put_off(step) and self.asks.all else Effect.NONE

    def _extend_tool(self, step: Step, tree: Tree, awaited: bool) -> Effect:
        if awaited or tree.tool_above(step.span_id) is not None:
            return Effect.REBUILD
        if step.call_id is not None and (
            self._ids.get(step.call_id, (-1, -1))[1] > step.start_ns or step.call_id in self._strays
        ):
            return Effect.REBUILD
        action = _action_of(step)
        if len(self.actions) >= self._actions_max or (self.actions and action.key < self.actions[-1].key):
            return Effect.REBUILD
        if self.asks.all:
            if is_nameless(action) or self._is_unclear(action):
                return Effect.REBUILD
            fits = self.asks.open_for(action)
            if len(fits) > 1:
                return Effect.REBUILD
            if fits and (is_sure(fits[0], action) or self.asks.by_name_alone(fits[0], action)):
                self._close(fits[0], action)
                complete(action, fits[0], None)
        self._note(action)
        self.actions.append(action)
        return Effect.APPENDED

    def _is_unclear(self, action: Action) -> bool:
        """Say whether an action may be one that another call, derived or matched by its name alone, stands for."""
        name = plain_name(action.tool)
        if name in self._loose or any(may_be(a, action) for a in self._derived.get(name, ())):
            return True
        if action.call_id is None:
            return action.start_ns < self._latest_start_ns
        asked = self.asks.named(action.call_id)
        return len(asked) > 1 or (len(asked) == 1 and asked[0].action is not None)

    def _extend_model(self, step: Step, tree: Tree) -> Effect:
        if step.calls and step.start_ns <= self._latest_start_ns:
            return Effect.REBUILD
        self.asks.add(step)
        effect = Effect.NONE
        strays = len(self._strays)
        new_answers = self._new_answers(step)
        if len(self._strays) > strays:
            return Effect.REBUILD
        for asked, answer in new_answers:
            if asked.action is None:
                if len(self.actions) >= self._actions_max:
                    return Effect.REBUILD
                action = self._add_derived(asked, answer, step.start_ns)
                if action.kind == "tool" and _named_after(action, tree) is not None:
                    return Effect.REBUILD
                if len(self.actions) > 1 and action.key < self.actions[-2].key:
                    return Effect.REBUILD
                effect = Effect.APPENDED
            elif asked.action.derived or (not asked.action.has_result and (answer.result is not None or not answer.ok)):
                return Effect.REBUILD  # it was given up, or lacks what the answer tells
        return effect

    # Shared by both.

    def _new_answers(self, step: Step) -> list[tuple[Asked, Answer]]:
        """Pair the calls whose first answer this step carries with it.

        Messages repeat the whole history and ids are reused: the nth answer under a key is that to the nth call.
        """
        if not step.answers:
            return []
        by_key: dict[str, list[Answer]] = {}
        settled, named = self._settled, self.asks.named
        for answer in step.answers:
            key = answer.call_id or answer_key(answer)
            if settled.get(key, -1) != len(named(key)):
                by_key.setdefault(key, []).append(answer)
        pairs = []
        for key, found in by_key.items():
            like = named(key)
            calls = [asked for asked in like if asked.end_ns <= step.start_ns]
            if len(calls) == len(like):
                settled[key] = len(like)
            for asked in calls:
                if id(asked) not in self._answered:
                    self._answered.add(id(asked))
                    pairs.append((asked, found[min(asked.nth, len(found) - 1)]))
            if calls or key in self._recalled:
                continue
            if self._ids.get(key, (FOREVER_NS, 0))[0] > step.start_ns:
                self.recalled.extend((answer, step.start_ns) for answer in found)
            elif key in self._mute:
                self._strays[key] = found[-1]
            self._recalled.add(key)
        return pairs

    def _close(self, asked: Asked, action: Action) -> None:
        if not is_sure(asked, action):
            self._loose.add(asked.name)
        self.asks.close(asked, action)

    def _add_derived(self, asked: Asked, answer: Answer | None, at_ns: int) -> Action:
        action = derive(asked, answer, at_ns)
        self.asks.close(asked, action)
        self._derived.setdefault(asked.name, []).append(asked)
        self.actions.append(action)
        return action

    def would_give_up(self, over_ns: int) -> bool:
        """Say whether a rebuilding would give up calls which are open now."""
        return self.asks.open > 0 and self.gave_up != (over_ns, len(self.asks.all)) and self.asks.has_open_by(over_ns)

    def _note(self, action: Action) -> None:
        self._latest_start_ns = max(self._latest_start_ns, action.start_ns)
        if action.call_id is not None:
            if not action.has_result:
                self._mute.add(action.call_id)
            first_ns, last_ns = self._ids.get(action.call_id, (FOREVER_NS, -1))
            self._ids[action.call_id] = (min(first_ns, action.end_ns), max(last_ns, action.end_ns))

    def _mark_handoffs(self, steps: list[Step], tree: Tree) -> None:
        """Turn a tool that encloses an agent into a handoff: an agent used as a tool."""
        by_span = {action.span_id: action for action in self.actions}
        for step in steps:
            if step.kind != "agent":
                continue
            tool = tree.tool_above(step.span_id)
            action = by_span.get(tool.span_id) if tool is not None else None
            if action is not None and tree.agent_above(step.span_id) in (None, tree.agent_above(action.span_id)):
                action.kind = "handoff"
                action.to_agent = action.to_agent or step.agent


def _named_after(action: Action, tree: Tree) -> Step | None:
    """Return the agent that a model asked for like a tool, and which left an agent span but none of a tool."""
    name = plain_name(action.tool)
    return next((a for a in tree.agents.values() if a.agent is not None and plain_name(a.agent) == name), None)


def _key(action: Action) -> tuple[int, int, str, int]:
    return action.key


def _groups(steps: list[Step], tree: Tree) -> list[list[Step]]:
    """Group the tool steps that report one call, each group from the outside in (SPEC 4, "one action, one step")."""
    tools = [s for s in steps if s.kind in ACTION_KINDS]
    names = {s.span_id: plain_name(s.tool or "") for s in tools}
    leader = {s.span_id: s.span_id for s in tools}

    def lead(span_id: str) -> str:
        while leader[span_id] != span_id:
            span_id = leader[span_id]
        return span_id

    by_id: dict[tuple[str, str], list[Step]] = {}
    for step in tools:
        outer = tree.same_tool_above(step, names[step.span_id], names)
        if outer is not None:
            leader[lead(step.span_id)] = lead(outer.span_id)
        if step.call_id is not None:
            twins = by_id.setdefault((step.call_id, names[step.span_id]), [])
            for twin in twins:
                if twin.start_ns < step.end_ns and step.start_ns < twin.end_ns:
                    leader[lead(step.span_id)] = lead(twin.span_id)
            twins.append(step)
    groups: dict[str, list[Step]] = {}
    for step in tools:
        groups.setdefault(lead(step.span_id), []).append(step)
    return [
        sorted(group, key=lambda s: (_depth(s, tree), s.start_ns, s.span_id)) if len(group) > 1 else group
        for group in groups.values()
    ]


def _depth(step: Step, tree: Tree) -> int:
    return sum(1 for _ in tree.above(step.span_id))


def _merge(group: list[Step]) -> Action:
    """Make one action of the steps that report one call: place and time of the outermost, content of whoever has it."""
    action = _action_of(group[0])
    for inner in group[1:]:
        action.tool = inner.tool or action.tool
        action.call_id = action.call_id or inner.call_id
        action.agent = action.agent or inner.agent
        action.attributes = action.attributes or inner.attributes
        action.cut = action.cut or inner.cut
        if not action.has_args:
            action.args, action.has_args = inner.args, inner.has_args
        if not action.has_result:
            action.result, action.has_result = inner.result, inner.has_result
        if not inner.ok:
            action.by_text = inner.by_text and (action.ok or action.by_text)
            action.error = action.error or inner.error
            action.ok = False
    return action


def _action_of(step: Step) -> Action:
    return Action(
        kind=step.kind,  # type: ignore[arg-type]  # one of ACTION_KINDS
        span_id=step.span_id,
        start_ns=step.start_ns,
        end_ns=step.end_ns,
        parent_id=step.parent_id,
        tool=step.tool or "",
        agent=step.agent,
        to_agent=step.to_agent,
        call_id=step.call_id,
        args=step.args,
        result=step.result,
        has_args=step.has_args,
        has_result=step.has_result,
        ok=step.ok,
        error=step.error,
        by_text=step.by_text,
        cut=step.cut,
        attributes=step.attributes,
    )

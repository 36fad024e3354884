"""Hold where each milestone of a run stands, and grant reach (SPEC 6.1, 7.2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from reach_otel.engine.action import FOREVER_NS, Action
from reach_otel.engine.obstacles import Obstacle, Obstacles
from reach_otel.engine.record import State
from reach_otel.engine.sources import Sources, canonical, contains, is_trivial, leaves, tokens
from reach_otel.names import NO_CONTENT, UNUSED

if TYPE_CHECKING:
    from reach_otel.engine.plan import Plan
    from reach_otel.task import Milestone


USES_MAX = 16  # latest calls of one milestone whose results may still be used


class Mark(Struct, frozen=True, gc=False):
    """Where a milestone held or went by: after ``n`` actions, at a Unix time in nanoseconds."""

    n: int
    at_ns: int
    span_id: str
    tool: str | None = None


class Use(Struct, gc=False):
    """The values of a result which prove, when they show up again, that the result was used."""

    at_ns: int  # end of the call; only a call that starts later can use it
    words: frozenset[str]  # one token each
    phrases: tuple[str, ...]  # more than one token
    pairs: frozenset[tuple[str, str]]  # trivial values, which count under their own key only


NOTHING = Use(at_ns=-1, words=frozenset(), phrases=(), pairs=frozenset())
"""The use of a result that was not captured: nothing can prove it."""


class Said(Struct, frozen=True, gc=False):
    """What a call's arguments or the final output say: whole values and tokens, (key, value) pairs, free texts."""

    words: set[str]
    pairs: set[tuple[str, str]]
    texts: list[str]
    at_ns: int

    def uses(self, use: Use) -> bool:
        """Say whether something of a result is said again, after it was there."""
        if use.at_ns > self.at_ns:
            return False
        if not use.words.isdisjoint(self.words) or not use.pairs.isdisjoint(self.pairs):
            return True
        return any(p in self.words or any(contains(text, p) for text in self.texts) for p in use.phrases)


class Progress:
    """Say for every milestone of a task whether it held, went by or was reached; owner of the run's obstacles.

    Lists are indexed like the task's ``milestones``.
    """

    __slots__ = (
        "_fallbacks",
        "changed",
        "held",
        "obstacles",
        "passed",
        "plan",
        "reached",
        "reached_deepest",
        "reached_must",
        "reached_weight",
        "uses",
    )

    def __init__(self, plan: Plan, obstacles: Obstacles) -> None:
        count = len(plan.task.milestones)
        self.plan = plan
        self.obstacles = obstacles
        self.held: list[Mark | None] = [None] * count
        self.passed: list[tuple[Mark, str] | None] = [None] * count
        self.reached: list[bool] = [False] * count
        self.uses: dict[int, tuple[Use, ...]] = {}  # held, not used yet: what each call that held would be used by
        self.reached_weight = 0.0  # sum of the layer weights of reached must-milestones
        self.reached_must = 0
        self.reached_deepest = 0  # in the deepest layer
        self._fallbacks: list[tuple[Milestone, Mark]] = []  # reached on this step
        self.changed: set[int] = set(range(count))  # since the last look, for the live view

    def copy(self) -> Progress:
        """Return an independent copy that can be closed while this one goes on."""
        twin = Progress.__new__(Progress)
        twin.plan = self.plan
        twin.obstacles = self.obstacles.copy()
        twin.held = list(self.held)
        twin.passed = list(self.passed)
        twin.reached = list(self.reached)
        twin.uses = dict(self.uses)
        twin.reached_weight = self.reached_weight
        twin.reached_must = self.reached_must
        twin.reached_deepest = self.reached_deepest
        twin._fallbacks = []
        twin.changed = set()
        return twin

    def ready(self, milestone: Milestone) -> bool:
        """Say whether all dependencies held (one of each group is enough)."""
        held = self.held
        return all(any(held[i] is not None for i in group) for group in milestone.depends_on)

    def pass_by(self, milestone: Milestone, mark: Mark, reason: str) -> None:
        """Note that the condition held but reach is not granted; the latest reason and the first place count."""
        index = milestone.index
        earlier = self.passed[index]
        self.passed[index] = (earlier[0] if earlier else mark, reason)
        self.changed.add(index)

    def hold(self, milestone: Milestone, mark: Mark, use: Use | None) -> None:
        """Note that the milestone held; without a ``use`` to wait for it is reached at once."""
        index = milestone.index
        self.held[index] = mark
        self.changed.add(index)
        if use is None:
            self._reach(milestone, mark)
        else:
            self.uses[index] = (use,)

    def hold_again(self, milestone: Milestone, use: Use) -> None:
        """Note that a milestone whose result nobody used held once more: that result may be the one that is used."""
        self.uses[milestone.index] = (*self.uses[milestone.index], use)[-USES_MAX:]

    def use_in_call(self, action: Action) -> None:
        """Grant reach to what this call's arguments make use of."""
        if not self.uses or not action.has_args:
            return
        words: set[str] = set()
        texts: list[str] = []
        pairs: set[tuple[str, str]] = set()
        for key, leaf in leaves(action.args):
            value = canonical(leaf)
            if value is None:
                continue
            words.add(value)
            pairs.add((key, value))
            if isinstance(leaf, str) and not value.isalnum():
                words.update(tokens(value))
                texts.append(value)
        said = Said(words, pairs, texts, action.start_ns)
        used = [index for index, uses in self.uses.items() if any(said.uses(use) for use in uses)]
        self._grant(used, Mark(action.n, action.end_ns, action.span_id))

    def use_in_output(self, output: str, mark: Mark) -> None:
        """Grant reach to what the final output makes use of."""
        if self.uses:
            said = Said(set(tokens(output)), set(), [output], FOREVER_NS)
            used = [index for index, uses in self.uses.items() if any(said.uses(use) for use in uses)]
            self._grant(used, mark)
            self.open_fallbacks()

    def _grant(self, indexes: Iterable[int], mark: Mark) -> None:
        for index in sorted(indexes):
            del self.uses[index]
            self._reach(self.plan.task.milestones[index], mark)

    def _reach(self, milestone: Milestone, mark: Mark) -> None:
        self.reached[milestone.index] = True
        self.changed.add(milestone.index)
        if milestone.type == "must":
            self.reached_must += 1
            self.reached_weight += self.plan.task.layer_weights[milestone.layer - 1]
            self.reached_deepest += milestone.index in self.plan.deepest
            self.obstacles.satisfy(milestone.layer)
        elif milestone.type == "fallback":
            self._fallbacks.append((milestone, mark))

    def open_fallbacks(self) -> None:
        """Open an obstacle for a fallback branch that was taken with no other one open: something forced it.

        Called once all that one step reaches is reached, so that the order within the step does not matter.
        """
        milestones = self.plan.task.milestones
        for milestone, mark in self._fallbacks:
            if self.obstacles.digested < len(self.obstacles.all):
                continue
            held = self.held[milestone.index]
            covered = milestones[milestone.covers] if milestone.covers is not None else None
            self.obstacles.add(
                Obstacle(
                    kind="fallback",
                    tool=(held.tool if held else None) or milestone.id,
                    milestone=covered.index if covered else None,
                    layer=covered.layer if covered else 0,
                    action=mark.n,
                    span_id=mark.span_id,
                )
            )
        self._fallbacks.clear()

    def state(self, index: int) -> tuple[State, str | None, Mark | None]:
        """Return (state, reason, mark) of one milestone."""
        held = self.held[index]
        if self.reached[index]:
            return "reached", None, held
        if held is not None:
            return "passed", NO_CONTENT if all(use is NOTHING for use in self.uses[index]) else UNUSED, held
        passed = self.passed[index]
        return ("passed", passed[1], passed[0]) if passed else ("missed", None, None)


def use_of(action: Action, sources: Sources) -> Use:
    """Collect the values of a result which were not known when the call was made.

    A result that was not captured gives :data:`NOTHING`.
    """
    if not action.has_result:
        return NOTHING
    own = Sources()  # what the caller said himself is nothing new
    own.add_result(action.args, action.start_ns)
    own_pairs = {(key, value) for key, leaf in leaves(action.args) if (value := canonical(leaf)) is not None}
    known = (sources, own)
    words: set[str] = set()
    phrases: list[str] = []
    pairs: set[tuple[str, str]] = set()
    for key, leaf in leaves(action.result):
        value = canonical(leaf)
        if value is None:
            continue
        if is_trivial(leaf):
            if key and (key, value) not in own_pairs:
                pairs.add((key, value))
        elif not any(k.knows(value, action.start_ns) for k in known):
            parts = tokens(value)
            if parts == [value]:
                words.add(value)
            else:
                phrases.append(value)
                words.update(
                    part
                    for part in parts
                    if _is_identifier(part) and not any(k.knows(part, action.start_ns) for k in known)
                )
    return Use(action.end_ns, frozenset(words), tuple(phrases), frozenset(pairs))


def _is_identifier(token: str) -> bool:
    """Say whether a token of a longer text looks like an id or an amount, which nobody writes by chance."""
    return any(map(str.isdigit, token)) and not is_trivial(token)

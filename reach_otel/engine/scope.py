"""Say which run a step belongs to, for each of the three run scopes (SPEC 5.1).

What is known of a trace grows: a conversation id or the outermost agent may turn up after its steps. A placement then
also says which runs turned out to be parts of others.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from reach_otel.engine.tree import Tree
from reach_otel.span.step import Kind, Step

V = TypeVar("V")


class Placement(Struct, frozen=True):
    """Where a step belongs. ``moves`` (old run, new run) come first.

    ``above`` are spans that stand above the run, and ``also`` runs that the step stands above: these take no part in
    it, but tell when it is over.
    """

    run_id: str
    mixed: bool = False  # the run may hold several traces, in which span ids may repeat
    moves: tuple[tuple[str, str], ...] = ()
    above: tuple[Step, ...] = ()
    also: tuple[str, ...] = ()


class Scope(Protocol):
    """Place steps in runs; remembers at most a bounded number of traces."""

    def place(self, step: Step) -> Placement: ...


class TraceScope:
    """One run a trace."""

    __slots__ = ()

    def place(self, step: Step) -> Placement:
        return Placement(step.run_id, mixed=True) if step.run_id is not None else Placement(step.trace_id)


class ConversationScope:
    """One run for all traces with one conversation id; a trace without any is a run of its own."""

    __slots__ = ("_conversations", "_traces_max")

    def __init__(self, traces_max: int) -> None:
        self._conversations: dict[str, str] = {}  # trace -> conversation
        self._traces_max = traces_max

    def place(self, step: Step) -> Placement:
        if step.run_id is not None:
            return Placement(step.run_id, mixed=True)
        known = self._conversations.get(step.trace_id)
        if known is not None:
            return Placement(known, mixed=True)
        if step.conversation_id is None:
            return Placement(step.trace_id, mixed=True)
        _remember(self._conversations, step.trace_id, step.conversation_id, self._traces_max)
        return Placement(step.conversation_id, mixed=True, moves=((step.trace_id, step.conversation_id),))


class KnownTrace(Struct, frozen=True):
    """What the agent scope knows of one trace."""

    tree: Tree
    spans: dict[str, Step]  # every span seen, without content
    members: dict[str, dict[str, str]]  # missing span above all that is known of a run -> run -> a span in it
    acted: set[str]  # spans that are steps of their run, not only of its tree


class AgentScope:
    """One run per outermost agent of a trace; steps under no known agent go with the topmost span known above them."""

    __slots__ = ("_traces", "_traces_max")

    def __init__(self, traces_max: int) -> None:
        self._traces: dict[str, KnownTrace] = {}
        self._traces_max = traces_max

    def place(self, step: Step) -> Placement:
        if step.run_id is not None:
            return Placement(step.run_id, mixed=True)
        known = self._traces.get(step.trace_id)
        if known is None:
            known = KnownTrace(Tree(), {}, {}, set())
            _remember(self._traces, step.trace_id, known, self._traces_max)
        tree = known.tree
        if step.span_id not in tree.parents:
            tree.add(outline(step, kind=step.kind))
            known.spans[step.span_id] = outline(step)
        run_id = _run_of(tree, step.trace_id, step.span_id)
        moves: list[tuple[str, str]] = []
        beneath: list[str] = []
        for old_id, member in known.members.pop(step.span_id, {}).items():
            new_id = _run_of(tree, step.trace_id, member)
            if new_id != old_id:
                moves.append((old_id, new_id))
            if new_id != run_id:
                beneath.append(new_id)
            self._enter(known, new_id, member)
        if step.kind != "other":
            self._enter(known, run_id, step.span_id)
            known.acted.add(step.span_id)
        above = (known.spans[i] for i in tree.above(step.span_id) if i in known.spans)
        return Placement(
            run_id,
            moves=tuple(moves),
            above=tuple(
                s for s in above if s.span_id not in known.acted or _run_of(tree, step.trace_id, s.span_id) != run_id
            ),
            also=tuple(dict.fromkeys(beneath)),
        )

    @staticmethod
    def _enter(known: KnownTrace, run_id: str, member: str) -> None:
        missing, _ = known.tree.missing_above(member)
        known.members.setdefault(missing, {}).setdefault(run_id, member)


def outline(step: Step, *, kind: Kind = "other") -> Step:
    """Keep of a span only its place in the tree, and what it says of the whole run."""
    return Step(
        kind=kind,
        trace_id=step.trace_id,
        span_id=step.span_id,
        start_ns=step.start_ns,
        end_ns=step.end_ns,
        parent_id=step.parent_id,
        parent_remote=step.parent_remote,
        ok=step.ok,
        task=step.task,
        variant=step.variant,
        sampled=step.sampled,
        variant_on_span=step.variant_on_span,
    )


def scope_of(name: str, traces_max: int) -> Scope:
    """Return the scope of a name: ``trace``, ``agent`` or ``conversation``."""
    if name == "agent":
        return AgentScope(traces_max)
    return ConversationScope(traces_max) if name == "conversation" else TraceScope()


def _run_of(tree: Tree, trace_id: str, span_id: str) -> str:
    """Name the run of a span after its outermost agent, else after the topmost span known."""
    top = span_id
    outermost = span_id if span_id in tree.agents else None
    for above in tree.above(span_id):
        top = above
        if above in tree.agents:
            outermost = above
    return f"{trace_id}-{outermost or top}"


def qualify(step: Step) -> Step:
    """Put the trace id before the span ids of a step, so that equal span ids of two traces stay apart."""
    parent_id = f"{step.trace_id}/{step.parent_id}" if step.parent_id is not None else None
    return replace(step, span_id=f"{step.trace_id}/{step.span_id}", parent_id=parent_id)


def plain_id(span_id: str) -> str:
    """Return the span id as it was sent."""
    return span_id.rpartition("/")[2]


def _remember(known: dict[str, V], key: str, value: V, most: int) -> None:
    while len(known) >= most:
        del known[next(iter(known))]
    known[key] = value

"""Climb the span tree of one run, of which any part may still be missing."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator

from reach_otel.span.step import ACTION_KINDS, Step

CLIMB_MAX = 128  # ancestors looked at; deeper trees are not made by agents
SPANS_MAX = 50_000  # of one run


class Tree:
    """Know the parent of every span of a run, also of those that are no step of interest."""

    __slots__ = ("_ended", "_open", "_outer", "_remote", "agents", "awaited", "parents", "rooted", "tools", "tops")

    def __init__(self) -> None:
        self.parents: dict[str, str | None] = {}  # of each span seen
        self.awaited: set[str] = set()  # spans that are a local parent and have not been seen
        self._remote: set[str] = set()  # the same of parents in other processes, which may never be seen
        self.agents: dict[str, Step] = {}
        self.tools: dict[str, Step] = {}
        self.tops: dict[str, bool] = {}  # seen spans with no local parent -> whether they ended well
        self._outer: list[Step] = []  # agents that no other agent and no tool encloses, by start
        # The same agents by the missing span above all that is known of them, where it is a local one, and where it is
        # not: in another process, or none at all ("").
        self._open: dict[str, list[Step]] = {}
        self._ended: dict[str, list[Step]] = {}
        self.rooted: set[str] = set()  # span ids of the latter

    def add(self, step: Step) -> bool:
        """Add a span; says whether one seen earlier lies right beneath it."""
        parent_id = step.parent_id
        awaited = step.span_id in self.awaited or step.span_id in self._remote
        self.parents[step.span_id] = parent_id
        if parent_id is None or step.parent_remote:
            self.tops[step.span_id] = step.ok
        if parent_id is not None and parent_id not in self.parents:
            (self._remote if step.parent_remote else self.awaited).add(parent_id)
        if step.kind == "agent":
            self.agents[step.span_id] = step
        elif step.kind in ACTION_KINDS:
            self.tools[step.span_id] = step
        if awaited:
            self.awaited.discard(step.span_id)
            self._remote.discard(step.span_id)
            for agent in (*self._open.pop(step.span_id, ()), *self._ended.pop(step.span_id, ())):
                self._outer.remove(agent)
                self.rooted.discard(agent.span_id)
                self._place(agent)
        if step.kind == "agent":
            self._place(step)
        return awaited

    def _place(self, agent: Step) -> None:
        """Enter an agent among the outer ones, if it is one."""
        if any(i in self.agents or i in self.tools for i in self.above(agent.span_id)):
            return
        insort(self._outer, agent, key=_by_start)
        missing, is_local = self.missing_above(agent.span_id)
        (self._open if is_local else self._ended).setdefault(missing, []).append(agent)
        if not is_local:
            self.rooted.add(agent.span_id)

    def restore(self, steps: Iterable[Step], parents: dict[str, str | None], tops: dict[str, bool]) -> None:
        """Become the tree of these spans, of which ``steps`` are those of interest."""
        self.parents = parents
        self.tops = tops
        for span_id, parent_id in parents.items():
            if parent_id is not None and parent_id not in parents:
                (self._remote if span_id in tops else self.awaited).add(parent_id)
        for step in steps:
            if step.kind == "agent":
                self.agents[step.span_id] = step
            elif step.kind in ACTION_KINDS:
                self.tools[step.span_id] = step
        self._place_all()

    def _place_all(self) -> None:
        self._outer, self._open, self._ended, self.rooted = [], {}, {}, set()
        for agent in self.agents.values():
            self._place(agent)

    def absorb(self, other: Tree) -> None:
        """Take over the spans of another tree."""
        for span_id, parent_id in other.parents.items():
            self.parents.setdefault(span_id, parent_id)
        self.tops.update(other.tops)
        self.agents.update(other.agents)
        self.tools.update(other.tools)
        self.awaited = {i for i in self.awaited | other.awaited if i not in self.parents}
        self._remote = {i for i in self._remote | other._remote if i not in self.parents}
        self._place_all()

    def above(self, span_id: str) -> Iterator[str]:
        """Walk the ids of all known ancestors, nearest first; the last one may be of a local span not seen yet.

        A parent in another process counts once its span was seen: one trace may hold both sides of a call.
        """
        parents = self.parents
        for _ in range(CLIMB_MAX):
            parent_id = parents.get(span_id)
            if parent_id is None or (span_id in self.tops and parent_id not in parents):
                return
            yield parent_id
            span_id = parent_id

    def agent_above(self, span_id: str) -> Step | None:
        """Return the nearest agent step above."""
        agents = self.agents
        return next((agents[i] for i in self.above(span_id) if i in agents), None)

    def tool_above(self, span_id: str) -> Step | None:
        """Return the nearest tool step above."""
        tools = self.tools
        if not tools:
            return None
        return next((tools[i] for i in self.above(span_id) if i in tools), None)

    def same_tool_above(self, step: Step, name: str, names: dict[str, str]) -> Step | None:
        """Return the nearest enclosing tool step of the same plain name with no agent between."""
        for span_id in self.above(step.span_id):
            if span_id in self.agents:
                return None
            if names.get(span_id) == name:
                return self.tools[span_id]
        return None

    def missing_above(self, span_id: str) -> tuple[str, bool]:
        """Return the span not seen yet above all that is known of a seen span, and whether it is a local one.

        It is ``""`` (and not local) where nothing is missing.
        """
        top = span_id
        for top in self.above(span_id):  # noqa: B007  # the last one is wanted
            pass
        return (self.parents[top] or "", False) if top in self.tops else (top, True)

    @property
    def is_ended(self) -> bool:
        """Say whether some outermost agent was seen, and nothing of this process above it can still be open."""
        return bool(self.rooted) or any(i in self.agents for i in self.tops)

    def outer_agents(self) -> list[Step]:
        """Return the agent steps that no other agent and no tool encloses, by start."""
        return self._outer

    def outer_by_end(self) -> list[Step]:
        """Return the same by end. One whose parent was never seen may be an inner one: those go first."""
        return sorted(self._outer, key=lambda agent: (agent.span_id in self.rooted, agent.end_ns, agent.span_id))

    def line_agents(self) -> list[Step]:
        """Return the agent steps that no tool encloses, by end: those that speak for the run, wrappers included."""
        line = [a for a in self.agents.values() if self.tool_above(a.span_id) is None]
        return sorted(line, key=_by_end)


def _by_start(step: Step) -> tuple[int, str]:
    return (step.start_ns, step.span_id)


def _by_end(step: Step) -> tuple[int, str]:
    return (step.end_ns, step.span_id)

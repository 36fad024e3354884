"""Choose which task a run is, from what its steps show (SPEC 5.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from reach_otel.span.step import ACTION_KINDS, Step

if TYPE_CHECKING:
    from reach_otel.task import Match, Task

CHOICES_MAX = 4_096  # remembered
SEEN_MAX = 64  # distinct names of one sort kept for a run

Said = tuple[tuple[int, str], str]


class Chooser:
    """Know all loaded tasks; answers about single steps are cached, since tools and names are few."""

    __slots__ = ("_by_name", "_chosen", "_matching", "_tasks", "_tools", "attribute_keys")

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tuple(tasks)
        self._by_name = {task.name: task for task in tasks}
        # The task that asks for most is the best match; the name breaks ties.
        self._matching = sorted((t for t in tasks if t.match is not None), key=lambda t: (-_asks(t.match), t.name))
        self._tools: dict[str, Task | None] = {}
        self._chosen: dict[tuple[object, ...], Task | None] = {}
        self.attribute_keys = frozenset(key for t in tasks if t.match is not None for key in t.match.attributes)

    def named(self, name: str) -> Task | None:
        return self._by_name.get(name)

    def only_one_that_knows(self, tool: str) -> Task | None:
        """Return the task that knows a tool, if exactly one does."""
        try:
            return self._tools[tool]
        except KeyError:
            knowing = [task for task in self._tasks if task.knows(tool)]
            if len(self._tools) > 10_000:
                self._tools.clear()
            return self._tools.setdefault(tool, knowing[0] if len(knowing) == 1 else None)

    def choose(self, evidence: Evidence) -> Task | None:
        """Choose the task that the evidence speaks for; fleets show the same evidence again and again."""
        key = evidence.key
        try:
            return self._chosen[key]
        except KeyError:
            if len(self._chosen) >= CHOICES_MAX:
                self._chosen.clear()
            return self._chosen.setdefault(key, self._choose(evidence))

    def _choose(self, evidence: Evidence) -> Task | None:
        """Choose: an explicit name, else a task's ``match``, else the only task that knows the earliest tool."""
        if evidence.explicit is not None and (task := self._by_name.get(evidence.explicit[1])) is not None:
            return task
        for task in self._matching:
            if task.match is not None and _fits(task.match, evidence):
                return task
        return evidence.by_tool[1] if evidence.by_tool is not None else None


class Evidence:
    """Collect what the steps of one run say about its task; the order in which they come does not matter."""

    __slots__ = (
        "agents",
        "attributes",
        "by_tool",
        "conversation",
        "explicit",
        "model",
        "services",
        "variant",
        "version",
        "workflows",
    )

    def __init__(self) -> None:
        # The earliest step that says something counts: ((start, span id), what it says).
        self.explicit: Said | None = None
        self.variant: tuple[tuple[int, str], str, bool] | None = None  # and whether it stands on the span alone
        self.version: Said | None = None
        self.model: Said | None = None
        self.conversation: Said | None = None
        self.by_tool: tuple[tuple[int, int, str], Task] | None = None
        self.agents: tuple[str, ...] = ()
        self.services: tuple[str, ...] = ()
        self.workflows: tuple[str, ...] = ()
        self.attributes: frozenset[tuple[str, str]] = frozenset()  # those that some task's ``match`` names

    @property
    def key(self) -> tuple[object, ...]:
        """Give all that a choice depends on."""
        explicit = self.explicit[1] if self.explicit is not None else None
        by_tool = self.by_tool[1].name if self.by_tool is not None else None
        return (explicit, by_tool, self.agents, self.services, self.workflows, self.attributes)

    def add(self, step: Step, chooser: Chooser) -> bool:
        """Take in a step; says whether anything was learned."""
        learned = step.task is not None and self._said("explicit", step, step.task)
        # Most steps repeat what earlier ones said, so the common case is a look and no more.
        if step.model is not None and (self.model is None or step.start_ns <= self.model[0][0]):
            self._said("model", step, step.model)
        if step.service_version is not None and (self.version is None or step.start_ns <= self.version[0][0]):
            self._said("version", step, step.service_version)
        if step.conversation_id is not None and (self.conversation is None or step.start_ns <= self.conversation[0][0]):
            self._said("conversation", step, step.conversation_id)
        if step.variant is not None:
            self._said("variant", step, step.variant, step.variant_on_span)
        if step.agent is not None and step.agent not in self.agents:
            self.agents, learned = (*self.agents, step.agent)[:SEEN_MAX], True
        if step.service is not None and step.service not in self.services:
            self.services, learned = (*self.services, step.service)[:SEEN_MAX], True
        if step.workflow is not None and step.workflow not in self.workflows:
            self.workflows, learned = (*self.workflows, step.workflow)[:SEEN_MAX], True
        if step.attributes and chooser.attribute_keys:
            learned = self._matched(step.attributes, chooser.attribute_keys) or learned
        if self.by_tool is None or step.end_ns <= self.by_tool[0][0]:
            learned = self._knew(step, chooser) or learned
        return learned

    def _said(self, field: str, step: Step, *values: str | bool) -> bool:
        """Keep what the earliest step says; says whether that is this one."""
        said = ((step.start_ns, step.span_id), *values)
        earlier: tuple[object, ...] | None = getattr(self, field)
        if earlier is not None and earlier <= said:
            return False
        setattr(self, field, said)
        return True

    def _matched(self, attributes: Mapping[str, Any], keys: frozenset[str]) -> bool:
        before = len(self.attributes)
        if before < SEEN_MAX:
            self.attributes |= {(key, str(attributes[key])) for key in keys if attributes.get(key) is not None}
        return len(self.attributes) > before

    def _knew(self, step: Step, chooser: Chooser) -> bool:
        """Keep the earliest tool that only one task knows; says whether it speaks for another task than before."""
        tools = [call.tool for call in step.calls]
        if step.kind in ACTION_KINDS and step.tool is not None:
            tools.append(step.tool)
        before = self.by_tool
        key = (step.end_ns, step.start_ns, step.span_id)
        for tool in tools:
            task = chooser.only_one_that_knows(tool)
            if task is not None and (self.by_tool is None or key < self.by_tool[0]):
                self.by_tool = (key, task)
        return self.by_tool is not None and (before is None or before[1] is not self.by_tool[1])

    def absorb(self, other: Evidence) -> None:
        """Take over what another run, which is a part of this one, has shown."""
        for field in ("explicit", "variant", "version", "model", "conversation"):
            mine, its = getattr(self, field), getattr(other, field)
            if its is not None and (mine is None or its < mine):
                setattr(self, field, its)
        if other.by_tool is not None and (self.by_tool is None or other.by_tool[0] < self.by_tool[0]):
            self.by_tool = other.by_tool
        for field in ("agents", "services", "workflows"):
            setattr(self, field, tuple(dict.fromkeys((*getattr(self, field), *getattr(other, field))))[:SEEN_MAX])
        if len(self.attributes) < SEEN_MAX:
            self.attributes |= other.attributes


def _asks(match: Match | None) -> int:
    if match is None:
        return 0
    return sum(x is not None for x in (match.agent, match.service, match.workflow)) + len(match.attributes)


def _fits(match: Match, evidence: Evidence) -> bool:
    for pattern, seen in (
        (match.agent, evidence.agents),
        (match.service, evidence.services),
        (match.workflow, evidence.workflows),
    ):
        if pattern is not None and not any(fnmatchcase(name, pattern) for name in seen):
            return False
    for name, pattern in match.attributes.items():
        if not any(key == name and fnmatchcase(value, pattern) for key, value in evidence.attributes):
            return False
    return _asks(match) > 0

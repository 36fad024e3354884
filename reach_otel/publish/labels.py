"""Give the closed sets that label values come from: what a span holds is no label value unless a task names it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, NamedTuple

from reach_otel import names
from reach_otel.task.glob import matcher

if TYPE_CHECKING:
    from reach_otel.engine.action import Action
    from reach_otel.task import Task, Tasks

OTHER: Final = "other"
UNKNOWN: Final = "unknown"
OVERFLOW: Final = names.OVERFLOW

OUTCOMES: Final = ("success", "partial", "failed", "abandoned", "evicted")
LEVELS: Final = ("L0", "L1", "L2", "L3", "L4")
CLASSES: Final = ("effective", "off_task", "repeat", "stuck", "cut_off")
OBSTACLE_KINDS: Final = ("error", "slow", "bad_data", "fallback")
TOKEN_CLASSES: Final = ("effective", "retry", "ineffective", "answer", OTHER)
STATUSES: Final = ("ok", "error")
FORBIDDEN_TOOL: Final = "forbidden_tool"
TOOL_NOT_ALLOWED: Final = "tool_not_allowed"
RULES: Final = (FORBIDDEN_TOOL, TOOL_NOT_ALLOWED)
TIERS: Final = ("outcome", "trajectory", "system")
STEP_KINDS: Final = ("agent", "model", "tool", "plan", "handoff", "retrieval", OTHER)
UNSPECIFIED: Final = "unspecified"  # the Collector's processor does not say what it masked
MASKED: Final = "masked"
SENSITIVE_KINDS: Final = (UNSPECIFIED,)
SENSITIVE_ACTIONS: Final = (MASKED,)
ATS: Final = ("5", "10")
REASONS: Final = {
    "L0": ("intent_missed", "no_action"),
    "L1": ("tool_not_found", "wrong_tool", "never_tried"),
    "L2": ("bad_args", "fabricated", "tool_error", "permission", "timeout"),
    "L3": ("missing_field", "unused", "out_of_order", "ignored_result", "gave_up", "stuck", "cut_off", "no_content"),
    "L4": ("no_output", "incomplete", "hallucinated_success", "error_as_answer"),
}

_GLOB = re.compile(r"[*?\[]")


class MilestoneLabels(NamedTuple):
    """Label values of one milestone."""

    id: str
    type: str
    layer: str


class TaskLabels:
    """Hold the label values that one task can have, and map what a run says onto them."""

    __slots__ = (
        "_agent_glob",
        "_forbids",
        "_task",
        "agents",
        "duration_limits",
        "ks",
        "layers_max",
        "milestones",
        "name",
        "tier_weights",
        "tools",
        "variant",
    )

    def __init__(self, task: Task) -> None:
        self.name = task.name
        self.variant: str | None = task.variant
        self.milestones = tuple(MilestoneLabels(m.id, m.type, str(m.layer)) for m in task.milestones)
        self.layers_max = len(task.layer_weights)
        self.ks = tuple(dict.fromkeys((*ATS, str(task.k))))
        self.tools = (*sorted(set(_literal(_tools_of(task)))), OTHER)
        self._agent_glob = task.match.agent if task.match else None
        self.agents = (self._agent_glob, OTHER) if self._agent_glob else (OTHER,)
        scene, outcome = task.scene, task.outcome
        self.tier_weights = tuple(zip(TIERS, (scene.outcome, scene.trajectory, scene.system), strict=True))
        limit = outcome.duration_seconds_max if outcome else None
        self.duration_limits = () if limit is None else (float(limit),)
        self._task: Task | None = task
        self._forbids = matcher(task.forbidden_tools)

    @classmethod
    def unmatched(cls, tasks: Iterable[Task]) -> TaskLabels:
        """Return the labels of runs that match no task: the tools of all tasks are known, nothing else is."""
        self = cls.__new__(cls)
        self.name = names.UNMATCHED
        self.variant = None
        self.milestones = ()
        self.layers_max = 0
        self.ks = ()
        self.tools = (*sorted({tool for task in tasks for tool in _literal(_tools_of(task))}), OTHER)
        self._agent_glob = None
        self.agents = (OTHER,)
        self.tier_weights = ()
        self.duration_limits = ()
        self._task = None
        self._forbids = matcher(())
        return self

    def agent(self, name: str | None) -> str:
        """Return the agent's declared name, or the glob that it fits."""
        glob = self._agent_glob
        return glob if glob and name is not None and (name == glob or fnmatchcase(name, glob)) else OTHER

    def violation(self, action: Action) -> str | None:
        """Name the rule of least privilege that an action breaks: one at most, and ``forbidden_tool`` first.

        What is retrieved from counts only if it is forbidden by name: nobody lists data sources as allowed tools.
        """
        task, tool = self._task, action.tool
        if task is None or action.kind == "handoff" or task.allows(tool):
            return None
        if self._forbids(tool):
            return FORBIDDEN_TOOL
        return TOOL_NOT_ALLOWED if action.kind == "tool" else None


class LabelsByTask(dict[str, TaskLabels]):
    """Hold the labels of all loaded tasks by name; a task that is not loaded, as a span may name one, is unmatched."""

    def __init__(self, tasks: Tasks) -> None:
        super().__init__((task.name, TaskLabels(task)) for task in tasks)
        self[names.UNMATCHED] = TaskLabels.unmatched(tasks)

    def __missing__(self, _: str) -> TaskLabels:
        return self[names.UNMATCHED]


def break_points() -> Iterator[tuple[str, str]]:
    """Yield every level with every reason, the unforeseen one included."""
    for level, reasons in REASONS.items():
        for reason in (*reasons, OTHER):
            yield level, reason


def _tools_of(task: Task) -> Iterator[str]:
    for milestone in task.milestones:
        yield from milestone.tools
    for trap in task.traps:
        yield from trap.condition.tools
    yield from task.allowed_tools or ()
    yield from task.forbidden_tools


def _literal(tools: Iterable[str]) -> Iterator[str]:
    return (tool for tool in tools if not _GLOB.search(tool))

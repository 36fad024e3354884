"""Prepare what the engine asks of a task on every step, once a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from reach_otel.engine.sources import canonical
from reach_otel.names import UNMATCHED
from reach_otel.task.model import TaskFile
from reach_otel.task.task import compile_task

if TYPE_CHECKING:
    from reach_otel.task import Task


class Plan(Struct, frozen=True):
    """A task with the sums and lists that scores need; ``matched`` is false for runs of no task."""

    task: Task
    matched: bool
    k: int  # 0: no cap
    must: tuple[int, ...]
    deepest: frozenset[int]  # must-milestones of the deepest layer
    weight: float  # of all must-milestones
    constants: tuple[str, ...]  # canonical literals of the conditions, for grounding
    traces_values: bool  # some value must have a source or a use, so sources are kept
    hears: bool  # some condition names no tool, so texts matter
    asks_agent: bool  # some condition looks at the agent's name


def plan_of(task: Task, *, matched: bool = True) -> Plan:
    """Prepare a task."""
    must = tuple(m.index for m in task.milestones if m.type == "must")
    deepest = len(task.layer_weights)
    conditions = [m.condition for m in task.milestones] + [t.condition for t in task.traps]
    return Plan(
        task=task,
        matched=matched,
        k=task.k if matched else 0,
        must=must,
        deepest=frozenset(i for i in must if task.milestones[i].layer == deepest),
        weight=sum(task.layer_weights[task.milestones[i].layer - 1] for i in must),
        constants=tuple(value for literal in task.constants if (value := canonical(literal)) is not None),
        traces_values=bool(task.grounded or any(m.grounded or m.used for m in task.milestones)),
        hears=bool(task.milestones_for(None) or task.traps_for(None)),
        asks_agent=any("agent" in condition.mentions for condition in conditions),
    )


def no_plan() -> Plan:
    """Prepare for runs of no known task: loops, errors and tokens are seen, nothing can be reached."""
    return plan_of(compile_task(TaskFile(task=UNMATCHED)), matched=False)

"""Name what the engine tells the world: values, in the order in which they happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from reach_otel.engine.action import Action
    from reach_otel.engine.record import Record


class MilestoneView(Struct, frozen=True, gc=False):
    """Show one milestone of an open run: ``state`` is ``reached``, ``passed`` or ``missed``."""

    id: str
    type: str
    layer: int
    state: str
    reason: str | None
    action: int | None


class RunSummary(Struct, frozen=True, gc=False):
    """Show an open run in small: what a list, a live page or a gauge needs. Ratios are 0-1, ``None`` where absent."""

    run_id: str
    trace_id: str
    task: str
    agent: str | None
    variant: str | None
    started_ns: int  # Unix time of the earliest step
    latest_ns: int  # Unix time of the latest step's end
    actions: int
    last_tool: str | None
    depth: float
    purity: float
    digestion: float | None
    composite: float
    high_layer: float | None
    milestones: tuple[MilestoneView, ...]
    findings: tuple[str, ...]  # kinds found so far, in order of first sight


class RunOpened(Struct, frozen=True, gc=False):
    """Say that a run was seen for the first time."""

    run_id: str


class RunChanged(Struct, frozen=True, gc=False):
    """Say that an open run has new numbers; at most one of these a run and feed."""

    summary: RunSummary


class RunMerged(Struct, frozen=True, gc=False):
    """Say that what looked like a run of its own belongs to another one: forget ``run_id``."""

    run_id: str
    into: str


class RunClosed(Struct, frozen=True, gc=False):
    """Give the one verdict on a run, with its actions and with (agent, seconds, ok) of each model step."""

    record: Record
    actions: tuple[Action, ...]
    models: tuple[tuple[str | None, float, bool], ...]


class RunDropped(Struct, frozen=True, gc=False):
    """Say that a run could not be scored, because the engine failed on it: forget ``run_id``."""

    run_id: str


class Counted(Struct, frozen=True, gc=False):
    """Count something that is no run event: ``what`` is duplicate, late, evicted, overflow, merged, fault, skew."""

    what: str
    reason: str
    n: int = 1
    seconds: float | None = None  # late: age since the verdict
    where: str | None = None  # fault of our own: kind of exception and place in the code, never a value


Event: TypeAlias = RunOpened | RunChanged | RunMerged | RunClosed | RunDropped | Counted

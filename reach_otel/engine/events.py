"""Name what the engine tells the world: values, in the order in which they happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from reach_otel.engine.action import Action
    from reach_otel.engine.record import Record

VariantBy: TypeAlias = Literal["task", "named", "span", "model"]
"""Where a run's variant comes from: the task file, the deployer (setting, resource), a span, or the model's name."""


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
    variant_by: VariantBy | None = None


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


class Root(Struct, frozen=True, gc=False):
    """Name the span that stands for a run; times are Unix nanoseconds. ``sampled`` is ``None`` where nobody said."""

    trace_id: str
    span_id: str
    start_ns: int
    end_ns: int
    ok: bool
    error: str | None
    sampled: bool | None


class ModelCall(Struct, frozen=True, gc=False):
    """Tell of one model step what publishers count."""

    agent: str | None
    seconds: float
    ok: bool
    error: str | None


class RunClosed(Struct, frozen=True, gc=False):
    """Give the one verdict on a run, with its actions and model calls.

    ``root`` is the outermost agent that ended last, else the earliest top span. ``masked`` says how many values a
    Collector had masked, by kind of step.
    """

    record: Record
    actions: tuple[Action, ...]
    models: tuple[ModelCall, ...]
    root: Root | None = None
    masked: tuple[tuple[str, int], ...] = ()
    variant_by: VariantBy | None = None


class RunDropped(Struct, frozen=True, gc=False):
    """Say that a run is not scored, as the engine failed on it or saw only a part of it: forget ``run_id``."""

    run_id: str


class Counted(Struct, frozen=True, gc=False):
    """Count something that is no run event.

    ``what`` is duplicate, late, evicted, incomplete, overflow, merged, fault or skew.
    """

    what: str
    reason: str
    n: int = 1
    seconds: float | None = None  # late: age since the verdict
    where: str | None = None  # fault of our own: kind of exception and place in the code, never a value


Event: TypeAlias = RunOpened | RunChanged | RunMerged | RunClosed | RunDropped | Counted

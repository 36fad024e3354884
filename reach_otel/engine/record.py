"""Shape the run record (SPEC 20): what ``replay --json``, the API and the handle's ``score()`` all return."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

Outcome = Literal["success", "partial", "failed", "abandoned", "evicted", "running"]
State = Literal["reached", "passed", "missed"]


class Scores(Struct, frozen=True):
    """Reach scores of SPEC 6, each 0-1; ``None`` where there is nothing to measure."""

    depth: float
    purity: float
    digestion: float | None
    composite: float
    high_layer: float | None
    coverage: int
    reach_at_k: dict[str, float]
    optional_reach: float | None
    fallback_reach: float | None


class MilestoneRecord(Struct, frozen=True):
    """Where one milestone stands: ``action`` and ``seconds`` tell when it held, or first went by without arriving."""

    id: str
    type: str
    layer: int
    state: State
    reason: str | None
    action: int | None
    seconds: float | None
    span_id: str | None


class TrapRecord(Struct, frozen=True):
    """A trap that was hit, and by which action."""

    id: str
    action: int
    span_id: str | None


class ObstacleRecord(Struct, frozen=True):
    """Something that stood in the way, the milestone it blocked, and whether the agent got past it."""

    kind: str
    tool: str
    milestone: str | None
    action: int
    retries: int
    digested: bool


class FindingRecord(Struct, frozen=True):
    """A flag on the trajectory with the action that raised it; values in ``detail`` are masked."""

    finding: str
    action: int | None
    detail: str
    span_id: str | None


class LevelRecord(Struct, frozen=True):
    """Verdict of one level L0-L4."""

    passed: bool
    reason: str | None


class BreakPoint(Struct, frozen=True):
    """The first level that failed, and why."""

    level: str
    reason: str


class TokenRecord(Struct, frozen=True):
    """Tokens by what they were spent on; ``total`` also holds tokens that belong to no action and no answer."""

    effective: int = 0
    retry: int = 0
    ineffective: int = 0
    answer: int = 0
    total: int = 0


class StepRecord(Struct, frozen=True, rename={"klass": "class"}):
    """One normalised step of the run, in order; ``class`` is set on actions only."""

    n: int
    kind: str
    agent: str | None
    tool: str | None
    call_id: str | None
    args: Any
    result: Any
    ok: bool
    error: str | None
    start: str
    seconds: float
    span_id: str
    derived: bool
    klass: str | None


class Record(Struct, frozen=True, omit_defaults=False):
    """The whole of one run."""

    run: str
    trace_id: str
    conversation_id: str | None
    task: str
    agent: str | None
    variant: str | None
    final: bool
    start: str
    duration_seconds: float
    content: Literal["full", "partial", "missing"]
    outcome: Outcome
    scores: Scores
    high_risk: bool
    milestones: tuple[MilestoneRecord, ...]
    traps: tuple[TrapRecord, ...]
    obstacles: tuple[ObstacleRecord, ...]
    findings: tuple[FindingRecord, ...]
    levels: dict[str, LevelRecord]
    break_point: BreakPoint | None
    actions: dict[str, int]
    tokens: TokenRecord
    utilisation: float | None
    cost_dollars: float | None
    steps: tuple[StepRecord, ...] | None = field(default=None)

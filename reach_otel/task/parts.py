"""Hold the parts of a compiled task as plain values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from reach_otel.task.condition import Condition
    from reach_otel.task.path import Path

MilestoneType: TypeAlias = Literal["must", "optional", "fallback"]


@dataclass(frozen=True, slots=True)
class Match:
    """Say which runs are this task; globs, ``None`` where not asked. All that is asked must fit."""

    agent: str | None = None
    service: str | None = None
    workflow: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Weights:
    """Shares of the composite; they sum to 1."""

    depth: float
    purity: float
    digestion: float


@dataclass(frozen=True, slots=True)
class Scene:
    """Shares of the tiers in the total; they sum to 1. ``name`` is ``None`` for three numbers of the file's own."""

    name: str | None
    outcome: float
    trajectory: float
    system: float


@dataclass(frozen=True, slots=True)
class Milestone:
    """One verifiable subgoal; ``depends_on`` is an AND of ORs of milestone indexes, ``line`` its place in the file."""

    index: int
    id: str
    type: MilestoneType
    layer: int
    depends_on: tuple[tuple[int, ...], ...]
    condition: Condition
    tools: tuple[str, ...]
    used: bool
    required: tuple[Path, ...]
    grounded: tuple[str, ...]
    covers: int | None
    description: str = ""
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Trap:
    """What must not happen; with ``when_not_reached``, only until all of these milestones are reached."""

    index: int
    id: str
    condition: Condition
    when_not_reached: tuple[int, ...]
    description: str = ""
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Intent:
    """Words, in lower case, whose mention shows that the goal was understood."""

    mentions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the final output must do; ``contains_results_of`` are milestone indexes."""

    required: bool
    contains_results_of: tuple[int, ...]
    claims_success: tuple[re.Pattern[str], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Limits of the outcome tier: mean quality 0-10 and mean seconds a run; ``None`` where not declared."""

    quality_min: float | None
    duration_seconds_max: float | None

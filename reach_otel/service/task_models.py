"""Describe what the API says of tasks and of the service itself, for OpenAPI."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from reach_otel.service.api_models import Count, Given, Ratio, Seconds


class TaskMilestone(Given):
    """One milestone as it was declared."""

    id: str
    description: str
    type: Literal["must", "optional", "fallback"]
    layer: int
    depends_on: list[list[str]] = Field(description="All of these, of each group one.")
    covers: str | None
    tools: list[str]
    used: bool
    required: list[str]


class TaskTrap(Given):
    """One trap as it was declared."""

    id: str
    description: str
    when_not_reached: list[str]


class Task(Given):
    """A task as it was declared."""

    name: str
    description: str
    k: int
    retry_cap: int
    layer_weights: list[float]
    milestones: list[TaskMilestone]
    traps: list[TaskTrap]
    critical_edges: list[tuple[str | None, str]] = Field(description="From a milestone, or null for the start, to one.")


class Tasks(Given):
    """All loaded tasks, by name."""

    tasks: list[Task]


class HighLayer(Given):
    """High-layer reach over runs: a sum over a sum."""

    expected: Count
    reached: Count
    ratio: Ratio | None


class Means(Given):
    """Means over runs; null without any."""

    depth: Ratio | None
    purity: Ratio | None
    digestion: Ratio | None
    composite: Ratio | None
    duration_seconds: Seconds | None


class ActionSums(Given):
    """Actions over runs."""

    all: Count
    effective: Count
    purity: Ratio | None


class MilestoneRate(Given):
    """How often one milestone was reached, and why not."""

    id: str
    type: str | None
    layer: int | None
    expected: Count
    reached: Count
    passed: Count
    rate: Ratio | None
    reasons: dict[str, Count]
    first_reach_actions: float | None = Field(description="Mean number of the action.")
    first_reach_seconds: float | None


class LevelRate(Given):
    """How often one level was passed."""

    level: str
    runs: Count
    passed: Count
    rate: Ratio | None


class BreakPoints(Given):
    """How many runs broke at one level for one reason."""

    level: str
    reason: str
    runs: Count


class ObstacleRate(Given):
    """How often one kind of obstacle was met and digested."""

    kind: str
    met: Count
    digested: Count
    rate: Ratio | None


class FindingCount(Given):
    """How often one finding was made, and in how many runs."""

    finding: str
    times: Count
    runs: Count


class FeedbackSums(Given):
    """What people said of these runs."""

    entries: Count
    quality: float | None
    agreed: Count
    disagreed: Count


class TaskSummary(Given):
    """One task over a window: runs whose verdict fell into it."""

    task: str
    since: str
    until: str
    window_seconds: int
    runs: Count
    outcomes: dict[str, Count]
    high_layer: HighLayer
    high_risk: bool
    coverage: Ratio | None
    mean: Means
    actions: ActionSums
    milestones: list[MilestoneRate]
    levels: list[LevelRate] = Field(description="The shortfall table.")
    break_points: list[BreakPoints]
    obstacles: list[ObstacleRate]
    findings: list[FindingCount]
    feedback: FeedbackSums


# The service itself.


class SystemRuns(Given):
    """Runs that are open, and that are kept."""

    active: Count
    finished: Count | None = Field(description="Null while the database cannot be read.")
    oldest: str | None = Field(description="Time of the oldest verdict that is kept.")


class Verdicts(Given):
    """Verdicts since the start of the service."""

    total: Count
    by_outcome: dict[str, Count]


class SystemSpans(Given):
    """Spans since the start of the service."""

    received: Count
    per_second: float
    queue: Count
    dropped: dict[str, Count]
    late: Count
    duplicates: Count


class Process(Given):
    """What the process takes of the machine."""

    memory_peak_bytes: Count | None
    cpu_seconds: Seconds
    threads: Count


class System(Given):
    """The service's own health."""

    version: str
    started: str
    uptime_seconds: Seconds
    runs: SystemRuns
    verdicts: Verdicts
    spans: SystemSpans
    timeouts: dict[str, Count]
    errors: dict[str, Count]
    lag_seconds: Seconds
    watchers: Count = Field(description="Clients that listen to events.")
    process: Process
    journal: dict[str, Any] | None

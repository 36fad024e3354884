"""Describe what the API says of runs and takes as feedback, for OpenAPI and for checking what comes in."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StringConstraints, model_validator

Outcome = Literal["success", "partial", "failed", "abandoned", "evicted", "running"]
State = Literal["reached", "passed", "missed"]
Ratio = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]

RUN = "5b8efff798038103d269b633813fc60c"
_TIME = "2026-11-30T08:00:00.000000Z"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Given(_Model):
    """Fields that are always there, also where the value is null."""

    model_config = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True)


# Errors.


class Fault(Given):
    """One thing that is wrong with a request."""

    at: str = Field(description="Where: `query.limit`, `body.quality`.")
    message: str = Field(description="What is wrong, and what is allowed.")


class Problem(_Model):
    """Why a request was not served."""

    detail: str
    errors: list[Fault] | None = Field(default=None, description="One by one, where a parameter or the body is wrong.")

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"detail": "query.limt: unknown parameter; did you mean limit?"}]},
    )


# Runs.


class ShownScores(Given):
    """Scores of a run in small; null where there is nothing to measure."""

    depth: Ratio
    purity: Ratio
    digestion: Ratio | None
    composite: Ratio
    high_layer: Ratio | None


class ShownMilestone(Given):
    """Where one milestone stands."""

    id: str
    type: Literal["must", "optional", "fallback"]
    layer: int
    state: State
    reason: str | None
    action: int | None = Field(description="Number of the action at which it held, or first went by.")


class RunSummary(Given):
    """A run in small."""

    run: str
    trace_id: str
    task: str
    agent: str | None
    variant: str | None
    final: bool = Field(description="False while the run is going: every number may still change.")
    outcome: Outcome
    start: str = Field(description="RFC 3339, UTC.")
    duration_seconds: Seconds
    actions: Count
    scores: ShownScores
    high_risk: bool = Field(description="High-layer reach is below 0.5.")
    milestones: list[ShownMilestone]
    findings: list[str] = Field(description="Kinds, each once.")
    last_tool: str | None

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "run": RUN,
                    "trace_id": RUN,
                    "task": "ticket-handling",
                    "agent": "ticket-agent",
                    "variant": "gpt-4o",
                    "final": True,
                    "outcome": "partial",
                    "start": _TIME,
                    "duration_seconds": 12.3,
                    "actions": 6,
                    "scores": {"depth": 0.6, "purity": 0.75, "digestion": None, "composite": 0.664, "high_layer": 0},
                    "high_risk": True,
                    "milestones": [
                        {"id": "stock", "type": "must", "layer": 2, "state": "passed", "reason": "unused", "action": 3}
                    ],
                    "findings": ["unused"],
                    "last_tool": "update_ticket",
                }
            ]
        },
    )


class RunsPage(Given):
    """Runs from late to early start, open and finished ones in one order."""

    runs: list[RunSummary]
    next: str | None = Field(description="Give it as `cursor` to get the page after this one; null on the last.")


class AllScores(ShownScores):
    """All reach scores of a run."""

    coverage: Literal[0, 1]
    reach_at_k: dict[str, Ratio]
    optional_reach: Ratio | None
    fallback_reach: Ratio | None


class Milestone(ShownMilestone):
    """Where one milestone stands, and when and by which span it got there."""

    seconds: Seconds | None
    span_id: str | None


class Trap(Given):
    """A trap that was hit."""

    id: str
    action: int
    span_id: str | None


class Obstacle(Given):
    """Something that stood in the way."""

    kind: str
    tool: str
    milestone: str | None
    action: int
    retries: Count
    digested: bool


class Finding(Given):
    """A flag on the trajectory."""

    finding: str
    action: int | None
    detail: str
    span_id: str | None


class Level(Given):
    """Verdict of one level."""

    passed: bool
    reason: str | None


class BreakPoint(Given):
    """The first level that failed."""

    level: str
    reason: str


class Tokens(Given):
    """Tokens by what they were spent on."""

    effective: Count
    retry: Count
    ineffective: Count
    answer: Count
    total: Count


class Step(Given):
    """One normalised step. What it was given and what came back is null unless the service shows content."""

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
    seconds: Seconds
    span_id: str
    derived: bool
    class_: str | None = Field(alias="class", serialization_alias="class")


class Opinion(Given):
    """What a person said of a run."""

    id: str
    received: str
    quality: Annotated[float, Field(ge=0, le=10)] | None
    correct: bool | None
    outcome: str | None
    milestones: dict[str, str] | None
    comment: str | None
    author: str | None


class Run(Given):
    """The record of one run, its steps, and sentences that say why."""

    run: str
    trace_id: str
    conversation_id: str | None
    task: str
    agent: str | None
    variant: str | None
    final: bool
    start: str
    duration_seconds: Seconds
    content: Literal["full", "partial", "missing"]
    outcome: Outcome
    scores: AllScores
    high_risk: bool
    milestones: list[Milestone]
    traps: list[Trap]
    obstacles: list[Obstacle]
    findings: list[Finding]
    levels: dict[str, Level]
    break_point: BreakPoint | None
    actions: dict[str, Count]
    tokens: Tokens
    utilisation: Ratio | None
    cost_dollars: float | None
    steps: list[Step] | None = Field(description="Null where the history keeps none.")
    last_tool: str | None
    content_shown: bool = Field(description="Whether steps may hold arguments, results and error texts.")
    why: dict[str, str] = Field(description="For each milestone, why it is reached or not.")
    why_levels: dict[str, str]
    why_obstacles: list[str] = Field(description="In the order of `obstacles`.")
    why_outcome: str
    trace_url: str | None = Field(description="Where the trace can be seen, if the service was told.")
    feedback: list[Opinion] | None = Field(description="Null while the database cannot be read.")


# Feedback.

Name = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Comment = Annotated[str, StringConstraints(min_length=1, max_length=4_000)]
Quality = Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]
Corrections = Annotated[dict[Name, State], Field(min_length=1, max_length=200)]
SAID = ("quality", "correct", "outcome", "milestones", "comment")
"""Of these feedback has at least one."""


def _with(field: str) -> dict[str, Any]:
    """Say in JSON Schema that a field is there and not null."""
    return {"required": [field], "properties": {field: {"not": {"type": "null"}}}}


class Feedback(_Model):
    """What a person says of a run. Name the run by `run` or, where a trace holds only one, by `trace_id`."""

    run: Annotated[str, StringConstraints(min_length=1, max_length=1_000)] | None = None
    trace_id: Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F]{32}$")] | None = None
    id: Name | None = Field(
        default=None, description="Chosen by the client: what is sent again under it counts once. Else one is made."
    )
    quality: Quality | None = Field(default=None, description="0 to 10.")
    correct: StrictBool | None = Field(default=None, description="Whether the machine's verdict is right.")
    outcome: Literal["success", "partial", "failed", "abandoned"] | None = Field(
        default=None, description="What the outcome really was."
    )
    milestones: Corrections | None = Field(default=None, description="Where milestones really stand.")
    comment: Comment | None = None
    author: Name | None = None

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "oneOf": [_with("run"), _with("trace_id")],
            "anyOf": [_with(said) for said in SAID],
            "examples": [
                {"run": RUN, "id": "review-17", "quality": 7, "correct": False, "milestones": {"stock": "reached"}}
            ],
        },
    )

    @model_validator(mode="after")
    def _whole(self) -> Feedback:
        if (self.run is None) == (self.trace_id is None):
            raise ValueError("name the run by either run or trace_id")
        if all(getattr(self, said) is None for said in SAID):
            raise ValueError(f"say something: {', '.join(SAID[:-1])} or {SAID[-1]}")
        return self


class Received(Given):
    """Feedback that is kept."""

    id: str
    run: str
    new: bool = Field(description="False where it had been sent before.")

"""Describe the task file, key by key: what :mod:`reach_otel.task.schema` publishes and editors complete."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, JsonValue, Tag, model_validator
from pydantic_core import PydanticCustomError

from reach_otel import names
from reach_otel.task.cel import check_expression
from reach_otel.task.glob import check_glob
from reach_otel.task.path import parse_path
from reach_otel.task.python import check_target

MILESTONES_MAX = 500
PATTERN_CHARS_MAX = 2_000


def _check_regex(pattern: str) -> str:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"bad regular expression {pattern!r}: {error}") from None
    return pattern


def _check_path(text: str) -> str:
    parse_path(text)
    return text


def _check_variant(name: str) -> str:
    if not re.fullmatch(names.VARIANT_FORM, name) or name == names.OVERFLOW:
        raise ValueError(
            f"bad variant {name!r:.80}; it takes {names.VARIANT_WORDS}, such as prompt-v2, and not {names.OVERFLOW!r}"
        )
    return name


Regex = Annotated[str, Field(max_length=PATTERN_CHARS_MAX), AfterValidator(_check_regex)]
Glob = Annotated[str, Field(max_length=PATTERN_CHARS_MAX), AfterValidator(check_glob)]
PathText = Annotated[str, AfterValidator(_check_path)]
Expression = Annotated[str, Field(max_length=PATTERN_CHARS_MAX), AfterValidator(check_expression)]
PythonTarget = Annotated[str, AfterValidator(check_target)]
Id = Annotated[str, Field(pattern=r"^[\p{L}\p{N}_][\p{L}\p{M}\p{N}_./:@-]*$", max_length=100)]
Word = Annotated[str, Field(min_length=1, max_length=PATTERN_CHARS_MAX)]
Variant = Annotated[  # the schema's way to spell the form that a label value has to have
    str,
    AfterValidator(_check_variant),
    Field(json_schema_extra={"pattern": r"^[\p{L}\p{N}_.:/@+-]{1,64}$", "not": {"const": names.OVERFLOW}}),
]
Bound = int | float | str


class _Model(BaseModel):
    """Refuse unknown keys and take values as they are: ``"15"`` is no number."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Matcher(_Model):
    """One test of one value; exactly one key. A value that is not there passes none but ``exists: false``."""

    eq: JsonValue = Field(default=None, description="Equal; numbers by value, 3 is not the text 3.")
    ne: JsonValue = Field(default=None, description="There and not equal.")
    in_: list[JsonValue] | None = Field(default=None, alias="in", description="Equal to one of these.")
    not_in: list[JsonValue] | None = Field(default=None, description="There and equal to none of these.")
    gt: Bound | None = Field(default=None, description="Greater; numbers with numbers, text with text.")
    ge: Bound | None = Field(default=None, description="Greater or equal.")
    lt: Bound | None = Field(default=None, description="Less.")
    le: Bound | None = Field(default=None, description="Less or equal.")
    matches: Regex | None = Field(default=None, description="Text in which this Python regular expression is found.")
    exists: bool | None = Field(default=None, description="true: there and not null; false: not there, or null.")
    contains: str | int | float | bool | None = Field(
        default=None,
        description="Text that holds this text, a list that holds this item, or an object that has this key.",
    )

    @model_validator(mode="after")
    def _one(self) -> Matcher:
        if len(self.model_fields_set) != 1:
            raise PydanticCustomError("matcher", "a path takes exactly one matcher; combine several with all:")
        operand = self.operand
        if operand is None and self.operator not in ("eq", "ne"):
            raise PydanticCustomError("matcher", "null can only be compared with eq or ne")
        return self

    @property
    def operator(self) -> str:
        """Name the one matcher that is given, as the file spells it."""
        (name,) = self.model_fields_set
        return "in" if name == "in_" else name

    @property
    def operand(self) -> Any:
        """Give what it compares with."""
        (name,) = self.model_fields_set
        return getattr(self, name)


def _kind_of_expectation(value: Any) -> str:
    return "$matcher" if isinstance(value, (dict, Matcher)) else "$literal"


def _check_literal(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        raise ValueError("an object is compared with eq: {...}")
    return value


Literal_ = Annotated[str | int | float | bool | list[JsonValue] | None, AfterValidator(_check_literal)]
Expectation = Annotated[
    Annotated[Matcher, Tag("$matcher")] | Annotated[Literal_, Tag("$literal")], Discriminator(_kind_of_expectation)
]


class ConditionModel(_Model):
    """Say when an effect holds on a step; everything that is given must be true."""

    tool: Glob | None = Field(default=None, description="Tool name or glob. Several legal ways go under any:.")
    status: Literal["ok", "error"] | None = Field(
        default=None, description="How the call went; ok where tool, args, result or when is given and this is not."
    )
    args: dict[PathText, Expectation] | None = Field(
        default=None, min_length=1, description="Argument path: literal or matcher."
    )
    result: dict[PathText, Expectation] | None = Field(
        default=None, min_length=1, description="Result path: literal or matcher."
    )
    when: Expression | None = Field(
        default=None, description="CEL over tool, args, result, text, agent, duration, attributes, run."
    )
    all: list[ConditionModel] | None = Field(default=None, min_length=1, description="Every one of these.")
    any: list[ConditionModel] | None = Field(default=None, min_length=1, description="One of these.")
    not_: ConditionModel | None = Field(default=None, alias="not", description="Not this.")
    python: PythonTarget | None = Field(
        default=None, description="pkg.mod:function, called with (run, view), returns a bool, has a time limit."
    )

    @property
    def empty(self) -> bool:
        """Tell a condition that asks for nothing."""
        return not any(getattr(self, name) is not None for name in type(self).model_fields)

    @property
    def wanted_status(self) -> str | None:
        """Give the status the step must have; ``None`` leaves it to ``all``, ``any``, ``not`` and ``python``."""
        if self.status is not None:
            return self.status
        asks = (self.tool, self.args, self.result, self.when)
        return None if all(part is None for part in asks) else "ok"


class AnyOf(_Model):
    """One of these milestones is enough."""

    any: list[Id] = Field(min_length=1)


def _kind_of_dependency(value: Any) -> str:
    return "$any" if isinstance(value, (dict, AnyOf)) else "$id"


Dependency = Annotated[Annotated[AnyOf, Tag("$any")] | Annotated[Id, Tag("$id")], Discriminator(_kind_of_dependency)]


class MilestoneModel(_Model):
    """One verifiable subgoal."""

    id: Id
    description: str = ""
    type: Literal["must", "optional", "fallback"] = "must"
    covers: Id | None = Field(default=None, description="fallback only: the must-milestone this branch stands in for.")
    depends_on: list[Dependency] = Field(default=[], description="Ids, or {any: [ids]} for one of these.")
    verify: ConditionModel | None = Field(default=None, description="When the effect holds.")
    required: list[PathText] = Field(default=[], description="Result paths that must be present and not null.")
    used: bool = Field(default=False, description="Reached only once a value of the result is used later.")
    grounded: list[Glob] = Field(default=[], description="More argument names whose values must come from somewhere.")
    tools: list[Glob] | None = Field(default=None, description="Effective tools; default: those the condition names.")


class TrapModel(_Model):
    """Something that must not happen."""

    id: Id
    description: str = ""
    when_not_reached: list[Id] = Field(default=[], description="Only a trap while none of these is reached.")
    verify: ConditionModel


class MatchModel(_Model):
    """Which runs are this task; everything that is given must fit."""

    agent: Glob | None = Field(default=None, description="Agent name, glob.")
    service: Glob | None = Field(default=None, description="service.name, glob.")
    workflow: Glob | None = Field(default=None, description="Workflow name, glob.")
    attributes: dict[str, Glob] = Field(default={}, description="Attribute name: glob of its value as text.")

    @model_validator(mode="after")
    def _not_empty(self) -> MatchModel:
        if not (self.agent or self.service or self.workflow or self.attributes):
            raise PydanticCustomError("match", "match is empty; give agent, service, workflow or attributes")
        return self


class WeightsModel(_Model):
    """Parts of the composite; they are divided by their sum."""

    depth: float = Field(ge=0)
    purity: float = Field(ge=0)
    digestion: float = Field(ge=0)

    @model_validator(mode="after")
    def _some(self) -> WeightsModel:
        if self.depth + self.purity + self.digestion <= 0:
            raise PydanticCustomError("weights", "weights are all 0; one of them must be more")
        return self


class IntentModel(_Model):
    """What shows that the goal was understood (L0)."""

    mentions: list[Word] = Field(min_length=1, description="Words that plan, first actions or final output mention.")


class DeliveryModel(_Model):
    """What the final output must do (L4)."""

    required: bool = Field(default=True, description="A final output must exist.")
    contains_results_of: list[Id] = Field(default=[], description="Milestones of whose results it must name a value.")
    claims_success: list[Regex] = Field(default=[], description="Wordings by which it claims success.")


class OutcomeModel(_Model):
    """Limits of the outcome tier."""

    quality_min: float | None = Field(default=None, ge=0, le=10, description="Mean quality, 0-10, that is good enough.")
    duration_seconds_max: float | None = Field(
        default=None, gt=0, description="Mean duration of a run that is good enough."
    )


SceneName = Literal["customer_service", "code", "workflow", "general"]


def _kind_of_scene(value: Any) -> str:
    return "$numbers" if isinstance(value, (list, tuple)) else "$name"


def _check_shares(shares: list[float]) -> list[float]:
    if sum(shares) <= 0:
        raise PydanticCustomError("weights", "weights are all 0; one of them must be more")
    return shares


Share = Annotated[float, Field(ge=0)]
Shares = Annotated[list[Share], Field(min_length=3, max_length=3), AfterValidator(_check_shares)]
Scene = Annotated[
    Annotated[SceneName, Tag("$name")] | Annotated[Shares, Tag("$numbers")],
    Discriminator(_kind_of_scene),
]


class TaskFile(_Model):
    """A task: a named goal as a graph of milestones."""

    task: Id = Field(description="Name of the task.")
    description: str = ""
    match: MatchModel | None = None
    variant: Variant | None = Field(default=None, description="Fixed variant of every run of this task.")
    k: int = Field(default=15, ge=1, le=1_000, description="Reach@K, and the hard cap on counted actions.")
    retry_cap: int = Field(
        default=2, ge=0, le=1_000, description="Further failing calls of a tool before it counts as stuck."
    )
    slow_factor: float = Field(default=3.0, gt=1, description="A call slower than this many baselines is an obstacle.")
    baselines: dict[str, Annotated[float, Field(gt=0)]] = Field(
        default={}, description="Tool: usual seconds; else learned."
    )
    weights: WeightsModel = WeightsModel(depth=0.4, purity=0.3, digestion=0.3)
    layer_weight_step: float | None = Field(
        default=None, ge=0, description="Layer n weighs 1 + (n-1) * step; default 1."
    )
    layer_weights: list[Annotated[float, Field(gt=0)]] | None = Field(
        default=None, min_length=1, description="Weight of each layer, from layer 1 to the deepest must-milestone's."
    )
    optional_bonus: float = Field(default=0.0, ge=0, le=1, description="Times optional reach, added to the composite.")
    no_obstacle: Literal["exclude", "one"] = Field(
        default="exclude", description="Digestion of a run without obstacle."
    )
    order: Literal["strict", "any"] = Field(default="strict", description="any: dependencies need not hold first.")
    scene: Scene = Field(default="general", description="Tier weights: a name, or [outcome, trajectory, system].")
    grounded: list[Glob] = Field(default=[], description="Argument names whose values must come from somewhere.")
    free_text: list[Glob] = Field(default=[], description="Argument names ignored when two calls are compared.")
    error_when: list[Regex] | None = Field(
        default=None, description="Result texts that are errors, in place of the built-in patterns; [] for none."
    )
    allowed_tools: list[Glob] | None = Field(default=None, description="Any other tool is an access violation.")
    forbidden_tools: list[Glob] = Field(default=[], description="Tools whose use is an access violation.")
    milestones: list[MilestoneModel] = Field(default=[], max_length=MILESTONES_MAX)
    traps: list[TrapModel] = Field(default=[], max_length=MILESTONES_MAX)
    intent: IntentModel | None = None
    delivery: DeliveryModel | None = None
    outcome: OutcomeModel | None = None

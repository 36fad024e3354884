"""Hold a compiled task: what the engine asks on every step, answered from indexes and small caches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeVar, overload

from reach_otel.task.condition import Call, Condition, call_directly
from reach_otel.task.glob import matcher
from reach_otel.task.graph import Edge, critical_edges, layers, topological_order
from reach_otel.task.model import AnyOf, ConditionModel, MilestoneModel, SceneName, TaskFile
from reach_otel.task.parts import Delivery, Intent, Match, Milestone, Outcome, Scene, Trap, Weights
from reach_otel.task.path import Path

__all__ = [
    "Delivery",
    "Intent",
    "Match",
    "Milestone",
    "Outcome",
    "Scene",
    "Task",
    "Tasks",
    "Trap",
    "Weights",
    "compile_task",
]

_CACHE_MAX = 4_096  # names a task remembers; span content chooses them, so there must be an end
_T = TypeVar("_T")
_K = TypeVar("_K")

_SCENES: Mapping[SceneName, tuple[float, float, float]] = {
    "customer_service": (0.5, 0.2, 0.3),
    "code": (0.4, 0.4, 0.2),
    "workflow": (0.3, 0.2, 0.5),
    "general": (0.4, 0.3, 0.3),
}


@dataclass(frozen=True, slots=True)
class _Index:
    """Answer questions about names, remembering at most :data:`_CACHE_MAX` answers of each kind."""

    tools: tuple[Callable[[str], bool], ...]  # one a milestone
    effective: Callable[[str], bool]
    known: Callable[[str], bool]
    grounded: Callable[[str], bool]
    free_text: Callable[[str], bool]
    allowed: Callable[[str], bool]
    forbidden: Callable[[str], bool]
    is_effective: dict[str, bool] = field(default_factory=dict)
    is_known: dict[str, bool] = field(default_factory=dict)
    is_grounded: dict[str, bool] = field(default_factory=dict)
    is_free_text: dict[str, bool] = field(default_factory=dict)
    is_allowed: dict[str, bool] = field(default_factory=dict)
    milestones: dict[str | None, tuple[int, ...]] = field(default_factory=dict)
    traps: dict[str | None, tuple[int, ...]] = field(default_factory=dict)
    blocked: dict[str, tuple[int, ...]] = field(default_factory=dict)


def _remember(cache: dict[_K, _T], key: _K, answer: _T) -> _T:
    if len(cache) >= _CACHE_MAX:
        cache.clear()
    cache[key] = answer
    return answer


@dataclass(frozen=True, slots=True)
class Task:
    """A task file, compiled. Milestones keep their declared order; indexes everywhere are places in it.

    ``layer_weights`` holds the weight of layer 1, 2, ... to the deepest must-milestone's; ``topological`` orders
    milestones after all they may wait for. Two tasks are equal when their files say the same.
    """

    name: str
    description: str
    match: Match | None
    variant: str | None
    k: int
    retry_cap: int
    slow_factor: float
    baselines: Mapping[str, float]
    weights: Weights
    optional_bonus: float
    no_obstacle: Literal["exclude", "one"]
    order: Literal["strict", "any"]
    layer_weights: tuple[float, ...]
    milestones: tuple[Milestone, ...]
    traps: tuple[Trap, ...]
    allowed_tools: tuple[str, ...] | None
    forbidden_tools: tuple[str, ...]
    grounded: tuple[str, ...]
    free_text: tuple[str, ...]
    intent: Intent | None
    delivery: Delivery | None
    outcome: Outcome | None
    scene: Scene
    constants: tuple[str | int | float, ...]
    error_when: tuple[re.Pattern[str], ...] | None
    needs_text: bool
    needs_attributes: bool
    topological: tuple[int, ...]
    critical_edges: tuple[Edge, ...]
    file: str = field(default="<string>", compare=False)
    line: int = field(default=0, compare=False)
    model: TaskFile = field(kw_only=True, repr=False)
    _index: _Index = field(kw_only=True, repr=False, compare=False)

    def knows(self, tool: str) -> bool:
        """Tell whether the file names this tool: on a milestone or trap, or as allowed or forbidden."""
        cache = self._index.is_known
        answer = cache.get(tool)
        return _remember(cache, tool, self._index.known(tool)) if answer is None else answer

    def effective(self, tool: str) -> bool:
        """Tell whether this tool is among the effective tools of some milestone."""
        cache = self._index.is_effective
        answer = cache.get(tool)
        return _remember(cache, tool, self._index.effective(tool)) if answer is None else answer

    def is_grounded(self, name: str) -> bool:
        """Tell whether values of this argument must come from somewhere, on any call."""
        cache = self._index.is_grounded
        answer = cache.get(name)
        return _remember(cache, name, self._index.grounded(name)) if answer is None else answer

    def is_free_text(self, name: str) -> bool:
        """Tell whether this argument is left out when two calls are compared."""
        cache = self._index.is_free_text
        answer = cache.get(name)
        return _remember(cache, name, self._index.free_text(name)) if answer is None else answer

    def milestones_for(self, tool: str | None) -> tuple[int, ...]:
        """Give the milestones whose condition could hold on a step of this tool (``None``: a step with no tool)."""
        cache = self._index.milestones
        answer = cache.get(tool)
        if answer is None:
            answer = tuple(m.index for m in self.milestones if m.condition.admits(tool))
            _remember(cache, tool, answer)
        return answer

    def traps_for(self, tool: str | None) -> tuple[int, ...]:
        """Give the traps whose condition could hold on a step of this tool."""
        cache = self._index.traps
        answer = cache.get(tool)
        if answer is None:
            answer = tuple(t.index for t in self.traps if t.condition.admits(tool))
            _remember(cache, tool, answer)
        return answer

    def blocked_by(self, tool: str) -> tuple[int, ...]:
        """Give the milestones for which this tool is effective, by layer, then declared order."""
        cache = self._index.blocked
        answer = cache.get(tool)
        if answer is None:
            fitting = [m for m, fits in zip(self.milestones, self._index.tools, strict=True) if fits(tool)]
            answer = tuple(m.index for m in sorted(fitting, key=lambda m: (m.layer, m.index)))
            _remember(cache, tool, answer)
        return answer

    def allows(self, tool: str) -> bool:
        """Tell whether least privilege lets an agent use this tool."""
        cache = self._index.is_allowed
        answer = cache.get(tool)
        if answer is None:
            answer = _remember(cache, tool, self._index.allowed(tool) and not self._index.forbidden(tool))
        return answer


class Tasks(Sequence[Task]):
    """All loaded tasks, by name; immutable."""

    __slots__ = ("_tasks", "by_name")

    def __init__(self, tasks: Iterable[Task] = ()) -> None:
        """Raise ``ValueError`` when two tasks have one name."""
        self._tasks = tuple(sorted(tasks, key=lambda task: task.name))
        self.by_name: Mapping[str, Task] = MappingProxyType({task.name: task for task in self._tasks})
        if len(self.by_name) < len(self._tasks):
            raise ValueError("two tasks have one name")

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> Tasks: ...
    def __getitem__(self, index: int | slice) -> Task | Tasks:
        return Tasks(self._tasks[index]) if isinstance(index, slice) else self._tasks[index]

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tasks) and self._tasks == other._tasks

    def __hash__(self) -> int:
        return hash(tuple(self.by_name))

    def __repr__(self) -> str:
        return f"Tasks({', '.join(self.by_name)})"


def compile_task(
    model: TaskFile,
    *,
    file: str = "<string>",
    line_of: Callable[[tuple[str | int, ...]], int] = lambda _where: 0,
    call: Call = call_directly,
) -> Task:
    """Compile a checked file (:mod:`reach_otel.task.checks` holds the checks; ids it names must exist)."""
    places = {milestone.id: index for index, milestone in enumerate(model.milestones)}
    depends_on = dependencies(model)
    types = [milestone.type for milestone in model.milestones]
    depth = layers(types, depends_on)
    milestones = tuple(
        _milestone(each, index, depth[index], depends_on[index], places, line_of(("milestones", index)), call)
        for index, each in enumerate(model.milestones)
    )
    traps = tuple(
        Trap(
            index=index,
            id=each.id,
            condition=Condition(each.verify, call),
            when_not_reached=tuple(places[name] for name in each.when_not_reached),
            description=each.description,
            line=line_of(("traps", index)),
        )
        for index, each in enumerate(model.traps)
    )
    conditions = [*(part.condition for part in milestones), *(part.condition for part in traps)]
    return Task(
        name=model.task,
        description=model.description,
        match=None if model.match is None else Match(**model.match.model_dump()),
        variant=model.variant,
        k=model.k,
        retry_cap=model.retry_cap,
        slow_factor=float(model.slow_factor),
        baselines=MappingProxyType(dict(model.baselines)),
        weights=_weights(model),
        optional_bonus=float(model.optional_bonus),
        no_obstacle=model.no_obstacle,
        order=model.order,
        layer_weights=layer_weights(model, max((m.layer for m in milestones if m.type == "must"), default=0)),
        milestones=milestones,
        traps=traps,
        allowed_tools=None if model.allowed_tools is None else tuple(model.allowed_tools),
        forbidden_tools=tuple(model.forbidden_tools),
        grounded=tuple(model.grounded),
        free_text=tuple(model.free_text),
        intent=None if model.intent is None else Intent(tuple(word.lower() for word in model.intent.mentions)),
        delivery=_delivery(model, places),
        outcome=None if model.outcome is None else Outcome(**model.outcome.model_dump()),
        scene=_scene(model),
        constants=tuple(dict.fromkeys(value for condition in conditions for value in condition.constants)),
        error_when=None if model.error_when is None else tuple(re.compile(each) for each in model.error_when),
        needs_text=_needs_text(model),
        needs_attributes=bool(model.match and model.match.attributes)
        or any("attributes" in condition.mentions for condition in conditions),
        topological=topological_order(depends_on),
        critical_edges=critical_edges(types, depends_on),
        file=file,
        line=line_of(("task",)),
        model=model,
        _index=_make_index(model, milestones, traps),
    )


def dependencies(model: TaskFile) -> list[tuple[tuple[int, ...], ...]]:
    """Give each milestone's dependencies as indexes: one member of every group must hold; unknown ids are left out."""
    places = {milestone.id: index for index, milestone in enumerate(model.milestones)}

    def groups(milestone: MilestoneModel) -> Iterator[tuple[int, ...]]:
        for each in milestone.depends_on:
            ids = each.any if isinstance(each, AnyOf) else [each]
            group = tuple(dict.fromkeys(places[name] for name in ids if name in places))
            if group:
                yield group

    return [tuple(dict.fromkeys(groups(milestone))) for milestone in model.milestones]


def layer_weights(model: TaskFile, deepest: int) -> tuple[float, ...]:
    """Weigh layers 1 to ``deepest``: as declared, else ``1 + (n - 1) * layer_weight_step``."""
    if model.layer_weights is not None:
        return tuple(map(float, model.layer_weights))
    step = 1.0 if model.layer_weight_step is None else model.layer_weight_step
    return tuple(1.0 + number * step for number in range(deepest))


def _milestone(
    model: MilestoneModel,
    index: int,
    layer: int,
    depends_on: tuple[tuple[int, ...], ...],
    places: Mapping[str, int],
    line: int,
    call: Call,
) -> Milestone:
    condition = Condition(effective_condition(model), call)
    return Milestone(
        index=index,
        id=model.id,
        type=model.type,
        layer=layer,
        depends_on=depends_on,
        condition=condition,
        tools=condition.tools if model.tools is None else tuple(model.tools),
        used=model.used,
        required=tuple(map(Path, model.required)),
        grounded=tuple(model.grounded),
        covers=None if model.covers is None else places[model.covers],
        description=model.description,
        line=line,
    )


def effective_condition(model: MilestoneModel) -> ConditionModel:
    """Give what a milestone verifies; one that says nothing but ``tools`` holds on any successful call of these."""
    if model.verify is not None and not model.verify.empty:
        return model.verify
    tools = model.tools or []
    if len(tools) <= 1:
        return ConditionModel(tool=tools[0] if tools else None)
    return ConditionModel(any=[ConditionModel(tool=tool) for tool in tools])


def _weights(model: TaskFile) -> Weights:
    given = model.weights
    total = given.depth + given.purity + given.digestion
    return Weights(given.depth / total, given.purity / total, given.digestion / total)


def _scene(model: TaskFile) -> Scene:
    if isinstance(model.scene, str):
        return Scene(model.scene, *_SCENES[model.scene])
    total = sum(model.scene)
    outcome, trajectory, system = (share / total for share in model.scene)
    return Scene(None, outcome, trajectory, system)


def _delivery(model: TaskFile, places: Mapping[str, int]) -> Delivery | None:
    given = model.delivery
    if given is None:
        return None
    return Delivery(
        required=given.required,
        contains_results_of=tuple(places[name] for name in given.contains_results_of),
        claims_success=tuple(map(re.compile, given.claims_success)),
    )


def _needs_text(model: TaskFile) -> bool:
    """Tell whether texts must be kept: something compares them with values or words."""
    delivery = model.delivery
    return bool(
        model.grounded
        or any(milestone.grounded or milestone.used for milestone in model.milestones)
        or model.intent
        or (delivery and (delivery.contains_results_of or delivery.claims_success))
    )


def _make_index(model: TaskFile, milestones: Sequence[Milestone], traps: Sequence[Trap]) -> _Index:
    effective = [tool for milestone in milestones for tool in milestone.tools]
    named = [*effective, *(tool for milestone in milestones for tool in milestone.condition.tools)]
    named += [*(tool for trap in traps for tool in trap.condition.tools)]
    named += [*(model.allowed_tools or ()), *model.forbidden_tools]
    return _Index(
        tools=tuple(matcher(milestone.tools) for milestone in milestones),
        effective=matcher(effective),
        known=matcher(tool for tool in named if tool.strip("*")),  # "*" names no tool: it tells no task from another
        grounded=matcher(model.grounded),
        free_text=matcher(model.free_text),
        allowed=matcher(("*",) if model.allowed_tools is None else model.allowed_tools),
        forbidden=matcher(model.forbidden_tools),
    )

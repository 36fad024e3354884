"""Check what a well-formed task file says: errors that stop the load, and warnings and advice that do not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from reach_otel.task.graph import find_cycle, layers
from reach_otel.task.messages import did_you_mean
from reach_otel.task.model import AnyOf, ConditionModel, TaskFile
from reach_otel.task.possible import is_always, why_never
from reach_otel.task.source import Location
from reach_otel.task.task import Task, dependencies

Finding: TypeAlias = tuple[Location, str]

_PREFIX = re.compile(r"^(?:mcp__[^_]+(?:_[^_]+)*?__|functions\.)")

SIZE_ADVISED = (10, 15)
SHARES_ADVISED: dict[str, tuple[float, float]] = {"must": (0.6, 0.7), "optional": (0.2, 0.3), "fallback": (0.1, 0.2)}


@dataclass(frozen=True, slots=True)
class TaskWarning:
    """Something that is allowed but probably not meant (``warning``), or could be better (``advice``)."""

    kind: Literal["warning", "advice"]
    code: str
    message: str
    file: str
    line: int

    def __str__(self) -> str:
        """Start with ``file:line``, as errors do."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.kind}: {self.message}"


def errors(model: TaskFile) -> Iterator[Finding]:
    """Give everything that makes a well-formed file meaningless, with its place."""
    if not model.milestones and not model.traps:
        yield (), "the graph is empty; give milestones:, or traps: where the right thing is to change nothing"
    elif not model.traps and not any(milestone.type == "must" for milestone in model.milestones):
        yield ("milestones",), "no must-milestone and no trap, so no run could be scored; give one milestone type: must"
    duplicates = list(_duplicates(model))
    yield from duplicates
    yield from _unknown_ids(model)
    yield from _wrong_covers(model)
    yield from _conditions(model)
    if duplicates:
        return  # ids name no single milestone, so there is no graph to look at
    depends_on = dependencies(model)
    cycle = find_cycle(depends_on)
    if cycle is not None:
        names = " -> ".join(model.milestones[index].id for index in cycle)
        yield ("milestones", cycle[0], "depends_on"), f"milestones wait for each other: {names}"
        return
    yield from _layer_weights(model, layers([milestone.type for milestone in model.milestones], depends_on))


def _duplicates(model: TaskFile) -> Iterator[Finding]:
    groups = (("milestones", [each.id for each in model.milestones]), ("traps", [each.id for each in model.traps]))
    for key, ids in groups:
        for index, name in enumerate(ids):
            if name in ids[:index]:
                yield (key, index, "id"), f'id "{name}" stands twice; ids of {key} must differ'


def _unknown_ids(model: TaskFile) -> Iterator[Finding]:
    ids = [milestone.id for milestone in model.milestones]
    for where, name in _named_ids(model):
        if name not in ids:
            allowed = ", ".join(ids[:30]) + (", ..." if len(ids) > 30 else "") or "none, as there are no milestones"
            yield where, f'unknown milestone "{name}"; allowed: {allowed}{did_you_mean(name, ids)}'


def _named_ids(model: TaskFile) -> Iterator[tuple[Location, str]]:
    """Give every place where a milestone is named."""
    for index, milestone in enumerate(model.milestones):
        for number, each in enumerate(milestone.depends_on):
            where: Location = ("milestones", index, "depends_on", number)
            if isinstance(each, AnyOf):
                yield from (((*where, "any", place), name) for place, name in enumerate(each.any))
            else:
                yield where, each
        if milestone.covers is not None:
            yield ("milestones", index, "covers"), milestone.covers
    for index, trap in enumerate(model.traps):
        yield from ((("traps", index, "when_not_reached", n), name) for n, name in enumerate(trap.when_not_reached))
    if model.delivery is not None:
        named = model.delivery.contains_results_of
        yield from ((("delivery", "contains_results_of", n), name) for n, name in enumerate(named))


def _wrong_covers(model: TaskFile) -> Iterator[Finding]:
    types = {milestone.id: milestone.type for milestone in model.milestones}
    for index, milestone in enumerate(model.milestones):
        if milestone.covers is None:
            continue
        if milestone.type != "fallback":
            yield ("milestones", index, "covers"), f'covers is for type: fallback; "{milestone.id}" is {milestone.type}'
        elif types.get(milestone.covers, "must") != "must":
            yield (
                ("milestones", index, "covers"),
                f'a fallback covers a must-milestone; "{milestone.covers}" is {types[milestone.covers]}',
            )


def _conditions(model: TaskFile) -> Iterator[Finding]:
    for index, milestone in enumerate(model.milestones):
        if milestone.verify is not None and not milestone.verify.empty:
            yield from _condition(("milestones", index, "verify"), milestone.verify)
    for index, trap in enumerate(model.traps):
        yield from _condition(("traps", index, "verify"), trap.verify)


def _condition(where: Location, model: ConditionModel) -> Iterator[Finding]:
    empty = list(_empty_parts(where, model))
    if empty:
        yield from ((place, "empty condition; give one of " + ", ".join(condition_keys())) for place in empty)
    elif reason := why_never(model):
        yield where, f"this condition can never hold: {reason}"


def condition_keys() -> list[str]:
    """Name the keys of a condition as the file spells them."""
    return [field.alias or name for name, field in ConditionModel.model_fields.items()]


def _empty_parts(where: Location, model: ConditionModel) -> Iterator[Location]:
    if model.empty:
        yield where
    for key, parts in (("all", model.all), ("any", model.any)):
        for index, part in enumerate(parts or ()):
            yield from _empty_parts((*where, key, index), part)
    if model.not_ is not None:
        yield from _empty_parts((*where, "not"), model.not_)


def _layer_weights(model: TaskFile, depth: Sequence[int]) -> Iterator[Finding]:
    if model.layer_weights is None:
        return
    if model.layer_weight_step is not None:
        yield ("layer_weight_step",), "give layer_weights or layer_weight_step, not both"
    musts = zip(model.milestones, depth, strict=True)
    deepest = max((layer for milestone, layer in musts if milestone.type == "must"), default=0)
    if len(model.layer_weights) != deepest:
        yield ("layer_weights",), f"{len(model.layer_weights)} weights for {deepest} layers of must-milestones"


_Rule: TypeAlias = Callable[[Task], Iterator[tuple[Literal["warning", "advice"], str, str, int]]]


def check(task: Task) -> list[TaskWarning]:
    """Give warnings and advice on a loaded task, in the order of its file."""
    found = [
        TaskWarning(kind, code, message, task.file, line) for rule in _RULES for kind, code, message, line in rule(task)
    ]
    return sorted(found, key=lambda warning: (warning.line, warning.code))


def _no_match(task: Task) -> Iterator[tuple[Literal["warning", "advice"], str, str, int]]:
    if task.match is None:
        message = (
            "no match: only runs that name this task, or use a tool that no other loaded task knows, become it; "
            "give match: {agent: NAME}"
        )
        yield "warning", "no_match", message, 0


def _detour_dependencies(task: Task) -> Iterator[tuple[Literal["warning", "advice"], str, str, int]]:
    for milestone in task.milestones:
        if milestone.type != "must":
            continue
        for group in milestone.depends_on:
            members = [task.milestones[index] for index in group]
            if any(member.type == "must" for member in members) or len(members) > 1:
                continue
            (member,) = members
            message = (
                f'must-milestone "{milestone.id}" waits for {member.type} "{member.id}", without which it cannot be '
                f"reached; write {{any: [{member.id}, ...]}} with the main line beside it"
            )
            yield "warning", "detour_dependency", message, milestone.line


def _unverifiable(task: Task) -> Iterator[tuple[Literal["warning", "advice"], str, str, int]]:
    for milestone in task.milestones:
        given = task.model.milestones[milestone.index]
        if given.verify is None or given.verify.empty:
            outcome = (
                f"it holds on any successful call of {', '.join(given.tools)}" if given.tools else "it is never reached"
            )
            message = (
                f'milestone "{milestone.id}" has no verifiable condition: {outcome}; say under verify: what shows it'
            )
            yield "warning", "no_condition", message, milestone.line
        elif _asks_nothing(given.verify):
            message = f'milestone "{milestone.id}" has no verifiable condition: it holds on nearly any step'
            yield "warning", "no_condition", message, milestone.line


def _asks_nothing(model: ConditionModel) -> bool:
    """Tell a condition that every successful (or every failed) step meets."""
    if is_always(model):
        return True
    only = model.model_fields_set - {"tool", "status"}
    return not only and (model.tool is None or not model.tool.strip("*"))


def _used_in_last_layer(task: Task) -> Iterator[tuple[Literal["warning", "advice"], str, str, int]]:
    waited_for = {index for milestone in task.milestones for group in milestone.depends_on for index in group}
    deepest = max((milestone.layer for milestone in task.milestones), default=0)
    for milestone in task.milestones:
        if milestone.used and milestone.layer == deepest and milestone.index not in waited_for:
            message = (
                f'milestone "{milestone.id}" is in the last layer with used: true, so that little but the final output '
                "can use its result"
            )
            yield "advice", "used_last", message, milestone.line


def _uncovered_fallback(task: Task) -> Iterator[tuple[Literal["warning", "advice"], str, str, int]]:
    for milestone in task.milestones:
        if milestone.type == "fallback" and milestone.covers is None:
            message = f'fallback "{milestone.id}" does not say which must-milestone it covers'
            yield "advice", "no_covers", message, milestone.line


def _prefixed_tools(task: Task) -> Iterator[tuple[Literal["warning", "advice"], str, str, int]]:
    """Find patterns that never fit, as spans are read under the bare name, whatever was put before it."""
    places = [(m.condition, m.line) for m in task.milestones] + [(t.condition, t.line) for t in task.traps]
    for condition, line in places:
        for tool in condition.tools:
            bare = _PREFIX.sub("", tool)
            if bare != tool:
                message = f'tool "{tool}" never comes under this name; spans are read without the prefix: give "{bare}"'
                yield "warning", "prefixed_tool", message, line


def _sizes(task: Task) -> Iterator[tuple[Literal["warning", "advice"], str, str, int]]:
    if not task.milestones:
        return
    total = len(task.milestones)
    low, high = SIZE_ADVISED
    if not low <= total <= high:
        yield "advice", "size", f"{total} milestones; {low}-{high} tell most", 0
    counts = Counter(milestone.type for milestone in task.milestones)
    for kind, (least, most) in SHARES_ADVISED.items():
        share = counts[kind] / total  # type: ignore[index]
        if not least <= round(share, 2) <= most:
            yield "advice", "share", f"{share:.0%} {kind} milestones; {least:.0%}-{most:.0%} is usual", 0


_RULES: tuple[_Rule, ...] = (
    _no_match,
    _detour_dependencies,
    _unverifiable,
    _used_in_last_layer,
    _uncovered_fallback,
    _prefixed_tools,
    _sizes,
)

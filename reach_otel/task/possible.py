"""Find conditions that can never hold, or always do, from what they say alone.

Only what is certain is told: a condition that this module lets pass may still be impossible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, TypeAlias

from reach_otel.task.cel import compile_expression
from reach_otel.task.condition import expectations
from reach_otel.task.glob import overlap
from reach_otel.task.matcher import compile_matcher, is_number
from reach_otel.task.model import ConditionModel
from reach_otel.task.path import MISSING, Path

Ask: TypeAlias = tuple[str, Any]
"""Operator and operand."""

_GREATER = ("gt", "ge")
_LESS = ("lt", "le")


@dataclass(slots=True)
class _Asked:
    """Everything that must be true together."""

    tools: list[str] = field(default_factory=list)
    statuses: set[str] = field(default_factory=set)
    values: dict[tuple[str, Path], list[Ask]] = field(default_factory=dict)


def why_never(model: ConditionModel) -> str | None:
    """Say why a condition can never hold, or ``None``."""
    asked = _Asked()
    _collect(model, asked)
    return _inner_reason(model) or _contradiction(asked)


def is_always(model: ConditionModel) -> bool:
    """Tell whether a condition holds on every step, whatever it is."""
    always = []
    if model.tool is not None or model.args or model.result or model.python is not None:
        return False
    if model.wanted_status is not None:
        return False
    if model.all is not None:
        always.append(all(map(is_always, model.all)))
    if model.any is not None:
        always.append(_covers_all(model.any))
    if model.not_ is not None:
        always.append(why_never(model.not_) is not None)
    return bool(always) and all(always)


def _covers_all(parts: list[ConditionModel]) -> bool:
    """Tell whether one of these always holds: ``ok`` or ``error``, or a condition and its ``not``."""
    statuses = {part.status for part in parts if part == ConditionModel(status=part.status)}
    opposites = any(
        part.not_ is not None and part.not_ in parts and part.model_fields_set == {"not_"} for part in parts
    )
    return {"ok", "error"} <= statuses or opposites or any(map(is_always, parts))


def _inner_reason(model: ConditionModel) -> str | None:
    """Look into parts which must each be possible on their own."""
    if model.when is not None and compile_expression(model.when).constant is False:
        return f"when: {model.when!r} is always false"
    for part in model.all or ():
        if reason := _inner_reason(part):
            return reason
    if model.any is not None:
        reasons = [why_never(part) for part in model.any]
        if all(reasons):
            return f"no part of any: can hold ({reasons[0]})"
    if model.not_ is not None and is_always(model.not_):
        return "not: is over a condition that always holds"
    return None


def _collect(model: ConditionModel, asked: _Asked) -> None:
    if model.tool is not None:
        asked.tools.append(model.tool)
    if model.wanted_status is not None:
        asked.statuses.add(model.wanted_status)
    for root, values in (("args", model.args), ("result", model.result)):
        for path, operator, operand in expectations(values or {}):
            asked.values.setdefault((root, Path(path)), []).append((operator, operand))
    for part in model.all or ():
        _collect(part, asked)


def _contradiction(asked: _Asked) -> str | None:
    for one, other in combinations(asked.tools, 2):
        if not overlap(one, other):
            return f"no tool is both {one!r} and {other!r}"
    if len(asked.statuses) > 1:
        return "a call is not both ok and error (status is ok where it is not given)"
    for (root, path), asks in asked.values.items():
        if reason := _impossible_value(asks):
            return f"{root} {path.text}: {reason}"
    return _impossible_parent(asked)


def _impossible_value(asks: list[Ask]) -> str | None:
    """Say why no value passes all of these."""
    told = ", ".join(f"{operator} {operand!r}" for operator, operand in asks)
    candidates = _candidates(asks)
    if candidates is not None:
        tests = [compile_matcher(operator, operand) for operator, operand in asks]
        if not any(all(test(value) for test in tests) for value in candidates):
            return f"nothing passes {told}"
        return None
    absent = ("exists", False) in asks and not all(map(_passes_nothing_there, asks))
    if absent or len(set(_kinds(asks))) > 1 or _empty_range(asks):
        return f"nothing passes {told}"
    return None


def _candidates(asks: Iterable[Ask]) -> list[Any] | None:
    """Give the only values that can pass, where the asks name them."""
    for operator, operand in asks:
        if operator == "eq":
            return [operand]
        if operator == "in":
            return list(operand)
    return None


def _passes_nothing_there(ask: Ask) -> bool:
    test = compile_matcher(*ask)
    return test(None) or test(MISSING)


def _kinds(asks: Iterable[Ask]) -> Iterator[str]:
    """Name the type that each comparison needs."""
    for operator, operand in asks:
        if operator in (*_GREATER, *_LESS):
            yield "number" if is_number(operand) else "text"
        elif operator == "matches":
            yield "text"


def _empty_range(asks: list[Ask]) -> bool:
    lows = [ask for ask in asks if ask[0] in _GREATER]
    highs = [ask for ask in asks if ask[0] in _LESS]
    for (above, low), (below, high) in ((one, other) for one in lows for other in highs):
        if low > high or (low == high and (above == "gt" or below == "lt")):
            return True
    return False


def _impossible_parent(asked: _Asked) -> str | None:
    """Find a path that is asked to be a plain value, or absent, while something is asked of a path inside it."""
    for (root, path), asks in asked.values.items():
        plain = [operand for operator, operand in asks if operator == "eq" and not isinstance(operand, (dict, list))]
        if not plain and ("exists", False) not in asks:
            continue
        for (other_root, inner), inner_asks in asked.values.items():
            inside = other_root == root and inner.parts[: len(path.parts)] == path.parts and inner != path
            if inside and any(ask != ("exists", False) for ask in inner_asks):
                return f"{root} {path.text} cannot be so while {inner.text} is there"
    return None

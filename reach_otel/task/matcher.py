"""Compile literals and matchers into tests of one value."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from reach_otel.task.path import MISSING

Test: TypeAlias = Callable[[Any], bool]


def same(one: Any, other: Any) -> bool:
    """Compare as JSON does: numbers by value, true is not 1, 3 is not the text 3; lists and objects item by item."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def is_number(value: Any) -> bool:
    """Tell numbers from all else; booleans are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def compile_matcher(operator: str, operand: Any) -> Test:
    """Make the test of ``value operator operand``; a value that is :data:`MISSING` passes only ``exists: false``."""
    return _COMPILERS[operator](operand)


def _eq(operand: Any) -> Test:
    if isinstance(operand, str):
        return lambda value: value == operand
    return lambda value: value is not MISSING and same(value, operand)


def _ne(operand: Any) -> Test:
    return lambda value: value is not MISSING and not same(value, operand)


def _in(operand: list[Any]) -> Test:
    if all(isinstance(item, str) for item in operand):
        texts = frozenset(operand)
        return lambda value: isinstance(value, str) and value in texts
    return lambda value: value is not MISSING and any(same(value, item) for item in operand)


def _not_in(operand: list[Any]) -> Test:
    return lambda value: value is not MISSING and not any(same(value, item) for item in operand)


def _comparable(operand: Any) -> Test:
    return is_number if is_number(operand) else lambda value: isinstance(value, str)


def _gt(operand: Any) -> Test:
    comparable = _comparable(operand)
    return lambda value: comparable(value) and value > operand


def _ge(operand: Any) -> Test:
    comparable = _comparable(operand)
    return lambda value: comparable(value) and value >= operand


def _lt(operand: Any) -> Test:
    comparable = _comparable(operand)
    return lambda value: comparable(value) and value < operand


def _le(operand: Any) -> Test:
    comparable = _comparable(operand)
    return lambda value: comparable(value) and value <= operand


def _matches(operand: str) -> Test:
    search = re.compile(operand).search
    return lambda value: isinstance(value, str) and search(value) is not None


def _exists(operand: bool) -> Test:
    return lambda value: (value is not MISSING and value is not None) is operand


def _contains(operand: Any) -> Test:
    def test(value: Any) -> bool:
        if isinstance(value, str):
            return isinstance(operand, str) and operand in value
        if isinstance(value, (list, tuple)):
            return any(same(item, operand) for item in value)
        return isinstance(value, dict) and isinstance(operand, str) and operand in value

    return test


_COMPILERS: dict[str, Callable[[Any], Test]] = {
    "eq": _eq,
    "ne": _ne,
    "in": _in,
    "not_in": _not_in,
    "gt": _gt,
    "ge": _ge,
    "lt": _lt,
    "le": _le,
    "matches": _matches,
    "exists": _exists,
    "contains": _contains,
}

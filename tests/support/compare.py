"""Say in which fields two records differ, so that a failing property is read in seconds."""

from __future__ import annotations

import math
from typing import Any


def differences(left: Any, right: Any, path: str = "") -> list[str]:
    """List the paths at which two trees of built-ins differ; floats are equal to nine digits."""
    if isinstance(left, dict) and isinstance(right, dict):
        keys = sorted(left.keys() | right.keys(), key=str)
        return [
            line
            for key in keys
            for line in differences(left.get(key, "(absent)"), right.get(key, "(absent)"), f"{path}.{key}")
        ]
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        if len(left) != len(right):
            return [f"{path}: {len(left)} against {len(right)} items: {left!r} | {right!r}"]
        pairs = enumerate(zip(left, right, strict=True))
        return [line for n, (a, b) in pairs for line in differences(a, b, f"{path}[{n}]")]
    if isinstance(left, int | float) and isinstance(right, int | float) and not isinstance(left, bool):
        return [] if math.isclose(left, right, rel_tol=1e-9, abs_tol=2e-6) else [f"{path}: {left} | {right}"]
    return [] if left == right else [f"{path}: {left!r} | {right!r}"]


def assert_same(left: Any, right: Any) -> None:
    """Fail with the differing paths (left | right)."""
    found = differences(left, right)
    assert not found, "\n".join(["records differ (left | right):", *found])

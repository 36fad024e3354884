"""Make tasks for tests in one line."""

from __future__ import annotations

import json
from typing import Any

from reach_otel.task.load import load_task_text
from reach_otel.task.task import Task


def goal(name: str, tool: str | None = None, *, after: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    """Shape a milestone on a tool (by default of its own name) that depends on those in ``after``."""
    verify = more.pop("verify", {"tool": tool or name})
    return {"id": name, "verify": verify, "depends_on": after or [], **more}


def chain(*names: str, **more: Any) -> list[dict[str, Any]]:
    """Shape milestones each of which depends on the one before."""
    return [goal(name, after=[names[i - 1]] if i else [], **more) for i, name in enumerate(names)]


def task(*milestones: dict[str, Any], name: str = "shop", **more: Any) -> Task:
    """Load a task of these milestones as a file would be loaded."""
    return load_task_text(json.dumps({"task": name, "milestones": list(milestones), **more}))

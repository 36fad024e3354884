"""Python conditions that the tests of this folder name in task files."""

from __future__ import annotations

from typing import Any

from reach_otel.task.condition import View

NOT_CALLABLE = 3


def is_paid(run: Any, view: View) -> bool:
    return bool(view.ok and view.args == {"paid": True})


def run_has_three_actions(run: Any, view: View) -> bool:
    return bool(run.actions == 3)


def raises(run: Any, view: View) -> bool:
    raise RuntimeError("a bug in the user's code")


def exits(run: Any, view: View) -> bool:
    raise SystemExit(3)


def says_yes_in_words(run: Any, view: View) -> Any:
    return "yes"

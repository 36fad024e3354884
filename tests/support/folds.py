"""Fold actions made by hand, one after another, without any spans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reach_otel.engine.action import Action
from reach_otel.engine.fold import Fold
from reach_otel.engine.plan import no_plan, plan_of
from reach_otel.engine.sources import Sources
from tests.support.steps import at

if TYPE_CHECKING:
    from reach_otel.task.task import Task

ABSENT: Any = object()


class Folding:
    """Make a fold for a task, or for none, and feed it calls of two ticks each."""

    def __init__(self, task: Task | None, *, heard: str | None = None) -> None:
        self.plan = no_plan() if task is None else plan_of(task)
        self.sources = Sources()
        for constant in self.plan.constants:
            self.sources.trust(constant, 0)
        if heard is not None:
            self.sources.add_text(heard, at(0))
        self.fold = Fold(self.plan, self.sources)
        self.now = 1

    def call(
        self,
        tool: str,
        args: Any = ABSENT,
        result: Any = ABSENT,
        *,
        error: str | None = None,
        ticks: int = 2,
        **more: Any,
    ) -> Action:
        """Feed a call; arguments and result count as captured when they are given, an error makes it fail."""
        begin, self.now = self.now, self.now + ticks
        action = Action(
            kind="tool",
            span_id=f"span{self.fold.actions + 1}",
            start_ns=at(begin),
            end_ns=at(self.now),
            tool=tool,
            args=None if args is ABSENT else args,
            has_args=args is not ABSENT,
            result=None if result is ABSENT else result,
            has_result=result is not ABSENT,
            ok=error is None,
            error=error,
            **more,
        )
        self.fold.feed(action)
        return action

    def state(self, milestone: str) -> tuple[str, str | None, int | None]:
        """Give state, reason and action of a milestone."""
        index = next(m.index for m in self.plan.task.milestones if m.id == milestone)
        state, reason, mark = self.fold.progress.state(index)
        return state, reason, mark.n if mark else None

    def found(self) -> list[tuple[str, int | None]]:
        """Give the findings so far with their actions."""
        return [(f.finding, f.action) for f in self.fold.findings]

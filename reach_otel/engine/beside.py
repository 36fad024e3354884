"""Keep what a run must know of its spans that are no steps: wrappers, requests, anything that only holds others."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from reach_otel.engine.scope import outline
from reach_otel.span.step import Step


class Beside(Struct, gc=False):
    """Add up the spans of one run that are no steps; what it holds does not depend on the order in which they came."""

    top: Step | None = None  # the earliest of those with no local parent: its outline and how it failed
    ended_ns: int = 0  # latest end of those with no local parent
    masked: int = 0  # values masked on any of them

    def note(self, step: Step) -> None:
        """Take note of a span that is there for the first time."""
        self.masked += step.masked
        if step.parent_id is None or step.parent_remote:
            self._stand_above(replace(outline(step), error=step.error), step.end_ns)

    def absorb(self, other: Beside) -> None:
        """Take over what a part of the run knows."""
        self.masked += other.masked
        if other.top is not None:
            self._stand_above(other.top, other.ended_ns)

    def _stand_above(self, top: Step, ended_ns: int) -> None:
        self.ended_ns = max(self.ended_ns, ended_ns)
        if self.top is None or (top.start_ns, top.span_id) < (self.top.start_ns, self.top.span_id):
            self.top = top

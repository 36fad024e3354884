"""Hold the place where masking goes: every step passes here between normalising and scoring."""

from __future__ import annotations

from reach_otel.span.step import Step


def redact(step: Step) -> Step:
    """Give the step with everything sensitive masked.

    Nothing is masked yet: the step is given back as it is. Masking belongs here, on values that are already parsed and
    before anything is scored, stored, logged or exported, and must keep equality (a value masks to the same pseudonym
    in each text, argument and result), because grounding and use compare values.
    """
    return step

"""Instrument an agent by hand: ``@agent``, ``@tool``, ``run()``, ``step()``, ``plan()``, ``handoff()``, ``carry()``.

All of it makes standard ``gen_ai.*`` spans with the OpenTelemetry API alone, so that it costs next to nothing while no
SDK is set up, and serves any backend. Arguments, results and messages are put on the spans by default;
``capture_content=False`` on a decorator or :func:`step`, or the setting of that name, leaves them out.
"""

from __future__ import annotations

from reach_otel.api.context import carry, configure, run_attributes
from reach_otel.api.hand import Run, StepSpan, agent, handoff, plan, run, step, tool

__all__ = [
    "Run",
    "StepSpan",
    "agent",
    "carry",
    "configure",
    "handoff",
    "plan",
    "run",
    "run_attributes",
    "step",
    "tool",
]

"""Show how far LLM agents really get, where they stop, and why.

>>> import reach_otel
>>> reach = reach_otel.instrument("tasks/")  # doctest: +SKIP

scores the runs of this process live, from the OpenTelemetry spans that its agents make anyway. Agents without such
spans are instrumented by hand: ``@agent``, ``@tool``, ``run()``, ``step()``, ``plan()``, ``handoff()``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reach_otel.api import agent, carry, handoff, plan, run, step, tool
from reach_otel.errors import InputError, ReachError, SettingsError, StateError, TaskError

# Imported at once, since a submodule of this name would hide the function when it is imported later.
from reach_otel.instrument import Reach, instrument

if TYPE_CHECKING:
    from reach_otel.processor import ReachSpanProcessor

__all__ = [
    "InputError",
    "Reach",
    "ReachError",
    "ReachSpanProcessor",
    "SettingsError",
    "StateError",
    "TaskError",
    "agent",
    "carry",
    "handoff",
    "instrument",
    "plan",
    "run",
    "step",
    "tool",
]


def __getattr__(name: str) -> Any:
    """Import what needs the OpenTelemetry SDK when it is first asked for."""
    if name == "ReachSpanProcessor":
        from reach_otel.processor import ReachSpanProcessor  # noqa: PLC0415

        return ReachSpanProcessor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

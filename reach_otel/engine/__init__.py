"""Score runs: a pure, incremental function from steps to events; no clock, thread, network or log in it."""

from reach_otel.engine.events import (
    Counted,
    Event,
    MilestoneView,
    ModelCall,
    Root,
    RunChanged,
    RunClosed,
    RunDropped,
    RunMerged,
    RunOpened,
    RunSummary,
)
from reach_otel.engine.record import Record
from reach_otel.engine.store import Engine, Limits

__all__ = [
    "Counted",
    "Engine",
    "Event",
    "Limits",
    "MilestoneView",
    "ModelCall",
    "Record",
    "Root",
    "RunChanged",
    "RunClosed",
    "RunDropped",
    "RunMerged",
    "RunOpened",
    "RunSummary",
]

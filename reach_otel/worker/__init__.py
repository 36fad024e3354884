"""Score spans off the agents' threads."""

from __future__ import annotations

from reach_otel.worker.owner import Publisher, Scoring, Worker
from reach_otel.worker.timed import TimedCalls

__all__ = ["Publisher", "Scoring", "TimedCalls", "Worker"]

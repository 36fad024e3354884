"""Declare tasks: graphs of milestones with the conditions under which each one holds."""

from __future__ import annotations

from reach_otel.task.checks import TaskWarning, check
from reach_otel.task.condition import MISSING, CallTimeout, Condition, View
from reach_otel.task.load import load, load_task_text
from reach_otel.task.path import Path
from reach_otel.task.task import (
    Delivery,
    Intent,
    Match,
    Milestone,
    Outcome,
    Scene,
    Task,
    Tasks,
    Trap,
    Weights,
    compile_task,
)

__all__ = [
    "MISSING",
    "CallTimeout",
    "Condition",
    "Delivery",
    "Intent",
    "Match",
    "Milestone",
    "Outcome",
    "Path",
    "Scene",
    "Task",
    "TaskWarning",
    "Tasks",
    "Trap",
    "View",
    "Weights",
    "check",
    "compile_task",
    "load",
    "load_task_text",
]

"""Name every error that reach-otel raises.

    ReachError
    +-- TaskError      (also ValueError)   a task file is wrong; str() has file:line, what is allowed, what to try
    +-- SettingsError  (also ValueError)   a setting or its environment variable is unknown or unreadable
    +-- InputError     (also ValueError)   input for replay or ingest cannot be read
    +-- StateError     (also RuntimeError) a call came at a time when it cannot work

Errors are raised at load time and by explicit calls only: nothing that a span holds ever raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class ReachError(Exception):
    """Be the base of every error of this package."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a file; lines count from 1, and 0 stands for the file as a whole."""

    file: str
    line: int
    message: str

    @property
    def place(self) -> str:
        """Give ``file:line``, to which terminals and editors can jump."""
        return f"{self.file}:{self.line}" if self.line else self.file

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


class TaskError(ReachError, ValueError):
    """Say everything that is wrong with task files, one problem a line."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems: Sequence[Problem] = problems


class SettingsError(ReachError, ValueError):
    """Say which setting is wrong."""


class InputError(ReachError, ValueError):
    """Say which input cannot be read."""


class StateError(ReachError, RuntimeError):
    """Say that a call came at the wrong time."""

"""Follow what stood in the agent's way, and whether it got past it (SPEC 6.3)."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from statistics import median

from msgspec import Struct

BASELINE_WINDOW = 64  # latest successes of a tool that make its baseline
BASELINE_MIN = 5


class Obstacle(Struct, gc=False):
    """One obstacle. ``layer`` is that of the blocked milestone; 0 if the tool belongs to none: then any one counts."""

    kind: str
    tool: str
    milestone: int | None
    layer: int
    action: int
    span_id: str
    retries: int = 0
    satisfied: bool = False


class Baselines:
    """Learn how long each tool normally takes in this run; a declared baseline wins.

    Kept per run, so that a score depends on the run's own steps alone.
    """

    __slots__ = ("_declared", "_seen")

    def __init__(self, declared: Mapping[str, float]) -> None:
        self._declared = declared
        self._seen: dict[str, list[float]] = {}

    def of(self, tool: str) -> float | None:
        """Return the baseline in seconds, ``None`` while it is not known."""
        declared = self._declared.get(tool)
        if declared is not None:
            return declared
        seen = self._seen.get(tool)
        return median(seen) if seen is not None and len(seen) >= BASELINE_MIN else None

    def learn(self, tool: str, seconds: float) -> None:
        """Add the duration of a successful call."""
        if tool in self._declared:
            return
        seen = self._seen.get(tool)
        if seen is None:
            seen = self._seen[tool] = []
        seen.append(seconds)
        del seen[:-BASELINE_WINDOW]


class Obstacles:
    """Keep the obstacles of a run: at most one open a tool, from a bad call until a normal success."""

    __slots__ = ("_open", "_retry_cap", "_waiting", "all", "digested")

    def __init__(self, retry_cap: int) -> None:
        self.all: list[Obstacle] = []
        self.digested = 0  # how many are
        self._retry_cap = retry_cap
        self._open: dict[str, Obstacle] = {}
        self._waiting: list[Obstacle] = []  # not satisfied yet

    def copy(self) -> Obstacles:
        """Return an independent copy that can be closed while this one goes on."""
        twin = Obstacles(self._retry_cap)
        copies = {id(o): copy(o) for o in self.all}
        twin.all = list(copies.values())
        twin.digested = self.digested
        twin._open = {tool: copies[id(o)] for tool, o in self._open.items()}
        twin._waiting = [copies[id(o)] for o in self._waiting]
        return twin

    def meet(self, obstacle: Obstacle) -> Obstacle:
        """Open an obstacle; if its tool has one open, count a retry of that one. Returns the one that is open now."""
        now_open = self._open.get(obstacle.tool)
        if now_open is not None:
            if now_open.retries == self._retry_cap and now_open.satisfied:
                self.digested -= 1
            now_open.retries += 1
            return now_open
        self._open[obstacle.tool] = obstacle
        self.add(obstacle)
        return obstacle

    def add(self, obstacle: Obstacle) -> None:
        """Keep an obstacle that no further call belongs to (a forced fallback)."""
        self.all.append(obstacle)
        self._waiting.append(obstacle)

    def is_open(self, tool: str) -> bool:
        return tool in self._open

    def succeed(self, tool: str) -> None:
        """Note a normal success: later bad calls of the tool are a new obstacle."""
        self._open.pop(tool, None)

    def satisfy(self, layer: int) -> None:
        """Tell that a must-milestone of ``layer`` was reached: it satisfies every obstacle at its layer or above."""
        still_waiting = []
        for obstacle in self._waiting:
            if layer < obstacle.layer:
                still_waiting.append(obstacle)
                continue
            obstacle.satisfied = True
            self.digested += obstacle.retries <= self._retry_cap
        self._waiting = still_waiting

    def is_digested(self, obstacle: Obstacle) -> bool:
        """Say whether a milestone was reached after all, with no more than ``retry_cap`` further bad calls."""
        return obstacle.satisfied and obstacle.retries <= self._retry_cap

    def ratio(self) -> float | None:
        """Return digested / all, ``None`` without obstacles."""
        return self.digested / len(self.all) if self.all else None

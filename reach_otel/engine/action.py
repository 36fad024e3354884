"""Hold one action of a run: a tool call, handoff or retrieval, counted once, with what the fold decided about it."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

FOREVER_NS = 1 << 63  # after every time that a span can bear

ActionClass = Literal["effective", "off_task", "repeat", "stuck", "cut_off"]


class Action(Struct, gc=False, eq=False):
    """One action, assembled from one span, from several that report the same call, or derived from messages.

    Times are Unix nanoseconds; ``n`` counts actions from 1 in the order of :attr:`key`.
    """

    kind: Literal["tool", "handoff", "retrieval"]
    span_id: str
    start_ns: int
    end_ns: int
    index: int = 0  # place in the message that asked for it, for derived actions
    parent_id: str | None = None
    tool: str = ""
    agent: str | None = None
    to_agent: str | None = None
    call_id: str | None = None
    args: Any = None
    result: Any = None
    has_args: bool = False
    has_result: bool = False
    ok: bool = True
    error: str | None = None
    by_text: bool = False
    cut: bool = False
    derived: bool = False
    attributes: Any = None
    # decided by the fold
    n: int = 0
    klass: ActionClass = "effective"
    retry: bool = False

    @property
    def key(self) -> tuple[int, int, str, int]:
        """Sort by end, then start; ids only break ties so that the order is total."""
        return (self.end_ns, self.start_ns, self.span_id, self.index)

    @property
    def seconds(self) -> float:
        """Length in seconds, never negative (clocks of two machines may disagree)."""
        return max(0, self.end_ns - self.start_ns) / 1e9

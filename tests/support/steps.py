"""Make the steps of a run by hand, and give them to an engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from reach_otel.span.step import Answer, Call, Step, Text

EPOCH_NS = 1_796_025_600_000_000_000
TICK_NS = 10_000_000  # times in tests are small integers; one is 10 ms


def at(ticks: int) -> int:
    """Turn ticks from the start of the history into Unix nanoseconds."""
    return EPOCH_NS + ticks * TICK_NS


def trace_id(run: int) -> str:
    """Give run number ``run`` its trace id."""
    return f"{run:032x}"


class Steps:
    """Make steps of one trace with counting span ids; times are ticks."""

    def __init__(self, run: int = 1) -> None:
        self.run = run
        self.trace_id = trace_id(run)
        self.made: list[Step] = []

    def add(self, kind: Any, start: int, end: int, *, parent: str | None = None, **fields: Any) -> Step:
        """Make one step of any kind, with the parent's span id."""
        span_id = fields.pop("span_id", None) or f"{self.run:08x}{len(self.made) + 1:08x}"
        step = Step(
            kind=kind,
            trace_id=self.trace_id,
            span_id=span_id,
            start_ns=at(start),
            end_ns=at(end),
            parent_id=parent,
            **fields,
        )
        self.made.append(step)
        return step

    def tool(self, tool: str, start: int, end: int, *, parent: str | None = None, **fields: Any) -> Step:
        """Make a tool step; ``args`` and ``result`` count as present when they are given, ``error`` makes it fail."""
        fields.setdefault("has_args", "args" in fields)
        fields.setdefault("has_result", "result" in fields)
        fields.setdefault("ok", fields.get("error") is None)
        return self.add(fields.pop("kind", "tool"), start, end, parent=parent, tool=tool, **fields)

    def model(self, start: int, end: int, *, parent: str | None = None, **fields: Any) -> Step:
        """Make a model step."""
        return self.add("model", start, end, parent=parent, model="gpt-4o-mini", **fields)

    def agent(self, name: str, start: int, end: int, *, parent: str | None = None, **fields: Any) -> Step:
        """Make an agent step; ``user`` is what it was asked."""
        user = fields.pop("user", None)
        if user is not None:
            fields["texts"] = (Text("user", user),)
        return self.add("agent", start, end, parent=parent, agent=name, **fields)


def call(tool: str, call_id: str | None = None, args: Any = None) -> Call:
    """Shape a tool call as a model asks for it."""
    return Call(tool=tool, id=call_id, args=args)


def answer(call_id: str | None, result: Any = None, *, tool: str | None = None, error: str | None = None) -> Answer:
    """Shape the result of a call as a model is given it."""
    return Answer(call_id=call_id, tool=tool, result=result, ok=error is None, error=error)


def batches(steps: Sequence[Step], cuts: Iterable[int]) -> list[list[Step]]:
    """Cut a sequence at the given places (any order, out of range allowed)."""
    places = sorted({cut % (len(steps) + 1) for cut in cuts} | {0, len(steps)})
    return [list(steps[a:b]) for a, b in pairwise(places)]


def plain(record: Any) -> dict[str, Any]:
    """Turn a record into dicts, lists and scalars."""
    built: dict[str, Any] = msgspec.to_builtins(record)
    return built

"""Write a short agent run as OTLP/JSON lines in the OpenTelemetry GenAI conventions, as a Collector writes files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

EPOCH_NS = 1_796_025_600_000_000_000  # 2026-11-30T08:00:00Z


def attribute(key: str, value: Any) -> dict[str, Any]:
    """Shape one attribute; OTLP/JSON carries 64-bit integers as strings."""
    if isinstance(value, bool):
        return {"key": key, "value": {"boolValue": value}}
    if isinstance(value, int):
        return {"key": key, "value": {"intValue": str(value)}}
    if isinstance(value, float):
        return {"key": key, "value": {"doubleValue": value}}
    return {"key": key, "value": {"stringValue": str(value)}}


def as_text(value: Any) -> str:
    """Write content the way instrumentations do: text stays text, all else becomes JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class Trace:
    """Collect the spans of one trace; ``cursor`` is the time in seconds at which the next call starts.

    A call without an explicit ``start`` starts at the cursor and moves it on to its own end plus ``gap`` seconds, so
    that a list of calls reads like a story.
    """

    def __init__(self, name: str = "run", *, agent: str = "bot", offset_seconds: float = 0.0, gap: float = 0.1) -> None:
        self.trace_id = hashlib.sha256(name.encode()).hexdigest()[:32]
        self.agent_name = agent
        self.spans: list[dict[str, Any]] = []
        self.offset_ns = EPOCH_NS + round(offset_seconds * 1e9)
        self.cursor = 0.1
        self.gap = gap
        self.root = self.new_id()

    def new_id(self) -> str:
        """Give the next span id; the first one is the root agent's."""
        self.count = getattr(self, "count", 0) + 1
        return f"{self.count:016x}"

    def span(
        self,
        name: str,
        attributes: Mapping[str, Any],
        *,
        start: float,
        end: float,
        parent: str | None = None,
        span_id: str | None = None,
        error: str | None = None,
    ) -> str:
        """Add one span and return its id; ``start`` and ``end`` are seconds from the start of the run."""
        span_id = span_id or self.new_id()
        span: dict[str, Any] = {
            "traceId": self.trace_id,
            "spanId": span_id,
            "name": name,
            "kind": 1,
            "startTimeUnixNano": str(self.offset_ns + round(start * 1e9)),
            "endTimeUnixNano": str(self.offset_ns + round(end * 1e9)),
            "attributes": [attribute(key, value) for key, value in attributes.items() if value is not None],
            "status": {} if error is None else {"code": 2, "message": error},
        }
        if parent is not None:
            span["parentSpanId"] = parent
        self.spans.append(span)
        return span_id

    def call(
        self,
        tool: str,
        args: Any = None,
        result: Any = None,
        *,
        error: str | None = None,
        seconds: float = 0.04,
        start: float | None = None,
        call_id: str | None = None,
        parent: str | None = None,
    ) -> str:
        """Add one tool call under the root agent (or ``parent``); ``error`` makes it fail with that text."""
        begin = self.cursor if start is None else start
        if start is None:
            self.cursor = begin + seconds + self.gap
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.id": call_id,
            "gen_ai.tool.call.arguments": None if args is None else as_text(args),
            "gen_ai.tool.call.result": None if result is None else as_text(result),
            "error.type": None if error is None else "ValueError",
        }
        return self.span(
            f"execute_tool {tool}",
            attributes,
            start=begin,
            end=begin + seconds,
            parent=parent or self.root,
            error=error,
        )

    def chat(
        self,
        *,
        asks: Sequence[tuple[str, str, Any]] = (),
        answers: Sequence[tuple[str, Any]] = (),
        user: str | None = None,
        says: str | None = None,
        seconds: float = 0.05,
        parent: str | None = None,
    ) -> str:
        """Add one model call: ``asks`` are (call id, tool, arguments), ``answers`` are (call id, result)."""
        begin = self.cursor
        self.cursor = begin + seconds + self.gap
        messages: list[dict[str, Any]] = []
        if user is not None:
            messages.append({"role": "user", "parts": [{"type": "text", "content": user}]})
        messages += [
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": as_text(result)}]}
            for call_id, result in answers
        ]
        parts: list[dict[str, Any]] = [] if says is None else [{"type": "text", "content": says}]
        parts += [{"type": "tool_call", "id": id_, "name": tool, "arguments": args} for id_, tool, args in asks]
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "gpt-4o-mini",
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 20,
            "gen_ai.input.messages": json.dumps(messages),
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts, "finish_reason": "stop"}]),
        }
        return self.span("chat gpt-4o-mini", attributes, start=begin, end=begin + seconds, parent=parent or self.root)

    def end(self, *, user: str | None = None, says: str | None = None, error: str | None = None) -> Trace:
        """Add the root agent span around all so far, with what the user asked for and what the agent answered."""
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": self.agent_name,
            "gen_ai.input.messages": user
            and json.dumps([{"role": "user", "parts": [{"type": "text", "content": user}]}]),
            "gen_ai.output.messages": says
            and json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": says}]}]),
        }
        self.span(
            f"invoke_agent {self.agent_name}", attributes, start=0.0, end=self.cursor, span_id=self.root, error=error
        )
        return self

    def line(self) -> str:
        """Shape the trace as one ``ExportTraceServiceRequest``."""
        resource = {"attributes": [attribute("service.name", "shop")]}
        scope = {"scope": {"name": "tests"}, "spans": self.spans}
        return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]})


def write_lines(path: Path, traces: Sequence[Trace]) -> Path:
    """Write one line a trace and return ``path``."""
    path.write_text("".join(trace.line() + "\n" for trace in traces), encoding="utf-8")
    return path

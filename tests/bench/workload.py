"""Make spans to measure with: plain GenAI runs, and the spans that real frameworks were recorded to send."""

from __future__ import annotations

import gzip
import json
import random
from base64 import b64encode
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

CAPTURES = Path(__file__).parents[1] / "golden" / "spans"
START_NS = 1_796_025_600_000_000_000
BATCH_SPANS = 512  # what BatchSpanProcessor exports at once by default

TASK = """
task: bench
match: {agent: bench_agent}
k: 1000
grounded: [ticket_id, sku, customer_id]
milestones:
  - id: read
    verify: {tool: read_ticket, result: {ok: true}}
    required: [ticket.id]
  - id: customer
    depends_on: [read]
    verify: {tool: lookup_customer, when: 'result.ok'}
    used: true
  - id: stock
    depends_on: [read]
    verify: {tool: check_inventory, when: 'result.stock >= 0'}
  - id: suggestion
    depends_on: [customer, stock]
    verify: {tool: generate_action}
  - id: escalate
    type: fallback
    covers: suggestion
    depends_on: [read]
    verify: {tool: escalate_to_human}
  - id: update
    depends_on: [{any: [suggestion, escalate]}]
    verify: {tool: update_ticket, args: {status: {in: [resolved, pending_customer]}}}
"""
TOOLS = ("read_ticket", "lookup_customer", "check_inventory", "generate_action", "update_ticket")

_ids = count(1)


def next_trace() -> bytes:
    """Give a trace id that was never given before."""
    return next(_ids).to_bytes(16, "big")


class GenAiRun:
    """Write one agent run in the OpenTelemetry GenAI conventions: a model call before each tool call, and one after.

    ``history`` is how many earlier messages each model call is given, as real ones are; ``None`` means all of them.
    """

    def __init__(
        self, actions: int, *, history: int | None = None, tools: Sequence[str] = TOOLS, seed: int = 0
    ) -> None:
        self.trace_id = next_trace()
        self.actions = actions
        self.history = history
        self.tools = tools
        self.chance = random.Random(seed)
        self.now_ns = START_NS

    def spans(self) -> list[Span]:
        """Give the spans in the order in which they end; the root is the last."""
        root = 1
        ask = f"Please handle ticket T-{self.chance.randrange(10_000, 99_999)} for customer C-{self.actions}."
        messages: list[dict[str, Any]] = [{"role": "user", "parts": [{"type": "text", "content": ask}]}]
        spans: list[Span] = []
        for n in range(self.actions):
            tool = self.tools[n % len(self.tools)]
            args = {"ticket_id": ask.split()[3], "step": n, "status": "resolved", "note": "as the customer asked"}
            result = {
                "ok": True,
                "stock": n % 7,
                "ticket": {"id": args["ticket_id"], "subject": "broken lamp", "priority": "high"},
                "customer": {"id": f"C-{n}", "name": "Ada Example", "city": "Lyon", "orders": [n, n + 1, n + 2]},
                "text": "The customer says that the lamp which was delivered last week does not light up at all.",
            }
            call = {"type": "tool_call", "id": f"call_{n}", "name": tool, "arguments": args}
            asked = {"role": "assistant", "parts": [call], "finish_reason": "tool_calls"}
            spans.append(self.chat(messages, asked, root))
            spans.append(self.tool(tool, f"call_{n}", args, result, root))
            answer = {"type": "tool_call_response", "id": f"call_{n}", "response": json.dumps(result)}
            messages += [asked, {"role": "tool", "parts": [answer]}]
        done = {"role": "assistant", "parts": [{"type": "text", "content": "Done: the ticket is resolved."}]}
        spans.append(self.chat(messages, done, root))
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "bench_agent",
            "gen_ai.input.messages": json.dumps(messages[:1]),
            "gen_ai.output.messages": json.dumps([done]),
        }
        spans.append(self.span("invoke_agent bench_agent", attributes, None, START_NS, span_id=root))
        return spans

    def chat(self, messages: list[dict[str, Any]], output: dict[str, Any], parent: int) -> Span:
        """Make one model call."""
        given = messages if self.history is None else messages[-self.history :]
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "gpt-4o-mini",
            "gen_ai.response.model": "gpt-4o-mini-2026-01-01",
            "gen_ai.usage.input_tokens": 110,
            "gen_ai.usage.output_tokens": 21,
            "gen_ai.response.finish_reasons": "stop",
            "gen_ai.input.messages": json.dumps(given),
            "gen_ai.output.messages": json.dumps([output]),
        }
        return self.span("chat gpt-4o-mini", attributes, parent)

    def tool(self, tool: str, call_id: str, args: Any, result: Any, parent: int) -> Span:
        """Make one tool call."""
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.id": call_id,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.arguments": json.dumps(args),
            "gen_ai.tool.call.result": json.dumps(result),
        }
        return self.span(f"execute_tool {tool}", attributes, parent)

    def span(
        self, name: str, attributes: dict[str, Any], parent: int | None, start_ns: int = 0, span_id: int = 0
    ) -> Span:
        """Make one span that starts where the last one ended, unless a start is given."""
        start_ns = start_ns or self.now_ns
        self.now_ns += 40_000_000
        span = Span(
            trace_id=self.trace_id,
            span_id=(span_id or next(_ids) + 1).to_bytes(8, "big"),
            parent_span_id=parent.to_bytes(8, "big") if parent else b"",
            name=name,
            kind=Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=start_ns,
            end_time_unix_nano=self.now_ns,
        )
        for key, value in attributes.items():
            pair = span.attributes.add(key=key)
            if isinstance(value, int):
                pair.value.int_value = value
            else:
                pair.value.string_value = value
        return span


def requests(runs: Iterable[list[Span]], *, concurrent: int = 8, batch: int = BATCH_SPANS) -> list[bytes]:
    """Batch the spans of runs that go on side by side, as one application with several agents would export them."""
    bodies = []
    for chunk in _chunks(_side_by_side(list(runs), concurrent), batch):
        request = ExportTraceServiceRequest()
        group = request.resource_spans.add()
        for key, value in (
            ("service.name", "bench"),
            ("service.version", "1.2.3"),
            ("telemetry.sdk.language", "python"),
        ):
            group.resource.attributes.add(key=key).value.string_value = value
        scope = group.scope_spans.add()
        scope.scope.name = "bench"
        scope.spans.extend(chunk)
        bodies.append(bytes(request.SerializeToString()))
    return bodies


def _side_by_side(runs: list[list[Span]], concurrent: int) -> Iterator[Span]:
    waiting = iter(runs)
    going = [iter(run) for _, run in zip(range(concurrent), waiting, strict=False)]
    while going:
        for run in list(going):
            span = next(run, None)
            if span is not None:
                yield span
                continue
            going.remove(run)
            following = next(waiting, None)
            if following is not None:
                going.append(iter(following))


def _chunks(spans: Iterable[Span], size: int) -> Iterator[list[Span]]:
    chunk: list[Span] = []
    for span in spans:
        chunk.append(span)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def captured() -> list[ResourceSpans]:
    """Read the recorded spans of all frameworks, one entry a recorded line; nothing where they are missing."""
    found: list[ResourceSpans] = []
    for file in sorted(CAPTURES.glob("*.jsonl.gz")):
        if file.name.endswith(".logs.jsonl.gz"):
            continue
        for line in gzip.decompress(file.read_bytes()).splitlines():
            plain = _with_base64_ids(json.loads(line))
            found.extend(ParseDict(plain, ExportTraceServiceRequest(), ignore_unknown_fields=True).resource_spans)
    return found


def captured_requests(recorded: list[ResourceSpans]) -> list[bytes]:
    """Batch recorded spans under their resource and scope, as an exporter does; they were recorded one at a time.

    The trace ids are new ones, so that each call gives runs that were never seen before.
    """
    traces: dict[bytes, bytes] = {}
    bodies = []
    batch = _Batch()
    for group in recorded:
        for scope in group.scope_spans:
            for span in scope.spans:
                copy = batch.scope(group, scope).spans.add()
                copy.CopyFrom(span)
                if span.trace_id not in traces:
                    traces[span.trace_id] = next_trace()
                copy.trace_id = traces[span.trace_id]
                batch.spans += 1
        if batch.spans >= BATCH_SPANS:
            bodies.append(bytes(batch.request.SerializeToString()))
            batch = _Batch()
    if batch.spans:
        bodies.append(bytes(batch.request.SerializeToString()))
    return bodies


class _Batch:
    """Collect spans of one request by resource and scope."""

    def __init__(self) -> None:
        self.request = ExportTraceServiceRequest()
        self.spans = 0
        self._groups: dict[bytes, ResourceSpans] = {}
        self._scopes: dict[tuple[bytes, bytes], ScopeSpans] = {}

    def scope(self, group: ResourceSpans, scope: ScopeSpans) -> ScopeSpans:
        """Find or make the place for the spans of a resource and scope."""
        resource, name = group.resource.SerializeToString(), scope.scope.SerializeToString()
        if resource not in self._groups:
            self._groups[resource] = self.request.resource_spans.add(resource=group.resource)
        if (resource, name) not in self._scopes:
            self._scopes[resource, name] = self._groups[resource].scope_spans.add(scope=scope.scope)
        return self._scopes[resource, name]


def _with_base64_ids(value: Any) -> Any:
    """Turn the hex ids of OTLP/JSON into the base64 of plain protobuf-to-JSON."""
    if isinstance(value, dict):
        return {
            key: b64encode(bytes.fromhex(item)).decode()
            if key in {"traceId", "spanId", "parentSpanId"}
            else _with_base64_ids(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_with_base64_ids(item) for item in value]
    return value

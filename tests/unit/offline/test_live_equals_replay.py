"""Live and replay give equal scores: the same spans, once through the processor, once through a file."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from reach_otel.instrument import Reach
from reach_otel.offline.replay import replay
from reach_otel.settings import Settings
from reach_otel.task import load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from opentelemetry.trace import Tracer

TASK = """
task: shop
match: {agent: bot}
grounded: [sku]
milestones:
  - {id: read, verify: {tool: read_ticket}, used: true}
  - {id: stock, depends_on: [read], verify: {tool: check_inventory, result: {ok: true}}}
  - {id: update, depends_on: [stock], verify: {tool: update_ticket}}
traps:
  - {id: refunded, verify: {tool: refund}}
"""


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def live(tmp_path: Path, spans: InMemorySpanExporter) -> Iterator[Reach]:
    (tmp_path / "shop.task.yaml").write_text(TASK, encoding="utf-8")
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    reach = Reach(Settings(tasks=(str(tmp_path),), metrics_port=None), provider, None)
    yield reach
    reach.shutdown()


def act(tracer: Tracer, chance: random.Random) -> str:
    """Let an agent do some things that may go wrong, and return its trace id."""
    skus = ["SKU-1001", "SKU-1002"]
    user = json.dumps([{"role": "user", "parts": [{"type": "text", "content": f"Is {skus[0]} there?"}]}])
    with tracer.start_as_current_span(
        "invoke_agent bot",
        attributes={
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "bot",
            "gen_ai.input.messages": user,
        },
    ) as root:
        for n in range(chance.randrange(10)):
            tool = chance.choice([*(["read_ticket", "check_inventory", "update_ticket"] * 4), "search", "refund"])
            attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": tool,
                "gen_ai.tool.call.id": f"call_{n}",
                "gen_ai.tool.call.arguments": json.dumps({"sku": chance.choice(skus)}),
            }
            if chance.random() < 0.7:
                attributes["gen_ai.tool.call.result"] = json.dumps({"ok": chance.random() < 0.8, "next": skus[1]})
            else:
                attributes["error.type"] = "TimeoutError"
            tracer.start_span(f"execute_tool {tool}", attributes=attributes).end()
        said = [{"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}]
        root.set_attribute("gen_ai.output.messages", json.dumps(said))
        return f"{root.get_span_context().trace_id:032x}"


def test_the_same_spans_get_the_same_record(tmp_path: Path, live: Reach, spans: InMemorySpanExporter) -> None:
    """Everything but nothing: the whole records are equal, of twenty runs that go well and badly."""
    tracer = live.tracer_provider.get_tracer("test")
    chance = random.Random(7)
    traces = [act(tracer, chance) for _ in range(20)]
    live.shutdown()
    scored = [live.score(trace) for trace in traces]
    body = encode_spans(list(spans.get_finished_spans())).SerializeToString()
    (tmp_path / "spans.pb").write_bytes(body)
    replayed = [plain(record) for record in replay([tmp_path / "spans.pb"], load([tmp_path]))]
    assert [record["trace_id"] for record in replayed] == traces
    assert [plain(record) for record in scored] == replayed
    assert {record["outcome"] for record in replayed} >= {"failed", "partial", "success"}


def plain(record: Any) -> dict[str, Any]:
    """Bring a record into the one shape that JSON gives it."""
    found: dict[str, Any] = json.loads(msgspec.json.encode(record))
    return found

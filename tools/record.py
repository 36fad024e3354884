"""Record one run of each behaviour of the demo as OTLP/JSON lines: how ``examples/ticket-runs.jsonl.gz`` was made.

The runs take place for real, so a new recording has other times and ids. The README shows what ``replay`` makes of it;
run ``make docs`` afterwards.
"""

from __future__ import annotations

import base64
import gzip
import json
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

from google.protobuf.json_format import MessageToDict
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from reach_otel.demo.behaviours import BEHAVIOURS
from reach_otel.demo.desk import Desk
from reach_otel.demo.fleet import handle_ticket

RECORDING: Final = Path(__file__).parent.parent / "examples" / "ticket-runs.jsonl.gz"
IDS: Final = ("traceId", "spanId", "parentSpanId")


class Lines(SpanExporter):
    """Keep each span as one line of OTLP/JSON, as a Collector's file exporter would write it."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        request = MessageToDict(encode_spans(spans), use_integers_for_enums=True)
        self.lines.append(json.dumps(with_hex_ids(request), ensure_ascii=False, separators=(",", ":")))
        return SpanExportResult.SUCCESS


def with_hex_ids(value: Any) -> Any:
    """Return OTLP as JSON wants it: ids in hexadecimal digits, where Protobuf's own mapping has base64."""
    if isinstance(value, list):
        return [with_hex_ids(item) for item in value]
    if isinstance(value, dict):
        return {key: base64.b64decode(item).hex() if key in IDS else with_hex_ids(item) for key, item in value.items()}
    return value


def main() -> None:
    """Record, and write the file."""
    lines = Lines()
    provider = TracerProvider(resource=Resource({"service.name": "ticket-desk"}))
    provider.add_span_processor(SimpleSpanProcessor(lines))
    trace.set_tracer_provider(provider)
    with Desk() as desk:
        for n, behaviour in enumerate(BEHAVIOURS):
            answer = handle_ticket(desk, behaviour, Random(n), time.sleep)
            print(f"{behaviour.name:<16} {answer}")
    with gzip.GzipFile(RECORDING, "wb", mtime=0) as file:
        file.write("".join(f"{line}\n" for line in lines.lines).encode())
    print(f"{len(lines.lines)} spans, {RECORDING.stat().st_size:,} bytes: {RECORDING.name}")


if __name__ == "__main__":
    main()

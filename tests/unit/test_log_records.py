"""Messages in log records: some instrumentations keep them out of spans."""

from __future__ import annotations

from typing import Any

from opentelemetry._logs import LogRecord
from opentelemetry.context import get_current
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Tracer

from reach_otel.engine.store import Engine
from reach_otel.processor import ReachLogProcessor, ReachSpanProcessor
from reach_otel.task import Tasks, load_task_text
from reach_otel.worker import Scoring, Worker

TASK = "task: ask\nmilestones: [{id: found, verify: {tool: look_up, result: {name: Ann}}}]"


def emit(logs: LoggerProvider, name: str, body: Any) -> None:
    record = LogRecord(timestamp=1, context=get_current(), event_name=name, body=body)
    logs.get_logger("agent").emit(record)


def chat(tracer: Tracer, logs: LoggerProvider, *messages: tuple[str, Any]) -> None:
    with tracer.start_as_current_span("chat m", attributes={"gen_ai.operation.name": "chat"}):
        for name, body in messages:
            emit(logs, name, body)


def test_a_call_that_only_log_records_tell_of_is_scored() -> None:
    """A call and its result, told in log records alone, reach the milestone; the application's log is left alone."""
    engine = Engine(Tasks([load_task_text(TASK)]))
    worker = Worker(lambda _: Scoring(engine, []))
    spans, logs = TracerProvider(), LoggerProvider()
    spans.add_span_processor(ReachSpanProcessor(worker))
    logs.add_log_record_processor(ReachLogProcessor(worker))
    tracer = spans.get_tracer("agent")
    call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"id": "C-9"}'}}
    with tracer.start_as_current_span("invoke_agent a", attributes={"gen_ai.operation.name": "invoke_agent"}):
        chat(tracer, logs, ("gen_ai.choice", {"index": 0, "message": {"role": "assistant", "tool_calls": [call]}}))
        emit(logs, "app.started", "nothing of ours")
        chat(tracer, logs, ("gen_ai.tool.message", {"id": "c1", "content": '{"name": "Ann"}'}))
    assert worker.flush(5)
    [run] = worker.call(engine.runs)
    assert [(m.id, m.state) for m in run.milestones] == [("found", "reached")]
    assert worker.health.received == 5
    worker.shutdown()

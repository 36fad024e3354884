"""Check the helpers for users' own tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import reach_otel
from reach_otel.api.context import hand
from reach_otel.task import load
from reach_otel.testing import collect, score_spans

TASK = "task: greet\nmatch: {agent: greeter}\nmilestones:\n  - {id: said, verify: {tool: say, args: {word: hello}}}\n"


@pytest.fixture
def task_file(tmp_path: Path) -> Path:
    file = tmp_path / "greet.task.yaml"
    file.write_text(TASK)
    return file


@reach_otel.tool
def say(word: str) -> str:
    return word


@reach_otel.agent("greeter")
def greet(word: str) -> str:
    return say(word)


def test_a_block_is_scored(task_file: Path) -> None:
    """What runs in the block is collected and scored, and the instrumentation is as before afterwards."""
    before = hand.tracer
    with collect(task_file) as collected:
        greet("hello")
        record = collected.score()
    assert (record["task"], record["scores"]["depth"]) == ("greet", 1.0)
    assert [step["tool"] for step in record["steps"] if step["kind"] == "tool"] == ["say"]
    assert hand.tracer is before


def test_several_runs_are_scored_in_order(task_file: Path) -> None:
    """Each trace is a run, by its start; asking for the only one fails."""
    with collect(load(task_file)) as collected:
        greet("hello")
        greet("bye")
    assert [record["scores"]["depth"] for record in collected.scores()] == [1.0, 0.0]
    with pytest.raises(AssertionError, match=r"one run expected, found 2: \['greet', 'greet'\]"):
        collected.score()


def test_spans_of_any_source_are_scored(task_file: Path) -> None:
    """Spans that a test has collected in its own way are scored too; paths and loaded tasks may be mixed."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("t")
    with tracer.start_as_current_span("x") as root:
        root.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "greeter"})
    (record,) = score_spans(exporter.get_finished_spans(), [task_file])
    assert (record["task"], record["scores"]["depth"]) == ("greet", 0.0)
    assert [each["task"] for each in score_spans(exporter.get_finished_spans())] == ["unmatched"]
    assert score_spans([], [*load(task_file)]) == []

"""Feed runs to metrics by way of a real engine, and read what is exposed."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry

from reach_otel.engine import Engine, Event, Limits, RunClosed
from reach_otel.publish.metrics import Metrics
from reach_otel.span import Step
from reach_otel.task import Tasks, load_task_text
from tests.support.steps import Steps

TICKET = """
task: ticket
match: {agent: ticket-agent}
milestones:
  - id: read
    verify: {tool: read_ticket}
    required: [status]
  - id: note
    type: optional
    depends_on: [read]
    verify: {tool: "note_*"}
  - id: update
    depends_on: [read]
    verify: {tool: update_ticket}
  - id: notify
    depends_on: [read]
    verify: {tool: notify}
"""
PINNED = "task: pinned\nvariant: gpt-4o\nmatch: {agent: 'p-*'}\nmilestones:\n  - {id: go, verify: {tool: go}}\n"


class Scrape:
    """Feed runs to metrics by way of a real engine, and read samples from a registry."""

    def __init__(self, *texts: str, **options: Any) -> None:
        self.tasks = Tasks([load_task_text(text) for text in texts or (TICKET, PINNED)])
        self.metrics = Metrics(self.tasks, **options)
        self.registry = CollectorRegistry()
        self.registry.register(self.metrics)
        self.engine = Engine(self.tasks, Limits(grace_seconds=0))

    def feed(self, steps: list[Step]) -> list[Event]:
        events = self.engine.feed(steps, 0)
        self.metrics.publish(events)
        return events

    def close(self) -> list[RunClosed]:
        events = self.engine.close(1)
        self.metrics.publish(events)
        return [event for event in events if isinstance(event, RunClosed)]

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)

    def task_value(self, name: str, variant: str = "unknown", **labels: str) -> float | None:
        return self.value(name, task="ticket", variant=variant, **labels)

    def total(self, name: str) -> float:
        return sum(s.value for family in self.registry.collect() for s in family.samples if s.name == name)


def ticket_run(run: int = 1, *, tools: int = 2, fail: bool = False, **fields: Any) -> list[Step]:
    """Make a run that does the first so many of: read, update, notify; ``fields`` are those of every step."""
    steps = Steps(run)
    calls = [("read_ticket", {"status": "ok"}), ("update_ticket", {"ok": True}), ("notify", {"ok": True})][:tools]
    root = f"{run:08x}000000ff"
    for n, (tool, result) in enumerate(calls):
        error = "request timed out" if fail and n == tools - 1 else None
        steps.tool(tool, 10 * n + 1, 10 * n + 6, parent=root, args={"n": n}, result=result, error=error, **fields)
    steps.agent("ticket-agent", 0, 100, span_id=root, user="do it", output="finished", **fields)
    return steps.made

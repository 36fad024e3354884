"""Put up the API on a real engine, a real scorer and a real database, with all that stands between them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI

import reach_otel.demo
from reach_otel.engine import Engine, Limits
from reach_otel.publish.health import Health
from reach_otel.service import api
from reach_otel.service.desk import Desk
from reach_otel.service.events import Hub
from reach_otel.service.history import History
from reach_otel.service.journal import Journal
from reach_otel.service.ledger import Ledger
from reach_otel.service.limits import Room
from reach_otel.service.live import Lately, Live
from reach_otel.service.reader import Reader
from reach_otel.service.scorer import Scorer
from reach_otel.service.vitals import Vitals
from reach_otel.span.step import Step
from reach_otel.task import Tasks, load
from tests.support.asgi import Client
from tests.support.steps import Steps

PATIENCE_SECONDS = 20.0
TICKETS = Path(reach_otel.demo.__file__).with_name("ticket.task.yaml")


def ticket_tasks() -> Tasks:
    return load([TICKETS])


class Stand:
    """The service without its intake: steps go straight to the scorer."""

    def __init__(
        self,
        folder: Path,
        *,
        tasks: Tasks | None = None,
        clients_max: int = 8,
        show_content: bool = False,
        **desk: Any,
    ) -> None:
        self.path = folder / "reach-otel.db"
        self.tasks = ticket_tasks() if tasks is None else tasks
        self.history = History(show_content=show_content)
        self.journal = Journal(self.path, keeper=self.history)
        health = Health()
        self.scorer = Scorer(
            Engine(self.tasks, Limits(grace_seconds=0.0, runs_max=10_000), keep_steps=True),
            Room(1_000_000, 1 << 30),
            Ledger("trace", verdicts_max=10_000, traces_max=10_000, idle_seconds=600),
            journal=self.journal,
            health=health,
        )
        self.hub = Hub(clients_max=clients_max, pump_seconds=0.01)
        self.lately = Lately()
        vitals = Vitals(health)
        for listener in (self.lately.publish, self.hub.publish, vitals.publish):
            self.scorer.add_listener(listener)
        self.reader = Reader(self.path)
        self.desk = Desk(
            tasks=self.tasks,
            live=Live(self.scorer),
            lately=self.lately,
            history=self.history,
            reader=self.reader,
            writer=self.journal,
            hub=self.hub,
            vitals=vitals,
            show_content=show_content,
            **desk,
        )
        self.app = FastAPI(docs_url=None, redoc_url=None)
        api.install(self.app, self.desk)
        self.client = Client(self.app)

    def start(self) -> None:
        """Start the scorer, and wait until it has read its journal."""
        self.scorer.start()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.scorer.is_replaying:
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def feed(self, steps: Iterable[Step]) -> None:
        """Score steps, and wait until they are."""
        assert self.scorer.submit(list(steps))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.scorer.room.spans:
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def finish(self, steps: Iterable[Step]) -> None:
        """Score the steps of runs that are over, and wait until their verdicts are in the database."""
        made = list(steps)
        self.feed(made)
        deadline = time.monotonic() + PATIENCE_SECONDS
        for trace in {step.trace_id for step in made}:
            while self.lately.record(trace) is None:
                assert time.monotonic() < deadline, f"no verdict on {trace}"
                time.sleep(0.001)

    def wait_for_verdict(self, run: str) -> None:
        """Wait until a run has its verdict, be that in the database or not."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while run not in self.scorer.closing and self.lately.record(run) is None:
            assert time.monotonic() < deadline, f"no verdict on {run}"
            time.sleep(0.001)

    def forget_lately(self) -> None:
        """Leave only the database to answer for runs that are over."""
        self.lately._records.clear()

    def stop(self) -> None:
        assert self.scorer.stop()
        assert self.journal.close()
        self.reader.close()


@asynccontextmanager
async def standing(folder: Path, **options: Any) -> AsyncIterator[Stand]:
    """Start a stand on the running loop, and take it down."""
    stand = Stand(folder, **options)
    await asyncio.to_thread(stand.start)
    stand.hub.start()
    try:
        yield stand
    finally:
        await stand.hub.stop()
        stand.stop()


def ticket_run(
    run: int, *, ended: bool = True, agent: str = "ticket-agent", start: int = 0, **fields: Any
) -> list[Step]:
    """Make a run that reads the ticket, looks the customer up for nothing, and fails to see the stock."""
    steps = Steps(run)
    root = steps.agent(agent, start, start + 100, user="ticket T-1", output="sorry, ticket T-1 stays open", **fields)
    if not ended:
        steps.made.clear()
    steps.tool(
        "read_ticket",
        start + 1,
        start + 2,
        parent=root.span_id,
        args={"ticket_id": "T-1"},
        result={"status": "ok", "record": {"ticket_id": "T-1", "customer_id": "C-9", "sku": "X-1"}},
        agent=agent,
        **fields,
    )
    steps.tool(
        "lookup_customer",
        start + 3,
        start + 4,
        parent=root.span_id,
        args={"customer_id": "C-9"},
        result={"status": "ok", "name": "Annabel"},
        agent=agent,
    )
    steps.tool(
        "check_inventory", start + 5, start + 6, parent=root.span_id, args={"sku": "X-1"}, error="boom", agent=agent
    )
    return steps.made


def full_run(run: int, **fields: Any) -> list[Step]:
    """Make a run that reaches everything."""
    steps = Steps(run)
    root = steps.agent("ticket-agent", 0, 100, user="ticket T-1", output="ticket T-1 resolved, receipt R-77", **fields)
    calls: list[tuple[str, Any, Any]] = [
        ("read_ticket", {"ticket_id": "T-1"}, {"status": "ok", "record": {"ticket_id": "T-1", "customer_id": "C-9"}}),
        ("lookup_customer", {"customer_id": "C-9"}, {"status": "ok", "name": "Annabel", "sku": "X-1"}),
        ("check_inventory", {"sku": "X-1"}, {"stock": 5, "place": "shelf-31"}),
        ("generate_action", {"name": "Annabel", "place": "shelf-31"}, {"status": "ok", "action": "send-it"}),
        ("update_ticket", {"ticket_id": "T-1", "status": "resolved"}, {"ok": True, "receipt": "R-77"}),
    ]
    for n, (tool, args, result) in enumerate(calls):
        steps.tool(tool, 2 * n + 1, 2 * n + 2, parent=root.span_id, args=args, result=result, agent="ticket-agent")
    return steps.made

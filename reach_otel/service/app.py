"""Put the service together: journal, scorer, history, API and page in one FastAPI application."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from fastapi import Depends, FastAPI
from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector

from reach_otel.engine import Engine, Limits
from reach_otel.publish.emit import Evaluations
from reach_otel.publish.failures import Failures
from reach_otel.publish.health import Health
from reach_otel.publish.metrics import Metrics
from reach_otel.publish.notice import IN_SERVICE, Notice
from reach_otel.publish.outlet import Outlet, hush_exporters
from reach_otel.service import api, ingest, operation, page
from reach_otel.service.auth import Access
from reach_otel.service.decode import Decoder
from reach_otel.service.desk import Desk
from reach_otel.service.events import Hub
from reach_otel.service.guard import LocalNames
from reach_otel.service.history import History
from reach_otel.service.intake import Intake
from reach_otel.service.journal import Journal
from reach_otel.service.ledger import Ledger
from reach_otel.service.limits import Budget, Room
from reach_otel.service.live import Lately, Live
from reach_otel.service.reader import Reader
from reach_otel.service.scorer import Scorer
from reach_otel.service.telemetry import Telemetry
from reach_otel.service.vitals import Vitals
from reach_otel.settings import ServeSettings, Settings, refuse_if_open
from reach_otel.span import Faults, redact
from reach_otel.task import load
from reach_otel.task.task import Tasks
from reach_otel.version import version
from reach_otel.worker import TimedCalls

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

EMIT_SECONDS: Final = 3.0  # for the last verdicts, at the end
VERDICTS_A_RUN: Final = 4  # verdicts remembered for each run that may be open, so that late spans find theirs
# With 6,000 open runs: a quarter less processor time than with the defaults, and a longest pause of 20 ms, not 260.
GC_THRESHOLDS: Final = (50_000, 20, 100)

logger = logging.getLogger(__name__)


class Service:
    """Hold the parts; the constructor opens the database, :meth:`start` begins to score.

    :raises TaskError: a task file is wrong.
    :raises StateError: the database cannot be opened.
    """

    def __init__(self, serve: ServeSettings, scoring: Settings) -> None:
        self.settings = serve
        self.scoring = scoring
        self.started = time.time()
        self._calls = TimedCalls(scoring.condition_seconds)
        self.tasks: Tasks = load(scoring.tasks, call=self._calls) if scoring.tasks else Tasks()
        self.access = Access(ingest_token=serve.ingest_token, read_token=serve.read_token)
        self.history = History(
            retention_days=serve.retention_days, rows_max=serve.rows_max, show_content=serve.show_content
        )
        verdicts_max = VERDICTS_A_RUN * scoring.runs_max
        self.journal = Journal(
            serve.database,
            keeper=self.history,
            durable=serve.durable,
            bytes_max=serve.database_max,
            verdicts_max=verdicts_max,
        )
        limits = Limits(
            run_scope=scoring.run_scope,
            runs_max=scoring.runs_max,
            verdicts_max=verdicts_max,
            actions_max=scoring.actions_max,
            grace_seconds=scoring.grace,
            parent_wait_seconds=scoring.parent_wait,
            idle_seconds=scoring.idle,
        )
        self._faults = Faults()
        room = Room(serve.queue_spans, serve.queue_bytes)
        health = Health(
            queue_spans=lambda: room.spans,
            refused=dict,  # nothing is dropped: senders are told to come again
            faults=self._faults,
        )
        engine = Engine(self.tasks, limits, keep_steps=True, since_ns=self.journal.since_ns)
        ledger = Ledger(
            scoring.run_scope,
            verdicts_max=verdicts_max,
            traces_max=scoring.runs_max,
            idle_seconds=scoring.idle,
        )
        self.scorer = Scorer(engine, room, ledger, journal=self.journal, health=health)
        health.lag_seconds = self.scorer.lag_seconds
        self.metrics = Metrics(
            self.tasks,
            health=health,
            variant=scoring.variant,
            variants=scoring.variants,
            label_budget=scoring.label_budget,
        )
        budget = Budget(serve.inflight_bytes)
        self.telemetry = Telemetry(self.scorer, self.journal, budget)
        self.hub = Hub()
        self.desk = Desk(
            tasks=self.tasks,
            live=Live(self.scorer),
            lately=Lately(),
            history=self.history,
            reader=Reader(serve.database),
            writer=self.journal,
            hub=self.hub,
            vitals=Vitals(health),
            show_content=serve.show_content,
            trace_url=serve.trace_url,
            journal=self._journal_shown,
        )
        decoder = Decoder(
            spans_max=serve.spans_max,
            keep_attributes=engine.needs_attributes,
            mask=redact if scoring.redact else None,
            variant=scoring.variant,
        )
        self.intake = Intake(decoder, self.scorer, self.journal, budget=budget, faults=self._faults)
        self.telemetry.is_stopping = lambda: self.intake.is_stopping
        self.registry = _registry(self.metrics, self.telemetry)
        notice = Notice(IN_SERVICE, logging.INFO)
        for publisher in (self.metrics, self.desk.lately, self.desk.vitals, self.hub, notice):
            self.scorer.add_listener(publisher.publish)
        self._outlet: Outlet | None = None
        if serve.evaluations_endpoint is not None and scoring.evaluations:
            self._outlet = self._emit_evaluations(serve, serve.evaluations_endpoint, health)

    def start(self) -> None:
        """Replay the journal, then score what comes."""
        self.scorer.start()

    def stop_taking(self) -> None:
        """Refuse further spans and end the streams of those who watch; for the event loop."""
        self.intake.stop()
        self.hub.close()

    def close(self) -> None:
        """Score what was taken, leave open runs in the journal, and close the database."""
        self.intake.close()
        self.desk.reader.close()
        if not (self.scorer.stop() and self.journal.close()):
            logger.warning("not everything could be finished in time; what was acknowledged is in the journal")
        if self._outlet is not None:
            self._outlet.close(time.monotonic() + EMIT_SECONDS)
        self._calls.close()

    def _emit_evaluations(self, serve: ServeSettings, endpoint: str, health: Health) -> Outlet:
        """Send verdicts out, each at most once: one that was safe when the process died is not told again."""
        hush_exporters()
        failed = Failures(lambda: health.errors)
        outlet = Outlet(endpoint, serve.evaluations_token, failed, events=serve.evaluations_events)
        evaluations = Evaluations(
            self.tasks,
            self.metrics.variants,
            tracer_provider=lambda: outlet.tracer_provider,
            logger_provider=lambda: outlet.logger_provider,
            failed=failed,
            before=outlet.expect,
            remote=True,
        )
        self.scorer.add_listener(evaluations.publish)
        return outlet

    def _journal_shown(self) -> dict[str, Any]:
        journal = self.journal
        return {
            "trouble": journal.trouble,
            "bytes": journal.size,
            "errors": dict(journal.errors),
            "unjournalled_spans": journal.unjournalled,
        }


def create_app(serve: ServeSettings, scoring: Settings) -> FastAPI:
    """Make the application; its lifespan starts and ends the service, which is at ``app.state.service``.

    :raises SettingsError: it would stand open to everybody.
    """
    refuse_if_open(serve)
    service = Service(serve, scoring)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        service.hub.start()
        thresholds = gc.get_threshold()
        _settle_collector()
        try:
            yield
        finally:
            service.stop_taking()
            await service.hub.stop()
            await asyncio.to_thread(service.close)
            gc.set_threshold(*thresholds)
            gc.unfreeze()

    app = FastAPI(
        title="reach-otel",
        summary="Live reach scores of LLM agent runs.",
        version=version(),
        lifespan=lifespan,
        docs_url=None,  # these would load scripts from elsewhere
        redoc_url=None,
    )
    app.state.service = service
    app.include_router(ingest.router_of(service.intake, service.access, serve, service.telemetry))
    app.include_router(operation.router_of(service.registry, service.access, service.telemetry))
    may_read, may_write = Depends(service.access.reader), Depends(service.access.writer)
    api.install(app, service.desk, reading=[may_read], writing=[may_write])
    app.include_router(page.router_of(service))
    if serve.is_local and not (serve.ingest_token and serve.read_token):
        app.add_middleware(LocalNames)
    return app


def _registry(*collectors: Collector) -> CollectorRegistry:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    for collector in collectors:
        registry.register(collector)
    return registry


def _settle_collector() -> None:
    """Let the garbage collector leave alone what stays, and look at the rest rarely: open runs are many objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)

"""Attach scoring to an application with one call, and give a handle on it.

Heavy imports stand inside functions, so that ``import reach_otel`` costs little where only tools are decorated.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import weakref
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from reach_otel import settings as setting
from reach_otel.api import configure
from reach_otel.errors import SettingsError
from reach_otel.settings import Settings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor
    from prometheus_client import CollectorRegistry

    from reach_otel.engine import Event, RunSummary
    from reach_otel.publish.expose import Endpoint, Exposed
    from reach_otel.publish.health import Health
    from reach_otel.publish.outlet import LogOutlet
    from reach_otel.publish.recent import Recent
    from reach_otel.publish.teller import Teller
    from reach_otel.publish.variants import Variants
    from reach_otel.task import Tasks
    from reach_otel.worker import Publisher, Scoring, Worker

VERDICTS_A_RUN: Final = 4  # verdicts remembered for each run that may be open, so that late spans find theirs

logger = logging.getLogger(__name__)

_lock = threading.Lock()
_current: Reach | None = None


def instrument(
    tasks: str | Path | Iterable[str | Path] | None = None,
    *,
    tracer_provider: Any = None,
    registry: CollectorRegistry | None = None,
    **settings: Any,
) -> Reach:
    """Score the runs of this process from now on, and return the handle on that.

    Attaches to ``tracer_provider``, else to the application's global one, else makes that (with an OTLP exporter where
    the standard ``OTEL_*`` variables ask for one). Metrics go to ``registry`` or to one of their own, and are served as
    ``/metrics``. ``settings`` are those of the settings table; each also has an environment variable.

    Call it after the application has set up its provider, if it has one. A second call returns the same handle; other
    settings are then ignored with a warning.

    :raises SettingsError: a setting or a ``REACH_*`` variable is unknown or cannot be read.
    :raises TaskError: a task file is wrong.
    """
    global _current
    given = settings if tasks is None else {"tasks": tasks, **settings}
    with _lock:
        running = _current
        if running is not None and running.is_open:
            _warn_of_change(running, given, tracer_provider)
            return running
        read = setting.read(given)
        if running is not None:
            running.shutdown()  # its provider may have been shut down without it: let go of the port
        handle = _current = Reach(read, tracer_provider, registry)
        return handle


def _warn_of_change(running: Reach, given: dict[str, Any], provider: Any) -> None:
    try:
        same = setting.read(given) == running.settings and (provider is None or provider is running.tracer_provider)
    except SettingsError as exc:
        logger.warning("already instrumented; settings of the second call are ignored, and wrong: %s", exc)
        return
    if not same:
        logger.warning("already instrumented with other settings; those of the second call are ignored")


class Reach:
    """Be the handle on scoring in this process; :func:`instrument` makes it.

    Its questions may be asked from any thread, and raise :class:`StateError` when an overloaded scorer gives no answer
    within some seconds.
    """

    def __init__(self, settings: Settings, tracer_provider: Any, registry: CollectorRegistry | None) -> None:
        self.settings = settings
        self.tracer_provider: Any = tracer_provider
        self.registry: CollectorRegistry | None = registry
        self._pid = os.getpid()
        self._open = True
        self._worker: Worker | None = None
        self._endpoint: Endpoint | None = None
        self._exposed: Exposed | None = None
        self._log_outlet: LogOutlet | None = None
        self._teller: Teller | None = None
        self._exports_later = False
        if not settings.enabled:
            return
        if settings.endpoint is None:
            self._start_scoring(settings)
        self._attach(settings)
        atexit.register(_shutdown_at_exit, weakref.ref(self))

    @property
    def is_open(self) -> bool:
        """Say whether neither the handle nor the provider it is attached to has been shut down."""
        return self._open and (self._worker is None or self._worker.is_open)

    @property
    def metrics_address(self) -> str | None:
        """Return where ``/metrics`` is served by this process; ``None`` when it is not."""
        return self._endpoint.address if self._endpoint is not None else None

    @property
    def health(self) -> Health | None:
        """Return the numbers of the scorer's own health; ``None`` when this process does not score."""
        return self._worker.health if self._worker is not None else None

    def runs(self) -> list[RunSummary]:
        """Return the runs going on now, with their numbers so far."""
        worker = self._worker
        return [] if worker is None else worker.call(lambda: self._scoring.engine.runs())  # noqa: PLW0108 - a fork replaces it

    def score(self, trace_id: str, *, steps: bool = False) -> dict[str, Any] | None:
        """Return the record of a run (SPEC 20), running or finished lately, by its trace id or run id.

        Where several runs share a trace, the latest of them. ``steps`` adds the normalised steps while it is running.
        ``None`` for a run that is not known.
        """
        import msgspec  # noqa: PLC0415

        worker = self._worker
        record = None if worker is None else worker.call(lambda: self._record(trace_id, steps))
        return None if record is None else cast("dict[str, Any]", msgspec.to_builtins(record))

    def flush(self, timeout_seconds: float | None = None) -> bool:
        """Wait until all spans that have ended are scored (not until verdicts); ``False`` when time did not suffice."""
        return self._worker is None or self._worker.flush(timeout_seconds)

    def shutdown(self, timeout_seconds: float | None = None) -> bool:
        """Score what is queued, give a verdict on every open run, stop serving metrics; ``False`` when cut short.

        What is left of the time is for the verdicts that are still to be emitted; what it does not suffice for counts
        among the scorer's errors.

        The handle still answers afterwards, and :func:`instrument` may be called again.
        """
        if not self._open:
            return True
        self._open = False
        in_time = self._finish(timeout_seconds)
        if self._worker is not None:
            self._calls.close()
        if self._endpoint is not None:
            self._endpoint.close()
            self._endpoint = None
        if self._exposed is not None:
            self._exposed.leave()
        return in_time

    # Start.

    def _start_scoring(self, settings: Settings) -> None:
        from prometheus_client import CollectorRegistry, ProcessCollector  # noqa: PLC0415

        from reach_otel.publish.expose import Exposed  # noqa: PLC0415
        from reach_otel.publish.failures import Failures  # noqa: PLC0415
        from reach_otel.task import load  # noqa: PLC0415
        from reach_otel.task.task import Tasks  # noqa: PLC0415
        from reach_otel.worker import TimedCalls, Worker  # noqa: PLC0415

        self._calls = TimedCalls(settings.condition_seconds)
        self._tasks: Tasks = load(settings.tasks, call=self._calls) if settings.tasks else Tasks()
        own_registry = self.registry is None
        if self.registry is None:
            self.registry = CollectorRegistry()
            ProcessCollector(registry=self.registry)
        self._exposed = Exposed()
        self._failures = Failures(lambda: self._worker.health.errors if self._worker else Tally())
        self._worker = Worker(self._build, queue_spans=settings.queue_spans, flush_seconds=settings.flush_seconds)
        if self._teller is not None:
            self._teller.start()  # here at once, as at exit it may be too late; in a child with its first span
        try:
            self._exposed.enter(self.registry, for_good=own_registry)
        except ValueError:  # metrics of these names are there already
            self._worker.fault("serve")
        self._serve()

    def _build(self, health: Health) -> Scoring:
        """Make what this process scores with; called again in a forked child, on the worker's thread."""
        from reach_otel.engine import Engine, Limits  # noqa: PLC0415
        from reach_otel.publish.metrics import Metrics  # noqa: PLC0415
        from reach_otel.publish.notice import IN_PROCESS, Notice  # noqa: PLC0415
        from reach_otel.publish.recent import Recent  # noqa: PLC0415
        from reach_otel.span import redact  # noqa: PLC0415
        from reach_otel.worker import Scoring  # noqa: PLC0415

        settings = self.settings
        limits = Limits(
            run_scope=settings.run_scope,
            runs_max=settings.runs_max,
            verdicts_max=VERDICTS_A_RUN * settings.runs_max,
            actions_max=settings.actions_max,
            grace_seconds=settings.grace,
            parent_wait_seconds=settings.parent_wait,
            idle_seconds=settings.idle,
        )
        metrics = Metrics(
            self._tasks,
            health=health,
            variant=settings.variant,
            variants=settings.variants,
            label_budget=settings.label_budget,
            trust_spans=True,
        )
        self._recent: Recent = Recent(settings.finished_max)
        publishers: list[Publisher] = [metrics, self._recent]
        if settings.evaluations:
            publishers.append(self._evaluations(metrics.variants))
        if self._exposed is not None:
            self._exposed.metrics = metrics
        if os.getpid() != self._pid:
            self._pid = os.getpid()
            if self._endpoint is not None:
                self._endpoint.disown()
                self._endpoint = None
            publishers.append(_ServeWhenUsed(self))
        else:  # what was under way at a fork is the parent's, which scores it
            publishers.append(Notice(IN_PROCESS, logging.WARNING))
        self._scoring: Scoring = Scoring(
            Engine(self._tasks, limits), publishers, redact if settings.redact else None, settings.variant
        )
        return self._scoring

    def _evaluations(self, variants: Variants) -> Teller:
        from opentelemetry._logs import get_logger_provider  # noqa: PLC0415

        from reach_otel.publish.emit import Evaluations  # noqa: PLC0415
        from reach_otel.publish.teller import Teller  # noqa: PLC0415

        def logs() -> Any:
            found, own = get_logger_provider(), self._log_outlet
            if hasattr(found, "add_log_record_processor"):  # also one that the application set later
                return found
            return own.logger_provider if own is not None else None

        evaluations = Evaluations(
            self._tasks,
            variants,
            tracer_provider=lambda: self.tracer_provider,
            logger_provider=logs,
            failed=self._failures,
        )
        self._teller = Teller(evaluations, self._failures)
        return self._teller

    def _finish(self, timeout_seconds: float | None = None) -> bool:
        """Give the last verdicts and emit them, all within one time; ``False`` when it did not suffice for verdicts."""
        seconds = self.settings.flush_seconds if timeout_seconds is None else timeout_seconds
        ends = time.monotonic() + seconds
        in_time = self._worker is None or self._worker.shutdown(seconds)
        if self._teller is not None:  # looked up now: a forked child has made its own
            self._teller.close(ends, self._log_outlet)
        return in_time

    def _finish_with_provider(self) -> None:
        """Do so when the provider is shut down; exporters that stand before us are gone by then."""
        if self._teller is not None and not self._exports_later:
            self._teller.evaluations.takes_spans = False
        self._finish()

    def _events_end(self) -> None:
        if self._teller is not None:
            self._teller.evaluations.takes_events = False

    def _serve(self) -> None:
        from reach_otel.publish.expose import expose  # noqa: PLC0415

        ports, host = self.settings.metrics_port, self.settings.metrics_host
        if ports is None or self.registry is None or self._worker is None:
            return
        try:
            self._endpoint = expose(self.registry, host, ports.ports())
        except Exception:  # noqa: BLE001 - the agent works on without metrics
            self._worker.fault("serve")
            return
        if self._endpoint is None:
            self._worker.health.errors["serve"] += 1
            remedy = (
                "" if ports.first < ports.last else f'; give a range, such as metrics_port="{ports}-{ports.last + 15}"'
            )
            logger.warning("no free port among %s: this process serves no metrics%s", ports, remedy)
        else:
            logger.info("metrics of process %d are at %s", self._pid, self._endpoint.address)

    def _attach(self, settings: Settings) -> None:
        try:
            from reach_otel.provider import global_provider, is_empty  # noqa: PLC0415

            provider, exporting = (self.tracer_provider, ()) if self.tracer_provider else global_provider()
            self.tracer_provider = provider
            configure(
                tracer_provider=provider,
                capture_content=settings.capture_content,
                content_max=settings.content_max,
            )
            self._exports_later = is_empty(provider)
            # Exporting last: when the provider is shut down, the verdicts of open runs still find it at work.
            for processor in (*self._processors(settings), *exporting):
                provider.add_span_processor(processor)
            self._attach_to_logs()
        except Exception:  # an odd provider is no reason to stop the application
            if self._worker is not None:
                self._worker.fault("attach")
            else:
                logger.warning("cannot attach to the tracer provider; nothing is scored", exc_info=True)

    def _attach_to_logs(self) -> None:
        """Listen to the application's logger provider, if it has one: some libraries put messages in log records."""
        from opentelemetry._logs import get_logger_provider  # noqa: PLC0415

        from reach_otel.processor import ReachLogProcessor  # noqa: PLC0415

        logs: Any = get_logger_provider()
        if self._worker is None:
            return
        if hasattr(logs, "add_log_record_processor"):
            logs.add_log_record_processor(ReachLogProcessor(self._worker, self._events_end))
        elif self.settings.evaluations and (protocol := setting.otlp_protocol(signal="logs")):
            from reach_otel.publish.outlet import LogOutlet  # noqa: PLC0415

            self._log_outlet = LogOutlet(protocol, self._failures)

    def _processors(self, settings: Settings) -> Iterator[SpanProcessor]:
        from reach_otel.processor import ReachSpanProcessor, RunMarker  # noqa: PLC0415

        if self._worker is not None:
            yield ReachSpanProcessor(self._worker, self._finish_with_provider)
            return
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

        from reach_otel.publish.exporters import TRACES_PATH, bearer  # noqa: PLC0415

        endpoint = f"{settings.endpoint}{TRACES_PATH}"
        yield RunMarker()
        yield BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, headers=bearer(settings.token)))

    # Owner thread.

    def _record(self, trace_id: str, steps: bool) -> Any:
        engine, recent = self._scoring.engine, self._recent
        for run_id in (trace_id, *reversed(recent.runs_of(trace_id))):
            found = recent.record(run_id) or engine.record(run_id, steps=steps)
            if found is not None:
                return found
        return None


class _ServeWhenUsed:
    """Serve the metrics of a forked child from its first run on: a child that makes no spans takes no port."""

    def __init__(self, reach: Reach) -> None:
        self._reach: Reach | None = reach

    def publish(self, events: Sequence[Event], /) -> None:  # noqa: ARG002
        if self._reach is not None:
            reach, self._reach = self._reach, None
            reach._serve()


def _shutdown_at_exit(reference: weakref.ref[Reach]) -> None:
    if (reach := reference()) is not None and reach.is_open:
        reach._finish()

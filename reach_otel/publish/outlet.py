"""Send telemetry of our own over OTLP from bounded queues, count what fails, and end in a given time."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, cast

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from reach_otel import names
from reach_otel.publish.exporters import LOGS_PATH, TRACES_PATH, Protocol, bearer, log_exporter
from reach_otel.version import version

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

    from reach_otel.engine.record import Record
    from reach_otel.publish.failures import Failures

QUEUE_MAX: Final = 8_192  # spans or log records
BATCH_MAX: Final = 512
DELAY_MILLIS: Final = 1_000
SEND_SECONDS: Final = 5.0  # for one batch, further tries included
SERVICE: Final = "reach-otel"

PERSON: Final = names.EVALUATE_SPAN.encode()


class Sender:
    """Be the exporter behind a batch processor: send through another, count what fails, raise nothing."""

    def __init__(self, exporter: Any, failed: Failures) -> None:
        self._exporter = exporter
        self._ends: float | None = None
        self._given_up = False
        self._failed = failed
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._offered = 0  # to the queue; written by the one thread that emits
        self._taken = 0  # out of it; written by the one thread that sends, like the next
        self._settled = 0  # sent or counted

    def has_room(self) -> bool:
        """Say whether the queue takes one more, and count it; one that is refused counts as failed."""
        if self._pid != os.getpid():  # a forked child begins with an empty queue
            self._begin()
        if self._offered - self._taken >= QUEUE_MAX:
            self._failed(None)
            return False
        self._offered += 1
        return True

    def end_at(self, monotonic_seconds: float) -> None:
        """Begin no batch after this time: what is queued then counts as failed."""
        self._ends = monotonic_seconds

    def give_up(self) -> None:
        """Count as failed what is not sent by now; of a batch that is under way, nobody knows."""
        if self._given_up or self._pid != os.getpid():
            return
        self._given_up = True
        if (left := self._offered - self._settled) > 0:
            self._failed(None, left)

    def export(self, batch: Sequence[Any]) -> Any:
        """Send one batch; the answer is the exporter's own."""
        self._taken += len(batch)
        error: Exception | None = None
        if self._ends is None or time.monotonic() < self._ends:
            try:
                result = self._exporter.export(batch)
                if result.name == SpanExportResult.SUCCESS.name:
                    self._settled += len(batch)
                    return result
            except Exception as exc:  # noqa: BLE001 - the next batch may go through
                error = exc
        if not self._given_up:
            self._settled += len(batch)
            self._failed(error, len(batch))
        return SpanExportResult.FAILURE

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002 - it holds nothing
        """Say yes."""
        return True


class SpanQueue(BatchSpanProcessor):
    """Refuse spans when full, where the SDK's own would push out earlier ones uncounted."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        super().__init__(cast("Any", sender), QUEUE_MAX, DELAY_MILLIS, BATCH_MAX)

    def on_end(self, span: ReadableSpan) -> None:
        if self._sender.has_room():
            super().on_end(span)


class LogQueue(BatchLogRecordProcessor):
    """Refuse log records when full."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        super().__init__(cast("Any", sender), DELAY_MILLIS, BATCH_MAX, max_queue_size=QUEUE_MAX)

    def on_emit(self, log_record: Any) -> None:
        if self._sender.has_room():
            super().on_emit(log_record)


class LogOutlet:
    """Be the logger provider of an application that has none, with the exporter its ``OTEL_*`` variables ask for."""

    def __init__(self, protocol: Protocol, failed: Failures) -> None:
        self._sender = Sender(log_exporter(protocol), failed)
        self.logger_provider = LoggerProvider(shutdown_on_exit=False)
        self.logger_provider.add_log_record_processor(LogQueue(self._sender))

    def close(self, ends: float) -> None:
        """Send what is queued; begin no batch after that monotonic time. One that is under way may take longer."""
        self._sender.end_at(ends)
        self.logger_provider.shutdown()

    def give_up(self) -> None:
        """Count what is not sent by now."""
        self._sender.give_up()


class Outlet:
    """Send verdicts to an OTLP/HTTP address through providers of our own.

    The span of a run has an id made from the run's, so that a verdict which arrives twice is one span in a store.
    """

    def __init__(self, endpoint: str, token: str | None, failed: Failures, *, events: bool = True) -> None:
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter  # noqa: PLC0415
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

        headers = bearer(token)
        spans = OTLPSpanExporter(f"{endpoint}{TRACES_PATH}", headers=headers, timeout=cast("int", SEND_SECONDS))
        self._senders = [Sender(spans, failed)]
        self._ids = RunIds()
        resource = Resource.create({names.SERVICE_NAME: SERVICE, names.SERVICE_VERSION: version()})
        self.tracer_provider = TracerProvider(ALWAYS_ON, resource, shutdown_on_exit=False, id_generator=self._ids)
        self.tracer_provider.add_span_processor(SpanQueue(self._senders[0]))
        self.logger_provider: LoggerProvider | None = None
        if events:
            logs = OTLPLogExporter(f"{endpoint}{LOGS_PATH}", headers=headers, timeout=SEND_SECONDS)
            self._senders.append(Sender(logs, failed))
            self.logger_provider = LoggerProvider(resource, shutdown_on_exit=False)
            self.logger_provider.add_log_record_processor(LogQueue(self._senders[1]))

    def expect(self, record: Record) -> None:
        """Give the next span the id of this run's verdict."""
        self._ids.run = record.run

    def close(self, ends: float) -> None:
        """Send what is queued until that monotonic time, and return then; what is not sent counts as failed.

        A batch that hangs is waited for no longer, so each provider is shut down on a thread that may be left behind.
        """
        closing = [
            threading.Thread(target=provider.shutdown, name="reach-otel-closing", daemon=True)
            for provider in (self.tracer_provider, self.logger_provider)
            if provider is not None
        ]
        for sender in self._senders:
            sender.end_at(ends)
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join(max(0.0, ends - time.monotonic()))
        for sender in self._senders:
            sender.give_up()


class RunIds(RandomIdGenerator):
    """Make the span id of a run's verdict from the run's id; for one thread."""

    run = ""

    def generate_span_id(self) -> int:
        """Return 64 bits of a digest, which are all zero for no run that anybody will see."""
        digest = blake2b(self.run.encode(errors="replace"), digest_size=8, person=PERSON)
        return int.from_bytes(digest.digest()) or 1


def hush_exporters() -> None:
    """Silence the SDK's lines about each batch that fails, in a process of ours: ``Failures`` tells of them."""
    logging.getLogger("opentelemetry.exporter.otlp").setLevel(logging.CRITICAL)

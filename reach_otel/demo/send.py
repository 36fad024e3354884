"""Let the fleet work and send its spans elsewhere, as agents in production do; nothing is scored in this process."""

from __future__ import annotations

import logging
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta
from http.client import HTTPException
from typing import Final

from rich.console import Console

import reach_otel
from reach_otel.demo.desk import Desk
from reach_otel.demo.fleet import Done, Fleet, Plan
from reach_otel.demo.stop import asked_to_stop
from reach_otel.errors import StateError
from reach_otel.publish.exporters import TRACES_PATH, bearer

LOOK_SECONDS: Final = 0.2
SUMMARY_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 5.0
"""How long to wait for whoever is to take the spans: it may be starting, too."""
ANSWER_CHARACTERS: Final = 60


def send(plan: Plan, console: Console, *, endpoint: str, duration_seconds: float | None) -> bool:
    """Let the fleet work, and print a line for each run that has ended; ``False`` when spans did not arrive.

    Ends after ``duration_seconds``, on SIGINT or on SIGTERM, once the agents have ended their runs and the last spans
    are sent.

    :raises StateError: nothing at ``endpoint`` takes spans.
    """
    with asked_to_stop() as asked:
        reach = reach_otel.instrument(endpoint=endpoint, metrics_port=None)
        _knock(str(reach.settings.endpoint), reach.settings.token, asked)
        lost = _Lost()
        with lost:
            with Desk() as desk, Fleet(desk, plan) as fleet:
                told = _Told(plan, fleet, console)
                told.begin(str(reach.settings.endpoint))
                while not asked() and (duration_seconds is None or fleet.seconds < duration_seconds):
                    fleet.check()
                    told.go_on()
                    time.sleep(LOOK_SECONDS)
            told.last()  # before the sending, which may take long
            _send_the_rest(reach)
            told.end(lost.reasons)
    return not lost.reasons


class _Told:
    """Tell what the agents do, line by line."""

    def __init__(self, plan: Plan, fleet: Fleet, console: Console) -> None:
        self._plan = plan
        self._fleet = fleet
        self._console = console
        self._behaviours: Counter[str] = Counter()
        self._degraded = False
        self._next_summary = SUMMARY_SECONDS

    def begin(self, endpoint: str) -> None:
        self._print(
            f"reach-otel demo: {self._plan.agents} agents send their spans to {endpoint}; nothing is scored here"
        )

    def go_on(self) -> None:
        """Print what is new."""
        if self._fleet.degraded != self._degraded:
            self._degraded = self._fleet.degraded
            self._print(
                "DEGRADED: from now on most agents go wrong" if self._degraded else "RECOVERED: all is well again"
            )
        self._runs(self._fleet.take_done())
        if self._fleet.seconds >= self._next_summary:
            self._next_summary += SUMMARY_SECONDS
            self._print(self._summary())

    def last(self) -> None:
        """Print the runs that ended last, and the sum of all."""
        self._runs(self._fleet.take_done())
        self._print(f"{self._summary()}, in {timedelta(seconds=int(self._fleet.seconds))}")

    def end(self, lost: Iterable[str]) -> None:
        """Print what became of the spans."""
        reasons = list(lost)
        for reason in reasons:
            self._print(f"LOST: {reason}")
        if not reasons:
            self._print("all spans were sent")

    def _runs(self, runs: Iterable[Done]) -> None:
        for run in runs:
            self._behaviours[run.behaviour] += 1
            answer = run.answer if len(run.answer) <= ANSWER_CHARACTERS else run.answer[: ANSWER_CHARACTERS - 1] + "…"
            self._print(f"{run.behaviour:<15} {run.seconds:4.1f} s  {run.trace_id}  {answer}")

    def _summary(self) -> str:
        runs = self._behaviours.total()
        shares = ", ".join(f"{n} {behaviour}" for behaviour, n in self._behaviours.most_common())
        return f"{runs} run{'' if runs == 1 else 's'}{': ' if runs else ''}{shares}"

    def _print(self, text: str) -> None:
        self._console.print(f"{self._fleet.seconds:6.1f} s  {text}", highlight=False, markup=False, soft_wrap=True)
        self._console.file.flush()  # into a pipe or a container's log at once


class _Lost(logging.Handler):
    """Note what the SDK logs about spans that it could not send: it has no other way to say so."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.reasons: dict[str, None] = {}
        self._loggers = [logging.getLogger(f"opentelemetry.{part}") for part in ("exporter", "sdk")]

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if "Transient" not in text:  # it tries again
            self.reasons.setdefault(text.partition("\n")[0])

    def __enter__(self) -> None:
        for logger in self._loggers:
            logger.addHandler(self)

    def __exit__(self, *_: object) -> None:
        for logger in self._loggers:
            logger.removeHandler(self)


def _knock(endpoint: str, token: str | None, asked: Callable[[], bool]) -> None:
    """Send an empty request, which every taker of OTLP accepts."""
    headers = {"Content-Type": "application/x-protobuf", **(bearer(token) or {})}
    request = urllib.request.Request(f"{endpoint}{TRACES_PATH}", b"", headers)
    deadline = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            urllib.request.urlopen(request, timeout=ANSWER_SECONDS).close()
        except urllib.error.HTTPError as refusal:
            with refusal:
                trouble = _refused(refusal)
            if refusal.code not in {429, 502, 503, 504}:
                raise StateError(f"--endpoint {endpoint}: {trouble}") from None
        except (OSError, HTTPException) as error:  # the latter from what speaks no HTTP
            reason = getattr(error, "reason", error)
            trouble = (
                f"nothing answers there ({reason}); start a Collector or `reach-otel serve`, or correct the address"
            )
        else:
            return
        if time.monotonic() > deadline or asked():
            raise StateError(f"--endpoint {endpoint}: {trouble}")
        time.sleep(LOOK_SECONDS)


def _refused(refusal: urllib.error.HTTPError) -> str:
    if refusal.code in {401, 403}:
        return f"it asks for a token ({refusal.code}); set REACH_TOKEN"
    if refusal.code in {404, 405}:
        return (
            f"it takes no OTLP at {TRACES_PATH} ({refusal.code}); give the address of OTLP over HTTP, usually port 4318"
        )
    return f"it does not take spans now ({refusal.code} {refusal.reason})"


def _send_the_rest(reach: reach_otel.Reach) -> None:
    """Send what still waits in the process, in the time that the SDK allows itself."""
    provider = reach.tracer_provider
    provider.force_flush()
    reach.shutdown()
    provider.shutdown()

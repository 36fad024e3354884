"""Carry the explicit run in the OpenTelemetry context, and say how hand-made spans are made."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from opentelemetry import context as otel_context
from opentelemetry import trace

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer, TracerProvider

P = ParamSpec("P")
R = TypeVar("R")

SCOPE: Final = "reach_otel"
RUN_KEY: Final = otel_context.create_key("reach-otel-run")
NOTHING: Final[Mapping[str, Any]] = {}

logger = logging.getLogger(__name__)


class Hand:
    """Hold what :func:`configure` sets: the process-wide switches of hand instrumentation."""

    __slots__ = ("capture_content", "content_max", "runs_used", "tracer", "warned")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Go back to the defaults: the global tracer provider, content captured."""
        self.tracer: Tracer = trace.get_tracer(SCOPE)
        self.capture_content = True
        self.content_max = 65_536
        self.runs_used = False  # until the first explicit run, nobody needs to look for one
        self.warned = False


hand: Final = Hand()


def configure(*, tracer_provider: TracerProvider, capture_content: bool, content_max: int) -> None:
    """Send hand-made spans to this provider, with or without content, cut to ``content_max`` characters."""
    hand.tracer = trace.get_tracer(SCOPE, tracer_provider=tracer_provider)
    hand.capture_content = capture_content
    hand.content_max = content_max


def run_attributes(context: Context | None = None) -> Mapping[str, Any]:
    """Return the attributes that every span of the explicit run in this context bears; empty outside of one."""
    if not hand.runs_used:
        return NOTHING
    found = otel_context.get_value(RUN_KEY, context)
    return found if isinstance(found, Mapping) else NOTHING


def start_span(name: str, attributes: dict[str, Any], context: Context | None = None) -> Span:
    """Start a span in the given (else current) context; a provider that breaks gives a span that does nothing."""
    attributes.update(run_attributes(context))
    try:
        return hand.tracer.start_span(
            name, context=context, attributes=attributes, record_exception=False, set_status_on_exception=False
        )
    except Exception:  # noqa: BLE001 - the agent works on without a span
        warn_once()
        return trace.INVALID_SPAN


def end_span(span: Span) -> None:
    """End a span; a span processor that breaks does not reach the agent."""
    try:
        span.end()
    except Exception:  # noqa: BLE001
        warn_once()


def warn_once() -> None:
    """Log the exception at hand, the first time only."""
    if not hand.warned:
        hand.warned = True
        logger.warning("a hand-made span failed; further failures are not reported", exc_info=True)  # noqa: LOG014 - called by handlers


def carry(function: Callable[P, R]) -> Callable[P, R]:
    """Let ``function`` run in another thread as a part of the run and span that are current now.

    ``pool.submit(carry(work), 1)``, ``Thread(target=carry(work))``; one carried function may run in many threads.
    """
    context = otel_context.get_current()

    @wraps(function)
    def carried(*args: P.args, **kwargs: P.kwargs) -> R:
        token = otel_context.attach(context)
        try:
            return function(*args, **kwargs)
        finally:
            otel_context.detach(token)

    return carried

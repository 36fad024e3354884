"""Find the application's tracer provider, or make one that exports as the standard ``OTEL_*`` variables ask for."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, SynchronousMultiSpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from reach_otel.publish.exporters import span_exporter
from reach_otel.settings import otlp_protocol

logger = logging.getLogger(__name__)


def global_provider() -> tuple[TracerProvider, Sequence[SpanProcessor]]:
    """Return the application's provider, or make one and set it; also what that is to export with."""
    found: Any = trace.get_tracer_provider()
    if hasattr(found, "add_span_processor"):
        return found, ()
    if not isinstance(found, trace.ProxyTracerProvider):
        raise TypeError(f"{type(found).__name__} takes no span processors; give an OpenTelemetry SDK tracer_provider")
    provider = TracerProvider()
    exporting: list[SpanProcessor] = []
    if protocol := otlp_protocol():
        try:
            exporting.append(BatchSpanProcessor(span_exporter(protocol)))
        except Exception:  # scoring does not depend on it
            logger.warning("the OTLP exporter that OTEL_* variables ask for cannot be made", exc_info=True)
    trace.set_tracer_provider(provider)
    return provider, exporting


def is_empty(provider: Any) -> bool:
    """Say whether a provider surely has no processor yet, so that none is shut down before ours; the SDK hides them."""
    processors = getattr(provider, "_active_span_processor", None)
    return isinstance(processors, SynchronousMultiSpanProcessor) and not getattr(processors, "_span_processors", True)

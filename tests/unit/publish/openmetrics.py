"""Write and read the OpenMetrics format, with types."""

from __future__ import annotations

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families


def written(registry: CollectorRegistry) -> str:
    """Return what a scrape that asks for OpenMetrics gets."""
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text.decode()


def parsed(text: str) -> dict[str, Metric]:
    """Return the metric families by name; raises ``ValueError`` for text that is no OpenMetrics."""
    return {family.name: family for family in text_string_to_metric_families(text)}  # type: ignore[no-untyped-call]

"""Check the metrics server and its ports."""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, Counter

from reach_otel.publish.expose import expose
from tests.unit.publish.openmetrics import parsed


@pytest.fixture
def registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    Counter("served", "Served.", registry=registry).inc(1, {"trace_id": "ab"})
    return registry


@pytest.fixture
def taken() -> Iterator[int]:
    """Take a port whose successor is free as well."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]


def fetch(address: str, accept: str = "text/plain") -> str:
    request = urllib.request.Request(address, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=10) as response:
        body: bytes = response.read()
        return body.decode()


def test_metrics_are_served_in_both_formats(registry: CollectorRegistry) -> None:
    """The old text has no exemplars, OpenMetrics has."""
    endpoint = expose(registry, "127.0.0.1", [0])
    assert endpoint is not None
    try:
        assert endpoint.address == f"http://127.0.0.1:{endpoint.port}/metrics"
        assert "served_total 1.0\n" in fetch(endpoint.address)
        text = fetch(endpoint.address, "application/openmetrics-text; version=1.0.0")
        assert 'served_total 1.0 # {trace_id="ab"} 1.0' in text
        assert parsed(text)
    finally:
        endpoint.close()
    again = expose(registry, "127.0.0.1", [endpoint.port])
    assert again is not None, "a closed endpoint frees its port"
    again.close()


def test_the_first_free_port_of_a_range_is_taken(registry: CollectorRegistry, taken: int) -> None:
    """Ports that others hold are passed over."""
    endpoint = expose(registry, "127.0.0.1", [taken, taken, 0])
    assert endpoint is not None
    assert endpoint.port != taken
    endpoint.close()


def test_no_free_port_is_no_error(registry: CollectorRegistry, taken: int) -> None:
    """When all are taken there is no endpoint."""
    assert expose(registry, "127.0.0.1", [taken]) is None


def test_a_host_that_is_not_ours_is_an_error(registry: CollectorRegistry) -> None:
    """No other port would help, so it is raised at once."""
    with pytest.raises(OSError, match=r"assign|address"):
        expose(registry, "192.0.2.1", range(20_000, 30_000))

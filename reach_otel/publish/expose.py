"""Serve a registry as ``/metrics`` on the first free port of a range."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import start_http_server

if TYPE_CHECKING:
    from wsgiref.simple_server import WSGIServer

    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric as Family

    from reach_otel.publish.metrics import Metrics

_TAKEN = frozenset((errno.EADDRINUSE, errno.EACCES))


class Endpoint:
    """A running metrics server in a thread of its own."""

    __slots__ = ("_server", "host", "port")

    def __init__(self, server: WSGIServer, host: str) -> None:
        self._server = server
        self.host = host
        self.port: int = server.server_port

    @property
    def address(self) -> str:
        """Return the address that a browser or a scraper uses."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/metrics"

    def close(self) -> None:
        """Stop serving and free the port."""
        self._server.shutdown()
        self._server.server_close()

    def disown(self) -> None:
        """Close what a fork left of the parent's server in this process; the parent goes on serving."""
        self._server.socket.close()


class Exposed:
    """Be in a registry for the metrics of this process, which a fork replaces."""

    metrics: Metrics | None = None
    _registry: CollectorRegistry | None = None

    def enter(self, registry: CollectorRegistry, *, for_good: bool) -> None:
        registry.register(self)
        self._registry = None if for_good else registry

    def leave(self) -> None:
        if self._registry is not None:
            self._registry.unregister(self)
            self._registry = None

    def describe(self) -> Iterable[Family]:
        return () if self.metrics is None else self.metrics.describe()

    def collect(self) -> Iterable[Family]:
        return () if self.metrics is None else self.metrics.collect()


def expose(registry: CollectorRegistry, host: str, ports: Iterable[int]) -> Endpoint | None:
    """Serve on the first port that is free; ``None`` when all are taken.

    :raises OSError: the host is not an address of this machine, or another fault that no other port would cure.
    """
    for port in ports:
        try:
            server, _ = start_http_server(port, host, registry)
        except OSError as exc:
            if exc.errno not in _TAKEN:
                raise
            continue
        return Endpoint(server, host)
    return None

"""Run the service: HTTP on uvicorn, gRPC beside it, until a signal says stop."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from typing import TYPE_CHECKING, Any, Final

import uvicorn

from reach_otel.errors import StateError
from reach_otel.service.app import create_app

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from reach_otel.service.app import Service
    from reach_otel.settings import ServeSettings, Settings

GRACE_SECONDS: Final = 5
KEEP_ALIVE_SECONDS: Final = 75  # longer than exporters pause between two batches
SWITCH_SECONDS: Final = 0.001
"""How long a thread may keep the interpreter: answers would wait five times as long for the scorer by default."""
BACKLOG: Final = 1_024

logger = logging.getLogger(__name__)


class Server(uvicorn.Server):
    """Stop taking spans, and end streams, as soon as a signal comes; uvicorn then waits for what is under way."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._service.stop_taking()
        super().handle_exit(sig, frame)


def serve(settings: ServeSettings, scoring: Settings, *, started: Callable[[str, str | None], None]) -> None:
    """Serve until SIGINT or SIGTERM; ``started`` is told the addresses of HTTP and gRPC once both listen.

    :raises SettingsError: the service would stand open to everybody.
    :raises StateError: the database cannot be opened, or an address is taken.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    listener = _listen(settings.host, settings.port)
    try:
        app = create_app(settings, scoring)
        service: Service = app.state.service
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="on",
            limit_concurrency=settings.connections_max,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
            h11_max_incomplete_event_size=64 << 10,
        )
        server = Server(config, service)
        for stop in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises them again when it is done: a clean end exits 0
            signal.signal(stop, lambda *_: None)
        asyncio.run(_serve(server, service, listener, settings, started))
    finally:
        listener.close()


async def _serve(
    server: Server,
    service: Service,
    listener: socket.socket,
    settings: ServeSettings,
    started: Callable[[str, str | None], None],
) -> None:
    serving = asyncio.create_task(server.serve([listener]))
    listening = asyncio.create_task(server.listening.wait())
    await asyncio.wait((serving, listening), return_when=asyncio.FIRST_COMPLETED)
    listening.cancel()
    grpc: Any = None
    try:
        if settings.grpc_port is not None and server.started:
            from reach_otel.service import otlp_grpc  # noqa: PLC0415 - an extra

            grpc = await otlp_grpc.start(service, settings)
        if server.started:
            port = listener.getsockname()[1]
            started(f"http://{_shown(settings.host)}:{port}", None if grpc is None else grpc.address)
        await serving
    except BaseException:
        server.should_exit = True
        await serving
        raise
    finally:
        if grpc is not None:
            await grpc.stop(GRACE_SECONDS)


def _listen(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise StateError(f"host: {host!r} is no address to listen on ({error.strerror or error})") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise StateError(
            f"{_shown(host)}:{port} cannot be listened on ({error.strerror or error}); "
            "end what uses it, or choose another --port"
        ) from None
    listener.setblocking(False)
    return listener


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host

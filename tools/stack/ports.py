"""Choose the loopback ports of the stack: those of the documentation, or the next free ones."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Final

from tools.stack.process import StackError

HOST: Final = "127.0.0.1"
TRIES: Final = 100

PREFERRED: Final = {
    "collector grpc": 4317,
    "collector http": 4318,
    "collector health": 13133,
    "collector metrics": 8888,
    "prometheus": 9090,
    "alertmanager": 9093,
    "webhook": 9095,
}
SCORER_HTTP: Final = 8321
SCORER_GRPC: Final = 8331
SCORERS_MAX: Final = SCORER_GRPC - SCORER_HTTP


def wanted(scorers: int) -> dict[str, int]:
    """Return the preferred ports by what they are for; each scorer has two."""
    ports = dict(PREFERRED)
    for n in range(1, scorers + 1):
        ports[f"scorer {n}"] = SCORER_HTTP + n - 1
        ports[f"scorer {n} grpc"] = SCORER_GRPC + n - 1
    return ports


def choose(preferred: dict[str, int]) -> dict[str, int]:
    """Return the preferred ports where they are free, else the next free ones; no port twice.

    :raises StackError: there are none near a preferred one.
    """
    chosen = {name: port for name, port in preferred.items() if is_free(port)}
    for name, port in preferred.items():
        if name not in chosen:
            taken = {*chosen.values(), *preferred.values()}
            chosen[name] = _next_free(name, range(port + 1, port + TRIES), taken)
    return {name: chosen[name] for name in preferred}


def choose_any(names: Iterable[str]) -> dict[str, int]:
    """Return a free port for each name, as the system gives them."""
    with ExitStack() as held:
        chosen: dict[str, int] = {}
        for name in names:
            probe = held.enter_context(socket.socket())
            probe.bind((HOST, 0))
            chosen[name] = int(probe.getsockname()[1])
        return chosen


def is_free(port: int) -> bool:
    """Say whether nobody listens on a loopback port."""
    with socket.socket() as probe:
        # As servers do: a connection that has just ended is no reason to go elsewhere.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    with socket.socket() as caller:
        return caller.connect_ex((HOST, port)) != 0


def _next_free(name: str, ports: range, taken: set[int]) -> int:
    for port in ports:
        if port not in taken and is_free(port):
            return port
    raise StackError(f"no free port for {name} on {HOST} from {ports.start} to {ports.stop - 1}")

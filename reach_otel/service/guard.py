"""Keep other sites' pages from reaching a service that trusts whoever can reach its port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LOCAL_NAMES: Final = frozenset(("localhost", "127.0.0.1", "[::1]", "testserver"))


class LocalNames:
    """Answer only requests for a name of this machine.

    A page of any site can make the browser ask a server on loopback, under a name of its own that it lets point there;
    the ``Host`` header then has that name.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1")
            if _name(host) not in LOCAL_NAMES:
                refusal = PlainTextResponse(
                    "this service answers to localhost only; set tokens to use another name", 421
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _name(host: str) -> str:
    host = host.lower()
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]

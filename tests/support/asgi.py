"""Talk to an ASGI application in the same process and loop, with nothing between: requests, answers, streams."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

PATIENCE_SECONDS = 20.0


class Answer:
    """An answer as it came."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def json(self) -> Any:
        return json.loads(self.body)


class Exchange:
    """One request under way: messages of the application come into :attr:`sent`."""

    def __init__(self, app: Any, method: str, target: str, headers: dict[str, str], body: bytes) -> None:
        parts = urlsplit(target)
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(parts.path),
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "root_path": "",
            "headers": [
                (name.lower().encode(), value.encode()) for name, value in {"Host": "127.0.0.1", **headers}.items()
            ],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
            "state": {},
        }
        self.sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.stuck = asyncio.Event()  # while it is cleared, the application's sends wait
        self.stuck.set()
        self._incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._incoming.put_nowait({"type": "http.request", "body": body, "more_body": False})
        self.running = asyncio.ensure_future(app(scope, self._incoming.get, self._send))

    async def _send(self, message: dict[str, Any]) -> None:
        await self.stuck.wait()
        self.sent.put_nowait(message)

    def hang_up(self) -> None:
        """Go away."""
        self._incoming.put_nowait({"type": "http.disconnect"})

    async def next(self) -> dict[str, Any]:
        """Wait for the application's next message."""
        return await asyncio.wait_for(self.sent.get(), PATIENCE_SECONDS)


class Client:
    """Send requests to an application."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def open(self, target: str, headers: dict[str, str] | None = None) -> Exchange:
        """Begin a request whose answer goes on."""
        return Exchange(self.app, "GET", target, headers or {}, b"")

    async def ask(
        self, method: str, target: str, body: bytes = b"", headers: dict[str, str] | None = None, **query: Any
    ) -> Answer:
        """Send a request and wait for the whole answer."""
        if query:
            target += "?" + urlencode(query)
        exchange = Exchange(self.app, method, target, headers or {}, body)
        await asyncio.wait_for(exchange.running, PATIENCE_SECONDS)
        start = await exchange.next()
        whole = b""
        while not exchange.sent.empty():
            whole += exchange.sent.get_nowait().get("body", b"")
        names = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], names, whole)

    async def get(self, target: str, headers: dict[str, str] | None = None, **query: Any) -> Answer:
        return await self.ask("GET", target, headers=headers, **query)

    async def json(self, target: str, **query: Any) -> Any:
        """Give the JSON of a request that succeeds."""
        answer = await self.get(target, **query)
        assert answer.status == 200, (answer.status, answer.body)
        return answer.json()

    async def post(self, target: str, value: Any) -> Answer:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return await self.ask("POST", target, body, {"Content-Type": "application/json"})

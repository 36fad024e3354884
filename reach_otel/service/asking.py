"""Ask the service's own API from inside, with the rights of whoever asks for a page, so that both show the same."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import httpx2
from fastapi import Request


class NoAnswer(Exception):
    """The API answered with this status instead of data."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the API answered {status}")
        self.status = status


class Api:
    """Send requests to the application that serves ``request``, past no network."""

    def __init__(self, request: Request) -> None:
        # The bare transport: a client would keep the cookies of one reader for the next.
        self._transport = httpx2.ASGITransport(app=request.app, client=request.client or ("127.0.0.1", 0))
        self._base = str(request.base_url).rstrip("/")
        self._headers = {
            name: value for name in ("authorization", "cookie") if (value := request.headers.get(name)) is not None
        }

    async def get(self, path: str, **query: str | int | None) -> Any:
        """Return what ``/api/`` and ``path`` give; parameters that are empty are left out.

        :raises NoAnswer: that is no data.
        """
        asked = urlencode({name: value for name, value in query.items() if value not in (None, "")})
        url = f"{self._base}/api/{path}" + (f"?{asked}" if asked else "")
        try:
            response = await self._transport.handle_async_request(httpx2.Request("GET", url, headers=self._headers))
        except httpx2.InvalidURL:
            raise NoAnswer(404) from None
        body = await response.aread()
        if response.status_code != 200:
            raise NoAnswer(response.status_code)
        return httpx2.Response(200, content=body).json()

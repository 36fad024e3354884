"""Let in who shows a token: senders by header, readers by header or by the cookie that signing in gives."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from fastapi import HTTPException, Request, Response

from reach_otel.service.limits import Refused

COOKIE: Final = "reach-otel-session"
COOKIE_SECONDS: Final = 30 * 86_400
_PURPOSE: Final = b"reach-otel session"


class Access:
    """Know both tokens, and compare with them in constant time. No token set: everybody is let in."""

    __slots__ = ("_ingest", "_read", "_session")

    def __init__(self, *, ingest_token: str | None, read_token: str | None) -> None:
        self._ingest = ingest_token.encode() if ingest_token is not None else None
        self._read = read_token.encode() if read_token is not None else None
        # The cookie proves that its owner knew the token, and does not hold it.
        self._session = None if self._read is None else hmac.new(self._read, _PURPOSE, hashlib.sha256).hexdigest()

    @property
    def needs_login(self) -> bool:
        """Say whether readers have to show a token."""
        return self._read is not None

    def check_sender(self, authorization: str | None) -> None:
        """Check the ``Authorization`` of one who sends spans.

        :raises Refused: 401 the token is missing or wrong.
        """
        if self._ingest is not None and not _shows(authorization, self._ingest):
            raise Refused(401, "a bearer token is needed, and this is none or another one")

    def may_read(self, request: Request) -> bool:
        """Say whether a request shows the reading token, or the cookie for it."""
        if self._read is None or self._session is None:
            return True
        if _shows(request.headers.get("authorization"), self._read):
            return True
        return hmac.compare_digest(request.cookies.get(COOKIE, "").encode(), self._session.encode())

    def reader(self, request: Request) -> None:
        """Be the dependency of all routes that show something: 401 for who may not read."""
        if not self.may_read(request):
            raise HTTPException(401, "a bearer token is needed", {"WWW-Authenticate": "Bearer"})

    def writer(self, request: Request) -> None:
        """Be the dependency of routes that take feedback: senders and readers may, 401 for others."""
        if self._ingest is not None and _shows(request.headers.get("authorization"), self._ingest):
            return
        self.reader(request)

    def is_reading_token(self, token: str) -> bool:
        """Compare with the reading token."""
        return self._read is not None and hmac.compare_digest(token.encode(), self._read)

    def sign_in(self, response: Response, *, secure: bool) -> None:
        """Give the cookie."""
        if self._session is not None:
            response.set_cookie(
                COOKIE, self._session, COOKIE_SECONDS, httponly=True, samesite="strict", secure=secure, path="/"
            )

    def sign_out(self, response: Response) -> None:
        """Take the cookie back."""
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")


def _shows(authorization: str | None, token: bytes) -> bool:
    scheme, _, shown = (authorization or "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(shown.strip().encode(), token)

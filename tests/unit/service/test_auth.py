"""Check who is let in: bearer tokens for sending and reading, and the cookie that stands for the second."""

from __future__ import annotations

import pytest
from fastapi import HTTPException, Response
from starlette.requests import Request

from reach_otel.service.auth import COOKIE, Access
from reach_otel.service.limits import Refused


def asked(authorization: str | None = None, cookie: str | None = None) -> Request:
    headers = []
    if authorization is not None:
        headers.append((b"authorization", authorization.encode("latin-1")))
    if cookie is not None:
        headers.append((b"cookie", cookie.encode("latin-1")))
    return Request({"type": "http", "method": "GET", "path": "/", "headers": headers})


BOTH = Access(ingest_token="in-secret", read_token="out-secret")


def may_send(access: Access, authorization: str | None) -> bool:
    try:
        access.check_sender(authorization)
    except Refused as refused:
        return refused.status != 401
    return True


@pytest.mark.parametrize(
    ("authorization", "sends", "reads"),
    [
        (None, False, False),
        ("", False, False),
        ("Bearer", False, False),
        ("Bearer ", False, False),
        ("Bearer in-secret", True, False),
        ("bearer  in-secret", True, False),
        ("Bearer out-secret", False, True),
        ("Bearer in-secretx", False, False),
        ("Basic in-secret", False, False),
        ("in-secret", False, False),
        ("Bearer ünï", False, False),
    ],
)
def test_each_token_opens_its_own_door(authorization: str | None, sends: bool, reads: bool) -> None:
    """The token for sending does not read, that for reading does not send, and nothing else does either."""
    assert may_send(BOTH, authorization) is sends
    assert BOTH.may_read(asked(authorization)) is reads


def test_without_tokens_everybody_is_let_in() -> None:
    """On loopback no token is needed."""
    access = Access(ingest_token=None, read_token=None)
    assert may_send(access, None)
    assert access.may_read(asked())
    assert not access.needs_login
    assert not access.is_reading_token("")


def test_signing_in_gives_a_cookie_that_reads_and_does_not_hold_the_token() -> None:
    """The cookie is out of reach for scripts and other sites, and worth nothing without this service."""
    response = Response()
    BOTH.sign_in(response, secure=True)
    said = response.headers["set-cookie"]
    assert all(word in said.lower() for word in ("httponly", "samesite=strict", "secure", "path=/"))
    assert "secret" not in said
    value = said.partition(";")[0]
    assert value.startswith(f"{COOKIE}=")
    assert BOTH.may_read(asked(cookie=value))
    assert not BOTH.may_read(asked(cookie=value[:-1]))
    assert not BOTH.may_read(asked(cookie=f"{COOKIE}=out-secret"))
    assert not Access(ingest_token=None, read_token="other").may_read(asked(cookie=value))
    BOTH.sign_out(response)
    assert f'{COOKIE}=""' in response.headers.getlist("set-cookie")[-1]


def test_the_dependencies_answer_401() -> None:
    """Readers need the reading token; who gives feedback needs either."""
    BOTH.reader(asked("Bearer out-secret"))
    BOTH.writer(asked("Bearer out-secret"))
    BOTH.writer(asked("Bearer in-secret"))
    for door in (BOTH.reader, BOTH.writer):
        with pytest.raises(HTTPException) as refused:
            door(asked("Bearer other"))
        assert (refused.value.status_code, refused.value.headers) == (401, {"WWW-Authenticate": "Bearer"})

"""Answer requests that cannot be served: which parameter is wrong, what is allowed, and nothing of what was sent."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, TypeVar

from fastapi import HTTPException, Request, params
from fastapi.exceptions import RequestValidationError
from starlette.responses import Response

from reach_otel.errors import StateError
from reach_otel.service.api_models import Problem
from reach_otel.service.entries import clean, encode
from reach_otel.service.reader import Unreadable

T = TypeVar("T")

PLACE_CHARS_MAX: Final = 100
ERRORS_SHOWN_MAX: Final = 20
RETRY_SECONDS: Final = 2
JSON: Final = "application/json"

NO_STORE: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}

_DESCRIPTIONS: Final = {
    304: "Not changed since the answer with the `ETag` that `If-None-Match` names.",
    400: "The body is no JSON.",
    401: "No token, or a wrong one.",
    404: "There is nothing of this name.",
    409: "It contradicts what is there.",
    422: "A parameter or the body is wrong; the message says which, and what is allowed.",
    503: "No answer at the moment: too much is asked at once, or the database cannot be read. Try again.",
}


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe answers for OpenAPI."""
    found: dict[int | str, dict[str, Any]] = {}
    for status in statuses:
        found[status] = {"description": _DESCRIPTIONS[status]}
        if status != 304:
            found[status]["model"] = Problem
        if status == 503:
            found[status]["headers"] = {
                "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}
            }
    return found


def unavailable(message: str) -> HTTPException:
    """Make the answer for what may work a little later."""
    return HTTPException(503, message, headers={"Retry-After": str(RETRY_SECONDS), **NO_STORE})


def missing(message: str) -> HTTPException:
    """Make the answer for what is not there."""
    return HTTPException(404, message, headers=NO_STORE)


def wrong(at: str, message: str) -> RequestValidationError:
    """Make the answer for a parameter that cannot be used."""
    return RequestValidationError([{"loc": tuple(at.split(".")), "msg": message, "type": "value_error"}])


async def answered(answering: Awaitable[T]) -> T:
    """Wait for an answer of the scorer or the database; none is a 503."""
    try:
        return await answering
    except (StateError, Unreadable) as error:
        raise unavailable(str(error)) from None


def allow(parameters: str = "") -> params.Depends:
    """Make a dependency that refuses query parameters of other names than these, and one given twice."""
    allowed = parameters.split()

    async def check(request: Request) -> None:
        seen: set[str] = set()
        for name, _ in request.query_params.multi_items():
            if name not in allowed:
                raise wrong(f"query.{_short(name)}", _unknown(name, allowed))
            if name in seen:
                raise wrong(f"query.{name}", "is given twice; give it once")
            seen.add(name)

    return params.Depends(check)


def _unknown(name: str, allowed: Sequence[str]) -> str:
    close = get_close_matches(name[:PLACE_CHARS_MAX], allowed, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"unknown parameter; {hint}" + (f"allowed are {', '.join(allowed)}" if allowed else "none is allowed here")


async def invalid(request: Request, error: Exception) -> Response:
    """Answer a request that does not fit, with 422; the values that were sent are not repeated."""
    del request
    found: Sequence[Mapping[str, Any]] = error.errors() if isinstance(error, RequestValidationError) else ()
    errors = [
        {"at": ".".join(_short(str(part)) for part in one["loc"]), "message": _short(str(one["msg"]), 1_000)}
        for one in found[:ERRORS_SHOWN_MAX]
    ]
    detail = "; ".join(f"{one['at']}: {one['message']}" for one in errors) or "the request does not fit"
    body = encode({"detail": detail, "errors": errors})
    status = 400 if any(one["type"] == "json_invalid" for one in found) else 422
    return Response(body, status, NO_STORE, JSON)


def _short(text: str, most: int = PLACE_CHARS_MAX) -> str:
    return clean(text if len(text) <= most else f"{text[:most]}…")

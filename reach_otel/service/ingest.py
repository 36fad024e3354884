"""Receive OTLP over HTTP: ``POST /v1/traces`` and ``POST /v1/logs``, protobuf and JSON."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, Request, Response
from starlette.requests import ClientDisconnect

from reach_otel.service import reply
from reach_otel.service.faults import told
from reach_otel.service.limits import Refused, read_body

if TYPE_CHECKING:
    from reach_otel.service.auth import Access
    from reach_otel.service.decode import Form, Signal
    from reach_otel.service.intake import Intake
    from reach_otel.service.telemetry import Telemetry
    from reach_otel.settings import ServeSettings

logger = logging.getLogger(__name__)

_FORMS: Final[dict[str, Form]] = {
    "application/x-protobuf": "protobuf",
    "application/protobuf": "protobuf",
    "application/json": "json",
}
_BODY: Final[dict[str, Any]] = {
    "required": True,
    "content": {
        "application/x-protobuf": {"schema": {"type": "string", "format": "binary"}},
        "application/json": {"schema": {"type": "object"}},
    },
}
_WHAT: Final = {
    400: "It cannot be read.",
    401: "The token is missing or wrong.",
    408: "The body came too slowly.",
    413: "The body is too long, or holds too many spans.",
    415: "Another type or encoding than those known.",
    429: "Too many requests at the same time; see Retry-After.",
    503: "The queue is full, or the service stops; see Retry-After.",
}
_STATUS: Final[dict[str, Any]] = {
    "application/x-protobuf": {"schema": {"type": "string", "format": "binary"}},
    "application/json": {
        "schema": {
            "type": "object",
            "properties": {"code": {"type": "integer"}, "message": {"type": "string"}},
            "required": ["code", "message"],
        }
    },
}
_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "Taken; `partialSuccess` says what was left out.", "content": _BODY["content"]},
    **{status: {"description": what, "content": _STATUS} for status, what in _WHAT.items()},
}


def router_of(intake: Intake, access: Access, serve: ServeSettings, telemetry: Telemetry) -> APIRouter:
    """Make the routes."""
    router = APIRouter(tags=["ingest"])

    def add(signal: Signal) -> None:
        async def receive(request: Request) -> Response:
            form = _form_of(request)
            try:
                answer = await _receive(signal, form, request)
            except Refused as refused:
                answer = _refuse(form or "json", refused)
            except ClientDisconnect:
                answer = Response(status_code=400)  # nobody reads it
            except Exception as error:  # noqa: BLE001 - one request is one request
                logger.error("a request failed: %s", told(error))
                answer = _refuse(form or "json", Refused(500, "internal error; the log says more"))
            telemetry.answered(signal, answer.status_code)
            return answer

        router.add_api_route(
            f"/v1/{signal}",
            receive,
            methods=["POST"],
            name=f"export_{signal}",
            summary=f"Take {signal} as OTLP.",
            response_class=Response,
            responses=_RESPONSES,
            openapi_extra={"requestBody": _BODY},
        )

    async def _receive(signal: Signal, form: Form | None, request: Request) -> Response:
        access.check_sender(request.headers.get("authorization"))
        if form is None:
            found = request.headers.get("content-type", "")[:80]
            raise Refused(415, f"Content-Type: found {found!r}, want {' or '.join(reply.MEDIA_TYPES.values())}")
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > serve.body_max:
            raise Refused(413, f"the body is longer than {serve.body_max} bytes")
        intake.check()
        with intake.budget.share() as share:
            body = await read_body(
                request.stream(),
                share,
                encoding=request.headers.get("content-encoding", ""),
                body_max=serve.body_max,
                decompressed_max=serve.decompressed_max,
                seconds=serve.body_seconds,
            )
            decoded = await intake.take(signal, form, body)
        text = reply.success(signal, form, decoded.rejected, decoded.complaint())
        return Response(text, media_type=reply.MEDIA_TYPES[form])

    add("traces")
    add("logs")
    return router


def _form_of(request: Request) -> Form | None:
    return _FORMS.get(request.headers.get("content-type", "").partition(";")[0].strip().lower())


def _refuse(form: Form, refused: Refused) -> Response:
    headers = {}
    if refused.retry_after_seconds is not None:
        headers["Retry-After"] = str(refused.retry_after_seconds)
    if refused.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    body = reply.failure(form, refused.status, refused.message)
    return Response(body, refused.status, headers, media_type=reply.MEDIA_TYPES[form])

"""Serve what keeps a service running: ``/metrics``, ``/healthz``, ``/readyz``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client.exposition import choose_encoder
from pydantic import BaseModel

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from reach_otel.service.auth import Access
    from reach_otel.service.telemetry import Telemetry


class Readiness(BaseModel):
    """Say whether the service takes spans and keeps them, and if not, why."""

    ready: bool
    reasons: list[str]


class Healthiness(BaseModel):
    """Say that the process answers."""

    status: str = "ok"


def router_of(registry: CollectorRegistry, access: Access, telemetry: Telemetry) -> APIRouter:
    """Make the routes; the two checks need no token and say nothing about runs."""
    router = APIRouter(tags=["operation"])

    async def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        body = await asyncio.to_thread(encode, registry)  # type: ignore[no-untyped-call,unused-ignore]
        return Response(body, headers={"Content-Type": content_type})

    async def healthz() -> Healthiness:
        return Healthiness()

    async def readyz() -> Any:
        reasons = telemetry.reasons()
        answer = Readiness(ready=not reasons, reasons=reasons)
        return JSONResponse(answer.model_dump(), 503 if reasons else 200)

    text = {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Metrics for Prometheus."}
    router.add_api_route(
        "/metrics",
        metrics,
        summary="Metrics in the format asked for: Prometheus text or OpenMetrics.",
        response_class=Response,
        responses={200: text},
        dependencies=[Depends(access.reader)],
    )
    router.add_api_route("/healthz", healthz, summary="Whether the process answers.", response_model=Healthiness)
    router.add_api_route(
        "/readyz",
        readyz,
        summary="Whether spans are taken and kept.",
        response_model=Readiness,
        responses={503: {"model": Readiness, "description": "Not now; the reasons are told."}},
    )
    return router

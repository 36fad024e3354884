"""Receive OTLP over gRPC, on the event loop of the service; needs the extra ``reach-otel[grpc]``."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from reach_otel.errors import StateError
from reach_otel.service import reply
from reach_otel.service.faults import told
from reach_otel.service.limits import Refused

try:
    import grpc
    import grpc.aio
    from google.protobuf.any_pb2 import Any as AnyMessage
    from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]
    from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
except ImportError as error:
    raise StateError(f"grpc_port: gRPC is not installed ({error}); pip install 'reach-otel[grpc]'") from None

if TYPE_CHECKING:
    from reach_otel.service.app import Service
    from reach_otel.service.decode import Signal
    from reach_otel.settings import ServeSettings

_METHODS: Final[dict[str, Signal]] = {
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export": "traces",
    "/opentelemetry.proto.collector.logs.v1.LogsService/Export": "logs",
}
_CODES: Final = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    413: grpc.StatusCode.INVALID_ARGUMENT,
    # OTLP: a sender may try again after RESOURCE_EXHAUSTED only where RetryInfo says so
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    503: grpc.StatusCode.RESOURCE_EXHAUSTED,
}
DETAILS: Final = "grpc-status-details-bin"

logger = logging.getLogger(__name__)


class GrpcServer:
    """A running server."""

    def __init__(self, server: Any, address: str) -> None:
        self._server = server
        self.address = address

    async def stop(self, grace_seconds: float) -> None:
        """Finish what is under way, then close."""
        await self._server.stop(grace_seconds)


async def start(service: Service, settings: ServeSettings) -> GrpcServer:
    """Listen on ``grpc_port``.

    :raises StateError: the port is taken.
    """
    server = grpc.aio.server(
        handlers=[_Handler(service)],
        options=[
            ("grpc.max_receive_message_length", settings.decompressed_max),
            ("grpc.so_reuseport", 0),
            ("grpc.max_concurrent_streams", 100),
        ],
        maximum_concurrent_rpcs=settings.connections_max,
    )
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    try:
        port = server.add_insecure_port(f"{host}:{settings.grpc_port}")
    except RuntimeError:
        port = 0
    if not port:
        raise StateError(f"{host}:{settings.grpc_port} cannot be listened on; choose another --grpc-port")
    await server.start()
    return GrpcServer(server, f"{host}:{port}")


class _Handler(grpc.GenericRpcHandler):  # type: ignore[misc,unused-ignore]
    """Route both methods to the intake, with bodies as they came, so that one reader serves all protocols."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def service(self, handler_call_details: Any) -> Any:
        signal = _METHODS.get(handler_call_details.method)
        if signal is None:
            return None

        async def export(body: bytes, context: Any) -> bytes:
            return await self._export(signal, body, context)

        return grpc.unary_unary_rpc_method_handler(export)

    async def _export(self, signal: Signal, body: bytes, context: Any) -> bytes:
        service = self._service
        try:
            service.access.check_sender(_authorization(context))
            with service.intake.budget.share() as share:
                share.take(len(body))
                decoded = await service.intake.take(signal, "protobuf", body)
        except Refused as refused:
            code = _CODES.get(refused.status, grpc.StatusCode.INTERNAL)
            service.telemetry.answered(signal, code.name)
            if refused.retry_after_seconds is not None:
                context.set_trailing_metadata(((DETAILS, _retry_later(code, refused)),))
            await context.abort(code, refused.message)
        except Exception as error:  # noqa: BLE001 - one request is one request
            logger.error("a request failed: %s", told(error))
            service.telemetry.answered(signal, "INTERNAL")
            await context.abort(grpc.StatusCode.INTERNAL, "internal error; the log says more")
        service.telemetry.answered(signal, "OK")
        return reply.success(signal, "protobuf", decoded.rejected, decoded.complaint())


def _authorization(context: Any) -> str | None:
    for name, value in context.invocation_metadata() or ():
        if name == "authorization":
            return value if isinstance(value, str) else value.decode("utf-8", "replace")
    return None


def _retry_later(code: Any, refused: Refused) -> bytes:
    retry = RetryInfo()
    retry.retry_delay.seconds = refused.retry_after_seconds or 0
    detail = AnyMessage()
    detail.Pack(retry)
    status = Status(code=code.value[0], message=refused.message, details=[detail])
    return bytes(status.SerializeToString())

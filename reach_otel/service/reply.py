"""Write answers to OTLP requests in the form in which these came: success, partial success, ``google.rpc.Status``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

if TYPE_CHECKING:
    from reach_otel.service.decode import Form, Signal

MEDIA_TYPES: Final[dict[Form, str]] = {"protobuf": "application/x-protobuf", "json": "application/json"}

# google.rpc.Code, by HTTP status
_INVALID_ARGUMENT: Final = 3
_RPC_CODES: Final = {
    400: _INVALID_ARGUMENT,
    401: 16,
    408: 4,
    413: _INVALID_ARGUMENT,
    415: _INVALID_ARGUMENT,
    429: 8,
    503: 14,
}
_INTERNAL: Final = 13


def success(signal: Signal, form: Form, rejected: int = 0, message: str = "") -> bytes:
    """Say that a request was taken, but for ``rejected`` of its spans or log records."""
    if form == "json":
        if not rejected and not message:
            return b"{}"
        key = "rejectedSpans" if signal == "traces" else "rejectedLogRecords"
        return json.dumps({"partialSuccess": {key: str(rejected), "errorMessage": message}}).encode()
    return message_of(signal, rejected, message).SerializeToString()


def message_of(signal: Signal, rejected: int, message: str) -> ExportTraceServiceResponse | ExportLogsServiceResponse:
    """Give the response of a request as a message."""
    if signal == "traces":
        traces = ExportTraceServiceResponse()
        if rejected or message:
            traces.partial_success.rejected_spans = rejected
            traces.partial_success.error_message = message
        return traces
    logs = ExportLogsServiceResponse()
    if rejected or message:
        logs.partial_success.rejected_log_records = rejected
        logs.partial_success.error_message = message
    return logs


def failure(form: Form, status: int, message: str) -> bytes:
    """Say why a request was not taken, as a ``google.rpc.Status``."""
    code = _RPC_CODES.get(status, _INTERNAL)
    if form == "json":
        return json.dumps({"code": code, "message": message}).encode()
    return bytes(Status(code=code, message=message).SerializeToString())

"""Know how OTLP is addressed, and make the exporters that the standard ``OTEL_*`` variables describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

Protocol = Literal["http", "grpc"]

TRACES_PATH: Final = "/v1/traces"  # of OTLP over HTTP
LOGS_PATH: Final = "/v1/logs"


def bearer(token: str | None) -> dict[str, str] | None:
    """Return the headers that show a token, if there is one."""
    return {"Authorization": f"Bearer {token}"} if token else None


def span_exporter(protocol: Protocol) -> SpanExporter:
    """Make an exporter of spans."""
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (  # noqa: PLC0415
            OTLPSpanExporter as OverGrpc,
        )

        return OverGrpc()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

    return OTLPSpanExporter()


def log_exporter(protocol: Protocol) -> Any:
    """Make an exporter of log records, whose base class has another name in each few versions of the SDK."""
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as OverGrpc  # noqa: PLC0415

        return OverGrpc()
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter  # noqa: PLC0415

    return OTLPLogExporter()

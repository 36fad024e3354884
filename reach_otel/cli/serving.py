"""Start the service from the command line, and say where it is."""

from __future__ import annotations

import logging
from typing import Any

import typer

from reach_otel.errors import SettingsError, StateError
from reach_otel.settings import ServeSettings, Settings, read_serve


def run(given: dict[str, Any], more: list[str], config: str | None) -> None:
    """Read the settings and serve until a signal says stop."""
    for text in more:
        name, sign, value = text.partition("=")
        if not sign:
            raise SettingsError(f"--set: found {text!r}, want NAME=VALUE")
        given[name.strip()] = value.strip()
    serve, scoring = read_serve(given, file=config)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        from reach_otel.service import server  # noqa: PLC0415
    except ImportError as error:
        raise StateError(f"the service cannot be loaded ({error}); pip install 'reach-otel'") from None
    server.serve(serve, scoring, started=lambda http, grpc: _say(serve, scoring, http, grpc))


def _say(serve: ServeSettings, scoring: Settings, http: str, grpc: str | None) -> None:
    lines = [
        f"reach-otel is at {http}/",
        f"  spans    OTLP over HTTP to {http}/v1/traces" + (f", over gRPC to {grpc}" if grpc else ""),
        f"  metrics  {http}/metrics",
        f"  tasks    {', '.join(scoring.tasks) or 'none: every run counts as unmatched'}",
        f"  kept in  {serve.database}",
    ]
    if not serve.is_local and serve.insecure:
        lines.append("  warning  others can reach it, and no token is asked")
    typer.echo("\n".join(lines))

"""``reach-otel serve``: score spans as a service."""

from __future__ import annotations

from typing import Annotated, Any

import typer

_HELP = """Score spans as a service: OTLP in, metrics, API and a live page out.

Spans come over HTTP (POST /v1/traces and /v1/logs, protobuf or JSON) and, with --grpc-port, over gRPC. What is \
acknowledged is journalled first and survives the death of the process. Every setting can be given as a flag, as a \
REACH_SERVE_* or REACH_* variable, or in a TOML file; flags win over variables, and these over the file.

Examples:

  reach-otel serve --task tasks/

  REACH_SERVE_INGEST_TOKEN=... REACH_SERVE_READ_TOKEN=... reach-otel serve --host 0.0.0.0 --task tasks/

  reach-otel serve --config serve.toml --set grace=5 --set retention_days=7
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("serve", help=_HELP)(serve_command)


def serve_command(
    task: Annotated[
        list[str] | None,
        typer.Option("--task", "-t", metavar="PATH", help="Task file or folder of task files; may be given again."),
    ] = None,
    config: Annotated[
        str | None, typer.Option("--config", "-c", metavar="FILE", help="TOML file with settings, one a line.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on (127.0.0.1).")] = None,
    port: Annotated[int | None, typer.Option(help="Port of HTTP (4318).")] = None,
    grpc_port: Annotated[int | None, typer.Option(help="Port of OTLP/gRPC, usually 4317; none by default.")] = None,
    database: Annotated[
        str | None, typer.Option(metavar="FILE", help="SQLite file of journal and finished runs (reach-otel.db).")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Let others reach the service though no token is set.")
    ] = False,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other setting; may be given again."),
    ] = None,
) -> None:
    """Hand over to :mod:`reach_otel.cli.serving`, which alone pays for importing the service."""
    from reach_otel.cli import serving  # noqa: PLC0415

    given: dict[str, Any] = {
        "tasks": task or None,
        "host": host,
        "port": port,
        "grpc_port": grpc_port,
        "database": database,
        "insecure": insecure or None,
    }
    serving.run({name: value for name, value in given.items() if value is not None}, setting or [], config)

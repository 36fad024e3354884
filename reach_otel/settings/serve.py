"""Hold the settings of the service, in a table of its own: from flags, ``REACH_SERVE_*`` variables and a TOML file."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from reach_otel.errors import SettingsError
from reach_otel.settings import parse, process
from reach_otel.settings.process import Settings, is_service_link
from reach_otel.settings.table import Table, unknown

PREFIX: Final = "REACH_SERVE_"
MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """Hold what the service needs beside :class:`Settings`; :func:`read_serve` makes it."""

    host: str = parse.row(
        "127.0.0.1",
        parse.text,
        "text",
        "Address to listen on.",
        "Another one than loopback needs both tokens, or `insecure`.",
    )
    port: int = parse.row(4318, parse.port, "port", "Port of OTLP/HTTP, API, metrics and page.", "0: any free one.")
    grpc_port: int | None = parse.row(
        None,
        parse.optional_port,
        "port, none",
        "Port of OTLP/gRPC, usually 4317.",
        "None: no gRPC. Needs the extra `reach-otel[grpc]`.",
    )
    database: str = parse.row(
        "reach-otel.db",
        parse.text,
        "path",
        "SQLite file of the journal and of finished runs; made with mode 0600.",
        "Must be on a local disk: SQLite does not lock well over a network.",
    )
    ingest_token: str | None = parse.row(
        None,
        parse.token,
        "text",
        "Bearer token that senders of spans must show.",
        "None: anybody who reaches the port may send.",
        secret=True,
    )
    read_token: str | None = parse.row(
        None,
        parse.token,
        "text",
        "Bearer token for API, page and metrics; the page asks for it once.",
        "None: anybody who reaches the port may read.",
        secret=True,
    )
    insecure: bool = parse.row(
        False,
        parse.switch,
        "switch",
        "Start without tokens on an address that others can reach.",
        "On: who reaches the port can read and write everything.",
    )
    body_max: int = parse.row(
        8 * MIB, parse.count, "count", "Longest request body as it is sent.", "Longer: 413.", unit="bytes"
    )
    decompressed_max: int = parse.row(
        16 * MIB, parse.count, "count", "Longest request body once decompressed.", "Longer: 413.", unit="bytes"
    )
    spans_max: int = parse.row(
        20_000,
        parse.count,
        "count",
        "Most spans or log records in one request.",
        "More: 413; exporters send 512 at a time.",
        unit="spans",
    )
    body_seconds: float = parse.row(
        30.0, parse.seconds, "number", "Longest time to receive a body.", "Longer: 408.", unit="s"
    )
    inflight_bytes: int = parse.row(
        64 * MIB,
        parse.count,
        "count",
        "Bodies held at the same time, decompressed.",
        "Above it: 429 with Retry-After.",
        unit="bytes",
    )
    queue_spans: int = parse.row(
        16_384,
        parse.count,
        "count",
        "Spans that wait to be journalled and scored.",
        "Above it: 503 with Retry-After.",
        unit="spans",
    )
    queue_bytes: int = parse.row(
        16 * MIB,
        parse.count,
        "count",
        "The same in bytes of their bodies.",
        "Above it: 503 with Retry-After. More: more memory when senders are faster than the scorer.",
        unit="bytes",
    )
    connections_max: int = parse.row(
        1_000,
        parse.count,
        "count",
        "Open connections, also those that watch the page.",
        "Above it: 503.",
        unit="connections",
    )
    database_max: int = parse.row(
        4_096 * MIB,
        parse.count,
        "count",
        "Size of the database above which spans are no longer journalled.",
        "Scoring goes on; `/readyz` says so.",
        unit="bytes",
    )
    durable: bool = parse.row(
        False,
        parse.switch,
        "switch",
        "Flush the disk before each acknowledgement.",
        "Off: acknowledged spans survive the death of the process; on: also that of the machine, but slower.",
    )
    retention_days: float = parse.row(
        30.0, parse.seconds, "number", "How long finished runs are kept.", "0: none is kept.", unit="days"
    )
    rows_max: int = parse.row(100_000, parse.count, "count", "Finished runs kept.", "The oldest go first.", unit="runs")
    show_content: bool = parse.row(
        False,
        parse.switch,
        "switch",
        "Show arguments, results and error texts of steps in API and page, and keep them with finished runs.",
        "Off: they stand in the journal only, while the run is open.",
    )
    trace_url: str | None = parse.row(
        None,
        parse.trace_url,
        "URL",
        "Where a trace can be seen, with `{trace_id}` in it.",
        "None: the page shows no link to the trace.",
    )
    evaluations_endpoint: str | None = parse.row(
        None,
        partial(parse.url, token="REACH_SERVE_EVALUATIONS_TOKEN"),
        "URL",
        "Where final scores are sent (OTLP over HTTP), as events to `/v1/logs` and as spans to `/v1/traces` of it.",
        "None: they are in metrics and API only.",
    )
    evaluations_events: bool = parse.row(
        True,
        parse.switch,
        "switch",
        "Send the events too.",
        "Off: spans alone, for an address that takes no logs, where each event would count as failed.",
    )
    evaluations_token: str | None = parse.row(
        None,
        parse.token,
        "text",
        "Bearer token for `evaluations_endpoint`.",
        "None: they are sent without one.",
        secret=True,
    )

    @property
    def is_local(self) -> bool:
        """Say whether only this machine can reach the address."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False


TABLE: Final = Table(ServeSettings, PREFIX, is_service_link)


def read_serve(
    given: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None, file: str | Path | None = None
) -> tuple[ServeSettings, Settings]:
    """Read the settings of the service and those of scoring: ``given`` (flags) over the environment over ``file``.

    ``given`` and ``file`` (TOML) name settings of either table; ``queue_spans``, which both have, is the service's.

    :raises SettingsError: something is unknown or cannot be read, or the service would stand open to everybody.
    """
    environ = os.environ if environ is None else environ
    flags = _by_table(given or {}, "setting")
    below = _by_table(_read_file(file), f"setting in {file}") if file is not None else ({}, {})
    serve = TABLE.read(flags[0], environ, below[0])
    scoring = process.TABLE.read(flags[1], environ, below[1])
    refuse_if_open(serve)
    return serve, scoring


def serve_markdown() -> str:
    """Render the service's table for the README."""
    return TABLE.markdown()


def refuse_if_open(serve: ServeSettings) -> None:
    """Refuse to listen where others can reach it while a token is missing.

    :raises SettingsError: that is the case, and ``insecure`` is off.
    """
    missing = [name for name in ("ingest_token", "read_token") if getattr(serve, name) is None]
    if not missing or serve.is_local or serve.insecure:
        return
    variables = " and ".join(map(TABLE.variable, missing))
    raise SettingsError(
        f"host: found {serve.host!r}, which other machines can reach, without {' and '.join(missing)}; "
        f"set {variables}, or listen on 127.0.0.1, or accept the risk with --insecure"
    )


def _by_table(values: Mapping[str, Any], what: str) -> tuple[dict[str, Any], dict[str, Any]]:
    known = [*TABLE.rows, *process.TABLE.rows]
    for name in values:
        if name not in known:
            raise SettingsError(unknown(what, name, known))
    mine = {name: value for name, value in values.items() if name in TABLE.rows}
    return mine, {name: value for name, value in values.items() if name not in mine}


def _read_file(file: str | Path) -> dict[str, Any]:
    try:
        with Path(file).open("rb") as stream:
            return tomllib.load(stream)
    except OSError as error:
        raise SettingsError(f"{file}: it cannot be read ({error.strerror or error})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: found no TOML ({error}); want lines such as port = 4318") from None

"""Hold the settings of a scoring process, in one table, read from keyword arguments and ``REACH_*`` variables."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

from reach_otel.settings import parse
from reach_otel.settings.parse import PortRange, Setting
from reach_otel.settings.table import Table

PREFIX: Final = "REACH_"
OTHER_PREFIXES: Final = ("REACH_SERVE_", "REACH_TEST_")  # read by the service's own table, and by the tests

RunScope = Literal["trace", "agent", "conversation"]
OtlpProtocol = Literal["http", "grpc"]
OtlpSignal = Literal["traces", "logs"]

# Kubernetes sets such variables in every pod for each service of the namespace; one named "reach" is no setting.
_SERVICE_LINK = re.compile(r"_SERVICE_(HOST|PORT(_\w+)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?$")
_SERVICE_LINK_VALUE = re.compile(r"(tcp|udp|sctp)://")


@dataclass(frozen=True, slots=True)
class Settings:
    """Hold the settings of one process; :func:`read` makes it."""

    enabled: bool = parse.row(
        True,
        parse.switch,
        "switch",
        "Score runs at all.",
        "Off: nothing is attached, served or sent; the handle answers empty.",
    )
    tasks: tuple[str, ...] = parse.row(
        (),
        parse.paths,
        "paths",
        "Task files, or folders of `*.task.yaml`.",
        "None: every run counts as task `unmatched`.",
    )
    variant: str | None = parse.row(
        None,
        parse.variant,
        "name",
        "What is compared: the version of model, prompt or agent, for spans that do not say.",
        "None: `service.version`, else the model's name. Has the form of the names in `variants`.",
    )
    variants: tuple[str, ...] = parse.row(
        (),
        parse.variants,
        "names",
        "All variants that may show in metrics, beside that of a task file and `variant`.",
        "Given: any other counts as `other`. None: `reach.variant` or `service.version` of a resource counts under its "
        "own name if that has the form of one (1 to 64 letters, digits and `_.:/@+-`); `reach.variant` of a span too, "
        "but in a service only if a task file or `variant` names it; a model's name if the price table knows it; the "
        "rest as `other`.",
    )
    run_scope: RunScope = parse.row(  # noqa: RUF009 - a frozen value
        "trace",
        parse.scope,
        "trace, agent, conversation",
        "Which spans make one run.",
        "`agent`: one run for each top-level agent span; `conversation`: all traces with one conversation id.",
    )
    grace: float = parse.row(
        2.0,
        parse.seconds,
        "number",
        "Wait after the end of the root span.",
        "Longer: later verdicts, fewer late spans.",
        unit="s",
    )
    parent_wait: float = parse.row(
        30.0,
        parse.seconds,
        "number",
        "Silence after which a run whose outermost span was never seen is closed.",
        "Shorter: a slow caller's run may close before its end.",
        unit="s",
    )
    idle: float = parse.row(
        600.0,
        parse.seconds,
        "number",
        "Silence after which a run without an end counts as abandoned.",
        "Shorter than the longest tool call: runs are cut in two, the second half counted as late.",
        unit="s",
    )
    runs_max: int = parse.row(
        50_000,
        parse.count,
        "count",
        "Open runs kept.",
        "Above it the run that was idle longest is closed as `evicted`.",
        unit="runs",
    )
    actions_max: int = parse.row(
        1_000, parse.count, "count", "Actions kept of one run.", "Further ones are counted, not kept.", unit="actions"
    )
    finished_max: int = parse.row(
        1_000, parse.count, "count", "Finished runs that `score()` still knows.", "About 10 kB each.", unit="runs"
    )
    queue_spans: int = parse.row(
        8_192,
        parse.count,
        "count",
        "Ended spans waiting to be scored.",
        "Above it spans are dropped and counted; the agent never waits.",
        unit="spans",
    )
    condition_seconds: float = parse.row(
        0.1,
        parse.seconds,
        "number",
        "Time limit of one `verify: {python: ...}` call.",
        "A function that exceeds it three times is not called again.",
        unit="s",
    )
    redact: bool = parse.row(
        True,
        parse.switch,
        "switch",
        "Mask secrets and personal data before anything is stored, logged or exported by reach-otel.",
        "Off: values are kept as they came.",
    )
    capture_content: bool = parse.row(
        True,
        parse.switch,
        "switch",
        "Let hand instrumentation put arguments, results and messages on its spans.",
        "Off: conditions on `args` and `result` cannot hold.",
    )
    content_max: int = parse.row(
        65_536,
        parse.count,
        "count",
        "Longest argument, result or message that hand instrumentation puts on a span.",
        "The rest is cut off.",
        unit="characters",
    )
    metrics_port: PortRange | None = parse.row(  # noqa: RUF009 - a frozen value
        PortRange(9464, 9464),
        parse.ports,
        "port, range, none",
        "Where `/metrics` is served; of a range, the first free port.",
        "Pre-fork servers need a range: a port that is taken is logged, and this process serves no metrics.",
    )
    metrics_host: str = parse.row(
        "127.0.0.1", parse.text, "text", "Address that `/metrics` listens on.", "`0.0.0.0` lets other machines read it."
    )
    label_budget: int = parse.row(
        300,
        parse.count,
        "count",
        "Label sets of one metric for one task.",
        "Further ones are counted together, with the label value `overflow`.",
        unit="series",
    )
    flush_seconds: float = parse.row(
        5.0,
        parse.seconds,
        "number",
        "Longest wait for the last spans at exit and in `shutdown()`.",
        "The rest is lost.",
        unit="s",
    )
    endpoint: str | None = parse.row(
        None,
        partial(parse.url, token="REACH_TOKEN"),
        "URL",
        "A reach-otel service to send spans to (OTLP over HTTP), which then scores them.",
        "Set: this process does not score and serves no metrics.",
    )
    token: str | None = parse.row(
        None,
        parse.token,
        "text",
        "Bearer token for `endpoint`.",
        "None: spans are sent without one.",
        secret=True,
    )
    evaluations: bool = parse.row(
        True,
        parse.switch,
        "switch",
        "Emit each final score as a `gen_ai.evaluation.result` event and a `reach.evaluate` span in the run's trace.",
        "Off: scores are in metrics and API only. A service emits them where `evaluations_endpoint` says.",
    )


def is_foreign(variable: str, value: str) -> bool:
    """Say whether a variable that begins like ours is somebody else's."""
    return variable.startswith(OTHER_PREFIXES) or is_service_link(variable, value)


def is_service_link(variable: str, value: str) -> bool:
    """Say whether Kubernetes set a variable, for a service whose name begins like ours."""
    if _SERVICE_LINK.search(variable):
        return True
    return variable.endswith("_PORT") and _SERVICE_LINK_VALUE.match(value) is not None


TABLE: Final = Table(Settings, PREFIX, is_foreign)


def read(given: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings: ``given`` (keyword arguments) wins over the environment, and that over the defaults.

    :raises SettingsError: a name is unknown or a value cannot be read, in ``given`` or in any ``REACH_*`` variable.
    """
    return TABLE.read(given or {}, os.environ if environ is None else environ)


def table() -> dict[str, Setting]:
    """Return the rows by name, in the order in which they are documented."""
    return TABLE.rows


def variable_of(name: str) -> str:
    """Return the environment variable of a setting: ``run_scope`` -> ``REACH_RUN_SCOPE``."""
    return TABLE.variable(name)


def markdown() -> str:
    """Render the table for the README."""
    return TABLE.markdown()


def otlp_protocol(environ: Mapping[str, str] | None = None, *, signal: OtlpSignal = "traces") -> OtlpProtocol | None:
    """Tell whether the standard ``OTEL_*`` variables ask for an OTLP exporter of a signal, and over which protocol.

    Logs are to be asked for by name: behind an address for all signals there is often a store of traces only.
    """
    environ = os.environ if environ is None else environ
    name = signal.upper()
    exporters = {word.strip().lower() for word in environ.get(f"OTEL_{name}_EXPORTER", "").split(",")} - {""}
    addressed = environ.get(f"OTEL_EXPORTER_OTLP_{name}_ENDPOINT")
    if signal == "traces":
        addressed = addressed or environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    if exporters and not any(word.startswith("otlp") for word in exporters):
        return None
    if not exporters and not addressed:
        return None
    protocol = environ.get(f"OTEL_EXPORTER_OTLP_{name}_PROTOCOL") or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") or ""
    return "grpc" if protocol.strip().lower() == "grpc" or "otlp_proto_grpc" in exporters else "http"

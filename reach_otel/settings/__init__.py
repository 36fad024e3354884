"""Hold every setting in one table a process, and read it strictly.

Nothing else in the package reads the environment. A name that is unknown or a value that cannot be read raises
:class:`SettingsError` at start: a switch that was misspelt must not quietly mean its default.
"""

from reach_otel.settings.parse import PortRange, Setting
from reach_otel.settings.process import (
    OtlpProtocol,
    RunScope,
    Settings,
    markdown,
    otlp_protocol,
    read,
    table,
    variable_of,
)
from reach_otel.settings.serve import ServeSettings, read_serve, refuse_if_open, serve_markdown

__all__ = [
    "OtlpProtocol",
    "PortRange",
    "RunScope",
    "ServeSettings",
    "Setting",
    "Settings",
    "markdown",
    "otlp_protocol",
    "read",
    "read_serve",
    "refuse_if_open",
    "serve_markdown",
    "table",
    "variable_of",
]

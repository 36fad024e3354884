"""Read the generated dashboards as Grafana does; and say what may be missing, with the reason."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "dashboards" / "json"
RULES: Final = ROOT / "dashboards" / "prometheus" / "rules"

NOT_SHOWN: Final = {
    "process_virtual_memory_bytes": "what is reserved tells nothing about what is used; resident memory is shown",
    "python_gc_objects_collected_total": "Python's own; of use to who works on reach-otel, not to who runs it",
    "python_gc_objects_uncollectable_total": "as above",
    "python_gc_collections_total": "as above",
}
"""Metrics that are exposed and on no panel, and why."""

FOREIGN: Final = {
    "up": {"job", "instance"},
    "ALERTS": {"alertname", "alertstate", "severity", "task", "instance"},
    "process_cpu_seconds_total": {"job", "instance"},
    "process_resident_memory_bytes": {"job", "instance"},
    "process_open_fds": {"job", "instance"},
    "process_max_fds": {"job", "instance"},
    "process_start_time_seconds": {"job", "instance"},
    "otelcol_receiver_accepted_spans": {"job", "instance", "receiver", "transport"},
    "otelcol_receiver_refused_spans": {"job", "instance", "receiver", "transport"},
    "otelcol_exporter_queue_size": {"job", "instance", "exporter", "data_type"},
    "otelcol_exporter_queue_capacity": {"job", "instance", "exporter", "data_type"},
    "otelcol_exporter_send_failed_spans": {"job", "instance", "exporter"},
}
"""Metrics of Prometheus, of the process and of the Collector, with the labels that queries may use."""


class Query(NamedTuple):
    """One query of a panel."""

    board: str
    panel: str
    kind: str
    ref: str
    expr: str
    instant: bool
    exemplar: bool
    legend: str

    @property
    def name(self) -> str:
        return f"{self.board} / {self.panel} / {self.ref}"


def boards() -> dict[str, dict[str, Any]]:
    """Return the committed dashboards by file name."""
    return {path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}


def panels(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the panels that show something: not the headlines of rows."""
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def queries() -> list[Query]:
    """Return every query of every panel, and those of the marks on graphs."""
    return [query for board in boards().values() for query in _queries(board)]


def interpolate(text: str, values: Mapping[str, str]) -> str:
    """Put in the variables, the longest name first: ``$__rate_interval`` is no ``$__rate``."""
    for name in sorted(values, key=len, reverse=True):
        text = text.replace(f"${{{name}}}", values[name]).replace(f"${name}", values[name])
    return text


def rules() -> list[dict[str, Any]]:
    """Return every recording and alerting rule."""
    return [
        rule
        for path in sorted(RULES.glob("*.yml"))
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
        for rule in group["rules"]
    ]


def misfits(value: Any, hint: Any, where: str) -> Iterator[str]:
    """Yield what does not have the type that the SDK gives it, all the way down; enumerations are read as values."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(value, dict) and hasattr(hint, "from_json"):  # the SDK does not read all the way down
        value = hint.from_json(value)
    if origin in (typing.Union, types.UnionType):
        found = [list(misfits(value, option, where)) for option in arguments]
        if all(found):  # the option that goes deepest tells best what is wrong
            yield from max(found, key=lambda faults: max(len(fault.partition(": ")[0]) for fault in faults))
    elif origin is list and isinstance(value, list):
        for n, item in enumerate(value):
            yield from misfits(item, arguments[0], f"{where}[{n}]")
    elif origin is dict and isinstance(value, dict):
        for key, item in value.items():
            yield from misfits(item, arguments[1], f"{where}.{key}")
    elif not _is(value, hint):
        yield f"{where}: {value!r} is no {hint}"
    elif hasattr(value, "to_json"):
        for name, inner in typing.get_type_hints(type(value)).items():
            if hasattr(value, name):
                yield from misfits(getattr(value, name), inner, f"{where}.{name}")


def _is(value: Any, hint: Any) -> bool:
    if hint in (Any, object):
        return True
    if typing.get_origin(hint) is typing.Literal:
        return value in typing.get_args(hint)
    if not isinstance(hint, type):  # a list or dict, which this is not
        return False
    if issubclass(hint, Enum):
        return value in [member.value for member in hint]
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, hint)


def _queries(board: Mapping[str, Any]) -> Iterator[Query]:
    for panel in panels(board):
        for target in panel["targets"]:
            yield Query(
                board["uid"],
                panel["title"],
                panel["type"],
                target["refId"],
                target["expr"],
                target.get("instant", False),
                target.get("exemplar", False),
                target.get("legendFormat", ""),
            )
    for mark in board["annotations"]["list"]:
        yield Query(board["uid"], mark["name"], "annotation", "marks", mark["expr"], False, False, mark["titleFormat"])

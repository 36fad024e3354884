"""Divide every duration of a Prometheus or Alertmanager configuration, so that hours pass in minutes; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_UNITS_MS: Final = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
    "y": 31_536_000_000,
}
_PART: Final = re.compile(r"(\d+)(ms|[smhdwy])")
_DURATION: Final = re.compile(rf"(?:{_PART.pattern})+")

_TOKEN: Final = re.compile(
    r"""
      (?P<text> "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' | `[^`]*` )
    | (?P<comment> \#[^\n]* )
    | (?P<name> [A-Za-z_] [\w:]* )
    | (?P<number> 0[xX][0-9a-fA-F]+ | \d*\.\d+(?:[eE][+-]?\d+)? | \d+[eE][+-]?\d+ )
    | (?P<duration> (?:\d+(?:ms|[smhdwy]))+ (?!\w) )
    """,
    re.VERBOSE,
)

_DURATION_KEYS: Final = re.compile(r"(.*_)?(interval|timeout|wait|delay|offset|backoff|window)|for|keep_firing_for")
_EXPRESSION_KEY: Final = "expr"
# What stands in these is text for people, or is compared with text.
_TEXT_KEYS: Final = frozenset({"labels", "annotations", "external_labels", "params", "headers"})


def duration(text: str, factor: float) -> str:
    """Divide one duration: ``1m30s`` by 20 is ``4500ms``. What is not 0 stays at least a millisecond."""
    if text == "0":
        return text
    if not _DURATION.fullmatch(text):
        raise ValueError(f"found {text!r}, want a duration such as 1m30s")
    ms = sum(int(number) * _UNITS_MS[unit] for number, unit in _PART.findall(text))
    scaled = max(1, round(ms / factor)) if ms else 0
    return f"{scaled // 1000}s" if scaled % 1000 == 0 else f"{scaled}ms"


def expression(text: str, factor: float) -> str:
    """Divide the ranges, steps and offsets of a PromQL expression; names, label values and comments stay."""
    return _TOKEN.sub(
        lambda token: duration(token[0], factor) if token.lastgroup == "duration" else token[0],
        text,
    )


def configuration(node: Any, factor: float) -> Any:
    """Divide every duration in a loaded YAML document: rules, Prometheus' own configuration, or Alertmanager's."""
    if isinstance(node, Mapping):
        return {key: _value(str(key), value, factor) for key, value in node.items()}
    if isinstance(node, list):
        return [configuration(item, factor) for item in node]
    return node


def _value(key: str, value: Any, factor: float) -> Any:
    if key in _TEXT_KEYS:
        return value
    if isinstance(value, str) and key == _EXPRESSION_KEY:
        return expression(value, factor)
    if isinstance(value, str) and _DURATION_KEYS.fullmatch(key):
        return duration(value, factor)
    return configuration(value, factor)

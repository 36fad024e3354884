"""Parse text into values: JSON, JSON in JSON, and the reprs of Python containers."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

import msgspec

DEPTH_MAX = 64
REPR_CHARS_MAX = 20_000
NUMBER_CHARS_MAX = 15
"""A longer run of digits is an id, and stays text."""

_decode = msgspec.json.Decoder().decode
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_CONSTANTS = {"true": True, "false": False, "null": None}
_ODD_JSON = ("NaN", "Infinity")
_OBJECT = re.compile(r"^<[^<>]* object(?: at 0x[0-9a-fA-F]+)?>$")
_OBJECT_REPR = re.compile(r"^\[?[A-Za-z_][\w.]*\(\s*(?:[a-z_]\w*=|[\[{'\"<]|\))")
_HALF_JSON = re.compile(r"^\s*(?:\{\s*\"|\[\s*[\[{\"])")
_CLOSERS = {"{": "}", "[": "]"}

USUAL_LIMITS = frozenset(
    int(number)
    for number in (
        "128 255 256 500 512 1000 1024 2000 2048 4000 4095 4096 5000 8000 8192 10000 12000 12288 16000 16384 20000 "
        "32000 32766 32768 50000 64000 65535 65536 100000 128000 131072 200000 250000 256000 262144 500000 512000 "
        "524288 1000000 1048576"
    ).split()
)
"""Lengths at which exporters cut attributes; a text of just this length was cut by them, not by the tool."""


def parse(text: str) -> Any:
    """Give the value that a text holds, or the text itself where it holds none.

    Objects, lists, short numbers and the JSON constants are parsed, and so are Python reprs of containers; JSON inside
    a JSON string is unwrapped. What is nested deeper than :data:`DEPTH_MAX` stays text. Never raises.
    """
    if text[:1] == "{":  # by far the most frequent
        try:
            value = _decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            pass
        else:
            return text if _too_deep(value, text) else value
    for _ in range(4):
        stripped = text.strip() if text[:1].isspace() or text[-1:].isspace() else text
        first = stripped[:1]
        if first in ("{", "["):
            return _container(stripped, text)
        if first == '"':
            inner = _json(stripped)
            if not isinstance(inner, str):
                return text
            text = inner
            continue
        if first == "(":
            return _python(stripped, text)
        if stripped in _CONSTANTS:
            return _CONSTANTS[stripped]
        if len(stripped) <= NUMBER_CHARS_MAX and _NUMBER.fullmatch(stripped):
            return _json(stripped)
        break
    return text


def is_half_json(text: str) -> bool:
    """Tell whether this unparsable text is JSON of which the end is missing, cut by whoever wrote it."""
    if not _HALF_JSON.match(text) or len(text) in USUAL_LIMITS:
        return False
    stripped = text.strip()
    return not stripped.endswith(_CLOSERS[stripped[0]])


def is_object_repr(text: str) -> bool:
    """Tell whether a text is the repr of some Python object, which says nothing to a person: ``Name(field=…)``."""
    return _OBJECT_REPR.match(text) is not None


def is_opaque(value: Any) -> bool:
    """Tell whether a value is the default repr of an object (``<… object at 0x…>``), different in each run."""
    return type(value) is str and value[:1] == "<" and _OBJECT.match(value) is not None


def _container(stripped: str, text: str) -> Any:
    value = _json(stripped)
    if value is _FAILED:
        return _python(stripped, text)
    return text if _too_deep(value, stripped) else value


_FAILED: Any = object()


def _json(text: str) -> Any:
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    if any(word in text for word in _ODD_JSON):
        try:
            return json.loads(text, strict=False)
        except (ValueError, RecursionError):
            pass
    return _FAILED


def _python(stripped: str, text: str) -> Any:
    """Read the repr of a dict, list, tuple or set; only literals can come of it, nothing is executed."""
    if len(stripped) > REPR_CHARS_MAX or stripped[-1:] not in "}])" or stripped.count("[") > 2_000:
        return text
    try:
        value = ast.literal_eval(stripped)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
    if not isinstance(value, dict | list | tuple | set):
        return text
    return text if _too_deep(value, stripped) else _plain(value)


def _plain(value: Any) -> Any:
    """Turn what JSON does not know into what it does."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set):
        return [_plain(item) for item in sorted(value, key=repr)]
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value) if isinstance(value, complex) or value is ... else value


def _too_deep(value: Any, text: str) -> bool:
    if len(text) < 2 * DEPTH_MAX or text.count("{") + text.count("[") + text.count("(") <= DEPTH_MAX:
        return False
    level: list[Any] = [value]
    for _ in range(DEPTH_MAX):
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list | tuple)
        ]
        if not level:
            return False
    return True

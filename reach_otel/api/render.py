"""Render any Python value as bounded text or JSON, whatever the value does when it is looked at."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import json
import math
import numbers
import uuid
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import PurePath
from typing import Any, Final

DEPTH_MAX: Final = 12
NODES_MAX: Final = 5_000
INT_BITS_MAX: Final = 1_024  # Python refuses to print integers of more than about 14,000 bits
CUT: Final = "…"

_PRINTED = (dt.date, dt.time, dt.timedelta, decimal.Decimal, uuid.UUID, PurePath)


def text_of(value: Any, chars_max: int) -> str:
    """Return text as it is and everything else as JSON, cut to ``chars_max`` characters; never raise."""
    if isinstance(value, str):
        return _clean(_cut(value, chars_max))
    return json_of(value, chars_max)


def json_of(value: Any, chars_max: int) -> str:
    """Return valid JSON of about at most ``chars_max`` characters; never raise.

    Too long texts and too many items are cut *inside* the value, so that the JSON stays whole. Objects that are no data
    are shown by their ``repr``; iterators are not touched.
    """
    try:
        plain = _Plain(chars_max).of(value, DEPTH_MAX)
        return _clean(json.dumps(plain, ensure_ascii=False, separators=(",", ":")))
    except Exception:  # noqa: BLE001 - the agent's call must not fail because its argument cannot be shown
        return json.dumps(_label(value))


class _Plain:
    """Turn a value into dicts, lists and scalars while characters and nodes last."""

    __slots__ = ("chars", "nodes")

    def __init__(self, chars_max: int) -> None:
        self.chars = chars_max
        self.nodes = NODES_MAX

    def of(self, value: Any, depth: int) -> Any:
        self.nodes -= 1
        kind = type(value)
        if kind is str:
            return self._text(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return value if value.bit_length() <= INT_BITS_MAX else _label(value)
        if kind is float:
            return value if math.isfinite(value) else self._text(repr(value))
        if depth == 0 or self.nodes <= 0 or self.chars <= 0:
            return CUT
        try:
            return self._compound(value, depth - 1)
        except Exception:  # noqa: BLE001 - a property or __repr__ of the application may do anything
            return _label(value)

    def _compound(self, value: Any, depth: int) -> Any:
        if isinstance(value, enum.Enum):
            return self.of(value.value, depth)
        if isinstance(value, str):
            return self._text(str.__str__(value))
        if isinstance(value, Mapping):
            return self._dict(value.items(), depth)
        if isinstance(value, list | tuple | AbstractSet):
            return self._list(value, depth)
        if isinstance(value, bytes | bytearray | memoryview):
            return f"<{len(value)} bytes>"
        if isinstance(value, _PRINTED):
            return self._text(str(value))
        if isinstance(value, numbers.Integral):  # NumPy's among them
            return self.of(int(value), depth)
        if isinstance(value, numbers.Real):
            return self.of(float(value), depth)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._dict(((field.name, getattr(value, field.name)) for field in dataclasses.fields(value)), depth)
        dump: Callable[[], Any] | None = getattr(value, "model_dump", None)  # Pydantic, and what follows its lead
        if dump is not None and not isinstance(value, type):
            return self.of(dump(), depth)
        return self._text(repr(value))

    def _dict(self, items: Any, depth: int) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for key, item in items:
            if self.nodes <= 0 or self.chars <= 0:
                break
            name = self._text(key if isinstance(key, str) else str(key))
            shown[name] = self.of(item, depth)
        return shown

    def _list(self, items: Any, depth: int) -> list[Any]:
        shown: list[Any] = []
        for item in items:
            if self.nodes <= 0 or self.chars <= 0:
                shown.append(CUT)
                break
            shown.append(self.of(item, depth))
        return shown

    def _text(self, text: str) -> str:
        shown = _cut(text, max(self.chars, 0))
        self.chars -= len(shown)
        return shown


def _cut(text: str, chars_max: int) -> str:
    return text if len(text) <= chars_max else text[:chars_max] + CUT


def _clean(text: str) -> str:
    """Replace lone surrogates, which no exporter can encode."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _label(value: Any) -> str:
    return f"<{type(value).__name__}>"

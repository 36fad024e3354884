"""Compile dotted paths into values of calls and results."""

from __future__ import annotations

import re
from typing import Any, Final

PATH_CHARS_MAX = 500


class _Missing:
    """Stand for a value that is not there, as opposed to one that is null."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Missing()

_PART = re.compile(r"""\.?([^.\[\]\s'"][^.\[\]]*)|\[(-?[0-9]{1,9})\]|\[(?:"([^"]*)"|'([^']*)')\]""")


class Path:
    """Find one value: ``a.b``, ``items[0].id``, ``[0]``, ``["key.with.dots"]``; ``.`` is the whole value.

    An index below 0 counts from the end of a list. Equal texts make equal paths.
    """

    __slots__ = ("_first", "_rest", "parts", "text")

    def __init__(self, text: str) -> None:
        """Raise ``ValueError`` for a text that is no path."""
        self.text = text
        self.parts = parse_path(text)
        self._first = self.parts[0] if self.parts and isinstance(self.parts[0], str) else None
        self._rest = self.parts[1:]

    def get(self, value: Any) -> Any:
        """Give the value at this path in ``value``, or :data:`MISSING`; null is a value."""
        if self._first is None:
            return _walk(value, self.parts)
        if not isinstance(value, dict):
            return MISSING
        value = value.get(self._first, MISSING)
        return _walk(value, self._rest) if self._rest else value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Path) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)

    def __repr__(self) -> str:
        return f"Path({self.text!r})"


def parse_path(text: str) -> tuple[str | int, ...]:
    """Split a path into keys (str) and list places (int); raise ``ValueError`` where it cannot be read."""
    if text == ".":
        return ()
    if not text or len(text) > PATH_CHARS_MAX:
        raise ValueError(f"a path has 1 to {PATH_CHARS_MAX} characters, such as record.items[0].id")
    parts: list[str | int] = []
    place = 0
    while place < len(text):
        found = _PART.match(text, place)
        if found is None or (found[1] is not None and (text[place] == ".") is not bool(parts)):
            raise ValueError(f"bad path {text!r} at character {place + 1}; write it like record.items[0].id")
        name, index, double, single = found.groups()
        parts.append(int(index) if index is not None else next(x for x in (name, double, single) if x is not None))
        place = found.end()
    return tuple(parts)


def _walk(value: Any, parts: tuple[str | int, ...]) -> Any:
    for part in parts:
        if isinstance(part, str):
            if not isinstance(value, dict):
                return MISSING
            value = value.get(part, MISSING)
        else:
            if not isinstance(value, (list, tuple)) or not -len(value) <= part < len(value):
                return MISSING
            value = value[part]
    return value

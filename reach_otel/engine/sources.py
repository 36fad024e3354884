"""Know where values came from: which texts and results held a value, and since when (SPEC 7.1, 7.2)."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from reach_otel.engine.action import FOREVER_NS

DEPTH_MAX = 16
LEAVES_MAX = 2_000  # scalars read from one value; more than that is a data dump, not an answer
VALUE_CHARS_MAX = 256  # a longer string is free text, not a value that somebody passes on
TEXT_CHARS_MAX = 65_536  # of one text; the rest is not searched
TOKENS_MAX = 50_000  # of one run

# Scripts written without spaces (CJK, kana, hangul, full-width forms) bound a token as punctuation does.
_SPACELESS = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_LETTERS = rf"[^\W{_SPACELESS}]+"
_TOKEN = re.compile(rf"{_LETTERS}(?:[-.@+]{_LETTERS})*")
_SCALARS = frozenset((str, int, float, bool))
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?\Z")


def canonical(value: object) -> str | None:
    """Spell a scalar so that equal values are equal strings: trimmed text, numbers by value (``3``, ``3.0``, ``"3"``).

    Returns ``None`` for what is no scalar or says nothing (null, the empty string).
    """
    if isinstance(value, str):
        if value.isalnum():
            return value
        text = value.strip()
        if "." in text and (text[0].isdigit() or text[0] == "-") and _NUMBER.match(text):
            return _trim_zeros(text)
        return text or None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else _trim_zeros(repr(value))
    return None


def _trim_zeros(number: str) -> str:
    return number.rstrip("0").rstrip(".") if "." in number and "e" not in number else number


def is_trivial(value: object) -> bool:
    """Say whether a value is too common to prove anything: booleans, short numbers and strings (SPEC 7.2)."""
    if isinstance(value, bool):
        return True
    if isinstance(value, int | float):
        return abs(value) < 100
    if isinstance(value, str):
        text = value.strip()
        return len(text) < 3 or (bool(_NUMBER.match(text)) and abs(float(text)) < 100)
    return True


def leaves(value: object, key: str = "") -> list[tuple[str, Any]]:
    """List the scalars of a parsed value as ``(key, scalar)``; the items of a list bear the key of the list.

    About :data:`LEAVES_MAX` scalars at most, down to :data:`DEPTH_MAX` levels. Nulls are left out.
    """
    found: list[tuple[str, Any]] = []
    _collect(value, key, found, 0)
    return found


def _collect(value: object, key: str, found: list[tuple[str, Any]], depth: int) -> None:
    if isinstance(value, dict):
        if depth < DEPTH_MAX and len(found) < LEAVES_MAX:
            for name, item in value.items():
                if type(item) in _SCALARS:
                    found.append((name, item))
                elif item is not None:
                    _collect(item, name if isinstance(name, str) else str(name), found, depth + 1)
    elif isinstance(value, list | tuple):
        if depth < DEPTH_MAX and len(found) < LEAVES_MAX:
            for item in value:
                if type(item) in _SCALARS:
                    found.append((key, item))
                elif item is not None:
                    _collect(item, key, found, depth + 1)
    elif value is not None:
        found.append((key, value))


def tokens(text: str) -> list[str]:
    """Split free text into whole tokens: ``SKU-7``, ``a@b.com`` and ``129.99`` are one each; numbers are canonical."""
    return [_trim_zeros(t) if "." in t and _NUMBER.match(t) else t for t in _TOKEN.findall(text[:TEXT_CHARS_MAX])]


def contains(text: str, value: str) -> bool:
    """Say whether ``value`` stands in ``text`` as a whole, not as a part of a longer token."""
    return _find(text[:TEXT_CHARS_MAX], value, 0) >= 0


def without(text: str, value: str) -> str:
    """Cut ``value`` out of ``text`` wherever it stands as a whole."""
    kept: list[str] = []
    begin = 0
    while (at := _find(text, value, begin)) >= 0:
        kept.append(text[begin:at])
        begin = at + len(value)
    return " ".join((*kept, text[begin:]))


def _find(text: str, value: str, begin: int) -> int:
    """Return where ``value`` next stands as a whole, -1 if nowhere."""
    at = text.find(value, begin)
    while at >= 0:
        end = at + len(value)
        if not (_joined(text, at - 1, at) or _joined(text, end, end - 1)):
            break
        at = text.find(value, at + 1)
    return at


def _joined(text: str, outside: int, inside: int) -> bool:
    """Say whether the characters on both sides of a border belong to one token."""
    if not 0 <= outside < len(text) or not _is_letter(text[inside]):
        return False
    char = text[outside]
    if char in "-.@+":
        further = outside + (outside - inside)
        return 0 <= further < len(text) and _is_letter(text[further])
    return _is_letter(char)


def _is_letter(char: str) -> bool:
    return bool(_TOKEN.match(char))


class Sources:
    """Remember every text and result of a run with the time from which the agent could know it.

    Whole values of results are looked up directly; the tokens of free text are indexed once a value was not found so,
    since most arguments are passed on verbatim. Each text is indexed once, whatever the length of the run.
    """

    __slots__ = ("_indexed", "_phrased", "_phrases", "_tokens", "_values", "earliest_ns")

    def __init__(self) -> None:
        self._values: dict[str, int] = {}
        self._tokens: dict[str, int] = {}
        self._phrases: list[tuple[int, str]] = []
        self._phrased: dict[str, int] = {}  # texts among them that came as a value, and since when
        self._indexed = 0
        self.earliest_ns: int | None = None  # no source at all: nothing can be judged

    def add_text(self, text: str, at_ns: int, *, tells: bool = True) -> None:
        """Add free text that could be read from ``at_ns`` on; one that does not ``tell`` makes nothing judgeable."""
        if text and len(self._phrases) < TOKENS_MAX:
            self._phrases.append((at_ns, text))
            if tells:
                self._note(at_ns)

    def add_result(self, result: object, at_ns: int, *, invented: Collection[str] = (), tells: bool = True) -> None:
        """Add the scalars of a result; a result that is plain text is searched as text.

        What the call itself had ``invented`` is left out: an echo does not make a value true.
        """
        if result is None:
            return
        if tells:
            self._note(at_ns)
        values = self._values
        room = len(values) < TOKENS_MAX and len(self._phrases) < TOKENS_MAX
        for _, leaf in leaves(result):
            value = leaf if type(leaf) is str and leaf.isalnum() else canonical(leaf)  # most are plain words
            if value is None or value in invented:
                continue
            for made_up in invented:
                value = without(value, made_up)
            seen_ns = values.get(value)
            if seen_ns is None:
                if room and len(value) <= VALUE_CHARS_MAX:
                    values[value] = at_ns
            elif at_ns < seen_ns:
                values[value] = at_ns
            # A text may be known as a value, or from later on, and still bring its tokens now.
            if room and type(leaf) is str and not value.isalnum() and at_ns < self._phrased.get(value, FOREVER_NS):
                self._phrased[value] = at_ns
                self._phrases.append((at_ns, value))

    def trust(self, value: str, at_ns: int) -> None:
        """Accept a canonical value which could not be judged, so that its next use is no surprise either."""
        self._keep(self._values, value, at_ns)

    def knows(self, value: str, at_ns: int) -> bool:
        """Say whether a canonical value was in any source by ``at_ns``: as a value, or as a whole token of a text."""
        seen_ns = self._values.get(value)
        if seen_ns is not None and seen_ns <= at_ns:
            return True
        if self._indexed < len(self._phrases):
            self._index()
        if value.isascii() and value.isalnum():  # one token
            return self._tokens.get(value, at_ns + 1) <= at_ns
        parts = tokens(value)
        if any(self._tokens.get(part, at_ns + 1) > at_ns for part in parts):
            return False
        if len(parts) == 1 and not any(map(str.isalnum, value.replace(parts[0], "", 1))):
            return True  # the very token, or one with punctuation around it, like "#W2378156"
        return any(ns <= at_ns and contains(text, value) for ns, text in self._phrases)

    def _index(self) -> None:
        for ns, text in self._phrases[self._indexed :]:
            for token in tokens(text):
                self._keep(self._tokens, token, ns)
        self._indexed = len(self._phrases)

    def _note(self, at_ns: int) -> None:
        if self.earliest_ns is None or at_ns < self.earliest_ns:
            self.earliest_ns = at_ns

    @staticmethod
    def _keep(index: dict[str, int], value: str, at_ns: int) -> None:
        seen_ns = index.get(value)
        if seen_ns is None:
            if len(index) < TOKENS_MAX:
                index[value] = at_ns
        elif at_ns < seen_ns:
            index[value] = at_ns

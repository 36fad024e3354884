"""Read YAML or JSON text into plain values that remember on which line each of them stands."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

import yaml

from reach_otel.errors import Problem, TaskError

BYTES_MAX = 1 << 20
DEPTH_MAX = 64
VALUES_MAX = 50_000  # after aliases are expanded: a few nested anchors must not become millions of values

Location: TypeAlias = tuple[str | int, ...]

_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # resolves nothing: every plain scalar stays text

# YAML 1.2 core schema: "no", "on" and dates stay text, "010" is ten.
_INT = re.compile(r"[-+]?[0-9]+")
_RADIX = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_DIGITS_MAX = 400  # a longer number is no number anyone meant, and slow to convert


@dataclass(slots=True)
class Source:
    """Plain values of one file with the line of every key and list item."""

    file: str
    value: Any = None
    lines: dict[Location, int] = field(default_factory=dict)

    def line_of(self, where: Location) -> int:
        """Give the line of the deepest part of ``where`` that the text has; parts it does not have are skipped."""
        found: Location = ()
        for part in where:
            if (*found, part) in self.lines:
                found = (*found, part)
        return self.lines.get(found, 1)


class _Fault(Exception):
    """Carry a message and its line out of the recursion."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


def read_source(text: str, file: str) -> Source:
    """Parse ``text``; names that end in ``.json`` are read as JSON, all else as YAML 1.2.

    Raises :class:`TaskError` when the text is over :data:`BYTES_MAX`, is not well-formed, repeats a key, nests deeper
    than :data:`DEPTH_MAX` or grows over :data:`VALUES_MAX` values.
    """
    source = Source(file)
    try:
        if len(text.encode("utf-8", "surrogatepass")) > BYTES_MAX:
            raise _Fault(0, f"larger than {BYTES_MAX} bytes, the most a task file may have")
        if file.lower().endswith(".json"):
            source.value = _read_json(text)
            source.lines = _lines_of_json(text)
        else:
            builder = _Builder()
            source.value = builder.root(_compose(text))
            source.lines = builder.lines
    except _Fault as fault:
        raise TaskError(Problem(file, fault.line, fault.message)) from None
    return source


def _compose(text: str) -> Any:
    """Give the root node, or ``None`` for an empty text; what could hurt is refused before anything recurses."""
    try:
        _check_events(text)
        return yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark: Any = error.problem_mark or error.context_mark
        context = f" {error.context}" if error.context else ""
        line = min(mark.line, text.count("\n")) + 1 if mark else 0  # the end may be marked one line too far
        raise _Fault(line, f"not valid YAML:{context} {error.problem}") from None
    except yaml.reader.ReaderError as error:
        raise _Fault(text.count("\n", 0, error.position) + 1, f"not valid YAML: {error.reason}") from None


def _check_events(text: str) -> None:
    """Refuse deep nesting, tags and a second document before anything recurses over them."""
    depth = documents = 0
    event: Any
    for event in yaml.parse(text, Loader=_LOADER):
        line = event.start_mark.line + 1
        if getattr(event, "tag", None) is not None:
            raise _Fault(line, f"tag {event.tag!r} is not allowed; write plain values, and quotes around text")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEPTH_MAX:
                raise _Fault(line, f"nests deeper than {DEPTH_MAX} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise _Fault(line, "a second document starts here; write one task a file")


class _Builder:
    """Turn nodes into values, count what aliases make of them, and note lines."""

    def __init__(self) -> None:
        self.lines: dict[Location, int] = {}
        self._left = VALUES_MAX
        self._open: set[int] = set()

    def root(self, node: Any) -> Any:
        if node is None:
            return None
        self.lines[()] = node.start_mark.line + 1
        return self._value(node, ())

    def _value(self, node: Any, where: Location) -> Any:
        line = node.start_mark.line + 1
        self._left -= 1
        if self._left < 0:
            raise _Fault(line, f"grows over {VALUES_MAX} values once its aliases are expanded")
        if isinstance(node, yaml.ScalarNode):
            return node.value if node.style else _plain(node.value, line)
        if id(node) in self._open:
            raise _Fault(line, "an anchor holds itself")
        self._open.add(id(node))
        value = self._list(node, where) if isinstance(node, yaml.SequenceNode) else self._mapping(node, where)
        self._open.discard(id(node))
        return value

    def _list(self, node: Any, where: Location) -> list[Any]:
        values = []
        for index, item in enumerate(node.value):
            self.lines[*where, index] = item.start_mark.line + 1
            values.append(self._value(item, (*where, index)))
        return values

    def _mapping(self, node: Any, where: Location) -> dict[str, Any]:
        values: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise _Fault(line, "a key must be text")
            key = key_node.value
            if key == "<<" and not key_node.style:
                self._merge(value_node, where, merged)
                continue
            if key in values:
                raise _Fault(line, f'key "{key}" stands twice, first in line {self.lines[*where, key]}')
            self.lines[*where, key] = line
            values[key] = self._value(value_node, (*where, key))
        return {**merged, **values} if merged else values

    def _merge(self, node: Any, where: Location, into: dict[str, Any]) -> None:
        """Take the keys of one mapping, or of a list of mappings (earlier ones win), as ``<<`` asks."""
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for each in nodes:
            if not isinstance(each, yaml.MappingNode):
                raise _Fault(node.start_mark.line + 1, "<< takes a mapping or a list of mappings")
            own, self.lines = self.lines, {}
            value = self._value(each, where)
            self.lines = {**self.lines, **own}
            into.update({key: item for key, item in value.items() if key not in into})


def reads_as_text(text: str) -> bool:
    """Tell whether text that stands unquoted in YAML is read as that text."""
    try:
        return isinstance(_plain(text, 0), str)
    except _Fault:
        return False


def _plain(text: str, line: int) -> Any:
    """Read an unquoted scalar by the core schema of YAML 1.2."""
    if text in _WORDS:
        return _WORDS[text]
    if _NOT_FINITE.fullmatch(text):
        raise _Fault(line, f"{text} is not a number that anything can equal; write a finite one, or quote it")
    if text[0] not in "+-.0123456789" or len(text) > _DIGITS_MAX:
        return text
    if _INT.fullmatch(text):
        return int(text)
    if _RADIX.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if not math.isfinite(number):
            raise _Fault(line, f"{text} is too large for a number")
        return number
    return text


def _read_json(text: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            names = [key for key, _ in pairs]
            twice = next(key for key in names if names.count(key) > 1)
            raise _Fault(_second_line(text, twice), f'key "{twice}" stands twice in one object')
        return values

    def finite(word: str) -> NoReturn:
        raise _Fault(text.count("\n", 0, max(0, text.find(word))) + 1, f"{word} is not a number JSON knows")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=finite)
    except json.JSONDecodeError as error:
        raise _Fault(error.lineno, f"not valid JSON: {error.msg}") from None
    except RecursionError:
        raise _Fault(0, f"nests deeper than {DEPTH_MAX} levels") from None
    except ValueError as error:  # an integer of thousands of digits
        raise _Fault(0, f"not valid JSON: {error}") from None


def _second_line(text: str, key: str) -> int:
    """Guess where a repeated key stands: its second appearance as a key."""
    places = [found.start() for found in re.finditer(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:", text)]
    return text.count("\n", 0, places[1]) + 1 if len(places) > 1 else 0


def _lines_of_json(text: str) -> dict[Location, int]:
    """Take lines from a YAML reading, as JSON text nearly always is YAML too; where it is not, lines stay unknown.

    Tabs, which well-formed JSON has outside strings only, and escaped surrogates are errors in YAML.
    """
    builder = _Builder()
    try:
        builder.root(_compose(_SURROGATE.sub("\\\\u0020", text.replace("\t", " "))))
    except _Fault as fault:
        if "nests deeper" in fault.message:
            raise
    return builder.lines

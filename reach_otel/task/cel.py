"""Compile, check and evaluate CEL expressions over one step."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from reach_otel.task.path import MISSING, Path

if TYPE_CHECKING:
    from cel import Context, Program

VARIABLES: Final = ("tool", "args", "result", "text", "agent", "duration", "attributes", "run")

_TYPES = frozenset(
    ("bool", "bytes", "double", "duration", "int", "list", "map", "null_type", "string", "timestamp", "type", "uint")
)
_FUNCTIONS = (
    "bytes contains double duration dyn endsWith getDate getDayOfMonth getDayOfWeek getDayOfYear getFullYear getHours "
    "getMilliseconds getMinutes getMonth getSeconds int matches size startsWith string timestamp type uint"
).split()
_OPERATOR = re.compile(r"[^A-Za-z]")  # _+_, !_, @in: how the library names operators

_TOKEN = re.compile(
    r"""//[^\n]*|\s+
    |(?P<text>[rRbB]{0,2}(?:"{3}(?:\\.|[^\\])*?"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    |(?P<number>0x[0-9A-Fa-f]+u?|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?u?)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<sign>&&|\|\||[=!<>]=|.)""",
    re.VERBOSE | re.DOTALL,
)
_MACRO = re.compile(r"\.\s*(?:all|exists|exists_one|existsOne|map|filter)\s*\(\s*([A-Za-z_]\w*)\s*,")
_PATHS_MAX = 32
_END: Final = ("end", None)


def check_expression(source: str) -> str:
    """Give ``source`` back once it compiles, knows its names and is not constant of a wrong type."""
    compile_expression(source)
    return source


class Expression:
    """A compiled expression with what it mentions.

    ``variables`` are names of :data:`VARIABLES`; ``members`` the only members of a variable that it looks at (without
    an entry, all of it); ``constants`` its text and number literals; ``tools`` the literals it compares ``tool`` with;
    ``constant`` its value when it mentions no variable, else ``None``.
    """

    __slots__ = ("_paths", "_program", "constant", "constants", "members", "source", "tools", "variables")

    def __init__(self, source: str, program: Program, variables: tuple[str, ...]) -> None:
        tokens = _tokens(source)
        self.source = source
        self.variables = variables
        self.constants = tuple(value for kind, value in tokens if kind == "literal")
        self.tools = tuple(_tools(tokens))
        self.constant: bool | None = None
        self.members = {name: found for name in variables if (found := _members(tokens, name)) is not None}
        self._program = program
        self._paths = _paths(tokens)

    def evaluate(self, context: Context) -> Any:
        """Run it; raises whatever the library raises, see :meth:`lacks`."""
        return self._program.execute(context)

    def lacks(self, values: Mapping[str, Any]) -> bool:
        """Tell whether a path that the expression spells out leads nowhere (or through null) in ``values``."""
        return any(path.get(values) in (MISSING, None) for path in self._paths)


@lru_cache(maxsize=1024)
def compile_expression(source: str) -> Expression:
    """Compile; raise ``ValueError`` for bad syntax, an unknown variable or function, or a constant that is no bool."""
    import cel  # noqa: PLC0415 - slow to import: only for tasks that use CEL

    try:
        program = cel.compile(source)
    except Exception as error:  # noqa: BLE001 - the library may raise anything on bad text
        raise ValueError(f"bad CEL {source!r}: {_syntax_message(error)}") from None
    bare = _without_literals(source)
    bound = set(_MACRO.findall(bare))
    for name in program.variables():
        if name not in VARIABLES and name not in bound and name not in _TYPES:
            raise ValueError(f'CEL knows no variable "{name}"; {_allowed(name, VARIABLES)}')
    for name in program.functions():
        if not _OPERATOR.match(name) and name not in _FUNCTIONS:
            raise ValueError(f'CEL knows no function "{name}"; {_allowed(name, _FUNCTIONS)}')
    variables = tuple(name for name in VARIABLES if name in program.variables())
    expression = Expression(source, program, variables)
    if not variables:
        expression.constant = _constant(source, program)
    return expression


def _constant(source: str, program: Program) -> bool:
    try:
        value = program.execute({})
    except Exception as error:  # noqa: BLE001 - or on a bad operation
        raise ValueError(f"CEL {source!r} always fails: {error}") from None
    if not isinstance(value, bool):
        raise ValueError(f"CEL {source!r} is always {value!r}; a condition must be true or false")
    return value


def _allowed(name: str, names: tuple[str, ...] | list[str]) -> str:
    near = get_close_matches(name, names, n=1)
    hint = f'; did you mean "{near[0]}"?' if near else ""
    return f"allowed: {', '.join(names)}{hint}"


def _syntax_message(error: Exception) -> str:
    """Keep the first message of the parser, without the drawing below it."""
    text = str(error)
    found = re.search(r"ERROR: <input>:(\d+):(\d+): ([^\n]*)", text)
    if found is None:
        return text.splitlines()[0][:300] if text else type(error).__name__
    message = found[3].split(" expecting {")[0].removeprefix("Syntax error: ")
    return f"character {found[2]}: {message[:200]}"


def _without_literals(source: str) -> str:
    return "".join(
        '""' if token["text"] else " " if token[0].startswith("//") else token[0] for token in _TOKEN.finditer(source)
    )


def _tokens(source: str) -> list[tuple[str, Any]]:
    """Split into ("literal", value), ("name", text) and ("sign", text)."""
    tokens: list[tuple[str, Any]] = []
    for token in _TOKEN.finditer(source):
        kind = token.lastgroup
        if kind in ("text", "number"):
            value = _literal(token[0])
            if value is not None:
                tokens.append(("literal", value))
        elif kind is not None:
            tokens.append((kind, token[0]))
    return tokens


def _literal(text: str) -> str | int | float | None:
    """Read a literal by asking CEL itself; bytes are no value a call can have."""
    import cel  # noqa: PLC0415 - as above

    try:
        value = cel.evaluate(text)
    except Exception:  # noqa: BLE001 - what is no literal to CEL is none here
        return None
    return value if isinstance(value, (str, int, float)) else None


def _tools(tokens: list[tuple[str, Any]]) -> list[str]:
    """Find text literals in ``tool == "a"``, ``"a" == tool`` and ``tool in ["a", "b"]``."""
    tools: list[Any] = []
    for place, token in enumerate(tokens):
        if token != ("name", "tool") or (place and tokens[place - 1] == ("sign", ".")):
            continue
        after = tokens[place + 1 : place + 3]
        before = tokens[max(0, place - 2) : place]
        if len(after) == 2 and after[0] == ("sign", "==") and after[1][0] == "literal":
            tools.append(after[1][1])
        elif len(before) == 2 and before[1] == ("sign", "==") and before[0][0] == "literal":
            tools.append(before[0][1])
        elif after == [("name", "in"), ("sign", "[")]:
            for kind, value in tokens[place + 3 :]:
                if (kind, value) == ("sign", "]"):
                    break
                if kind == "literal":
                    tools.append(value)
    return [tool for tool in tools if isinstance(tool, str)]


def _members(tokens: list[tuple[str, Any]], name: str) -> frozenset[str] | None:
    """Find the members of a variable that are looked at; ``None`` where it is used as a whole."""
    members = set()
    for place, token in enumerate(tokens):
        if token != ("name", name) or (place and tokens[place - 1] == ("sign", ".")):
            continue
        sign, (sort, member), follows = [*tokens[place + 1 : place + 4], _END, _END, _END][:3]
        dotted = sign == ("sign", ".") and sort == "name" and follows != ("sign", "(")
        keyed = sign == ("sign", "[") and sort == "literal" and follows == ("sign", "]")
        if not dotted and not keyed:
            return None
        members.add(member)
    return frozenset(members) if all(isinstance(member, str) for member in members) else None


def _paths(tokens: list[tuple[str, Any]]) -> tuple[Path, ...]:
    """Find member paths such as ``result.items[0].id``; the name of a called method is no part of one."""
    paths = []
    for place, (kind, value) in enumerate(tokens):
        if kind != "name" or value not in VARIABLES or (place and tokens[place - 1] == ("sign", ".")):
            continue
        text, at = value, place + 1
        while at + 1 < len(tokens):
            sign, (sort, part) = tokens[at], tokens[at + 1]
            follows = tokens[at + 2] if at + 2 < len(tokens) else None
            if sign == ("sign", ".") and sort == "name" and follows != ("sign", "("):
                text, at = f'{text}["{part}"]', at + 2
            elif sign == ("sign", "[") and sort == "literal" and follows == ("sign", "]") and '"' not in str(part):
                text, at = f'{text}["{part}"]' if isinstance(part, str) else f"{text}[{part}]", at + 3
            else:
                break
        try:
            paths.append(Path(text))
        except ValueError:  # an index that is no whole number, or a text too long: no use as a hint
            continue
    return tuple(paths[:_PATHS_MAX])

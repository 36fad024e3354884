"""Read one table of settings, a frozen dataclass of rows, from keyword arguments and environment variables."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Final, Generic, TypeVar

from reach_otel.errors import SettingsError
from reach_otel.settings.parse import Hidden, Setting

T = TypeVar("T")


class Table(Generic[T]):
    """Know the rows of a dataclass by name, and the variable of each: prefix and name in capitals.

    ``foreign`` tells variables that begin like ours and belong to somebody else from misspelt ones.
    """

    def __init__(self, kind: type[T], prefix: str, foreign: Callable[[str, str], bool]) -> None:
        fields: Any = dataclasses.fields(kind)  # type: ignore[arg-type]
        self._kind = kind
        self._foreign = foreign
        self._defaults = kind()
        self.prefix: Final = prefix
        self.rows: Final[dict[str, Setting]] = {field.name: field.metadata["setting"] for field in fields}

    def variable(self, name: str) -> str:
        """Return the environment variable of a setting."""
        return self.prefix + name.upper()

    def read(self, given: Mapping[str, Any], environ: Mapping[str, str], below: Mapping[str, Any] | None = None) -> T:
        """Read all settings: ``given`` wins over ``environ``, that over ``below`` (a file), and that over the defaults.

        :raises SettingsError: a name is unknown or a value cannot be read.
        """
        values = {**self._checked(below or {}), **self._from(environ), **self._checked(given)}
        return self._kind(**values)

    def _from(self, environ: Mapping[str, str]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for variable, text in sorted(environ.items()):
            if not variable.startswith(self.prefix):
                continue
            name = variable.removeprefix(self.prefix).lower()
            if name in self.rows and variable == self.variable(name):
                values[name] = _parse(variable, self.rows[name], text, f"unset it for the default ({self.shown(name)})")
            elif not self._foreign(variable, text):
                raise SettingsError(unknown("environment variable", variable, [*map(self.variable, self.rows)]))
        return values

    def _checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, value in given.items():
            if name not in self.rows:
                raise SettingsError(unknown("setting", name, list(self.rows)))
            values[name] = _parse(name, self.rows[name], value, f"leave it out for the default ({self.shown(name)})")
        return values

    def shown(self, name: str) -> str:
        """Spell the default of a setting."""
        default = getattr(self._defaults, name)
        if isinstance(default, bool):
            return str(default).lower()
        if isinstance(default, float):
            return f"{default:g}"
        return "none" if default is None or default == () else str(default)

    def markdown(self) -> str:
        """Render the table for the README."""
        lines = [
            "| setting | variable | type | default | what it does | consequence |",
            "|---|---|---|---|---|---|",
        ]
        for name, row in self.rows.items():
            kind = f"{row.kind} ({row.unit})" if row.unit else row.kind
            shown = self.shown(name)
            lines.append(
                f"| `{name}` | `{self.variable(name)}` | {kind} | `{shown}` | {row.help} | {row.consequence} |"
            )
        return "\n".join(lines) + "\n"


def unknown(what: str, name: str, known: list[str]) -> str:
    """Say that a name is unknown, and which one was probably meant."""
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
    return f"{name}: unknown {what}; {hint}"


def _parse(name: str, row: Setting, value: Any, remedy: str) -> Any:
    try:
        return row.parse(value)
    except ValueError as exc:
        found = "a value that is not shown" if row.secret or isinstance(exc, Hidden) else repr(value)
        raise SettingsError(f"{name}: found {found}, want {exc}; {remedy}") from None

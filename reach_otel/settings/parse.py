"""Read single values of settings: each parser takes text or a Python value and says what it wants instead."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from reach_otel import names

PORT_MAX: Final = 65_535

_TRUE = frozenset(("1", "true", "yes", "on"))
_FALSE = frozenset(("0", "false", "no", "off"))
_NONE = frozenset(("", "none", "off"))
_VARIANT = re.compile(names.VARIANT_FORM)
_TRACE = "http://localhost:16686/trace/{trace_id}"


class Hidden(ValueError):
    """Say what is wanted instead of a value that must not be shown, as it may hold a secret."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Describe one row of the table; ``parse`` takes text or a Python value and raises ``ValueError``."""

    kind: str
    unit: str
    help: str
    consequence: str
    parse: Callable[[Any], Any]
    secret: bool = False


@dataclass(frozen=True, slots=True)
class PortRange:
    """Ports from ``first`` to ``last``, both included; one port is a range of one."""

    first: int
    last: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"

    def ports(self) -> range:
        return range(self.first, self.last + 1)


def text(value: Any) -> str:
    """Read a text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a text that is not empty")
    return value.strip()


def optional_text(value: Any) -> str | None:
    """Read a text, or none."""
    return None if value is None or value == "" else text(value)


def token(value: Any) -> str | None:
    """Read a bearer token, or none."""
    found = optional_text(value)
    if found is not None and not (found.isascii() and found.isprintable() and " " not in found):
        raise Hidden("a token of ASCII characters without blanks and control characters, as a header carries it")
    return found


def switch(value: Any) -> bool:
    """Read true or false, in the words that people use."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and (word := value.strip().lower()) in _TRUE | _FALSE:
        return word in _TRUE
    raise ValueError("true or false")


def count(value: Any) -> int:
    """Read a whole number from 1 up."""
    if isinstance(value, str) and re.fullmatch(r"\s*\d[\d_]*\s*", value):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise ValueError("a whole number from 1 up")


def seconds(value: Any) -> float:
    """Read a number from 0 up, of seconds or what the row says."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            value = None
    if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value >= 0:
        return float(value)
    raise ValueError("seconds, a number from 0 up")


def scope(value: Any) -> str:
    """Read what makes a run."""
    if value not in ("trace", "agent", "conversation"):
        raise ValueError("trace, agent or conversation")
    return str(value)


def ports(value: Any) -> PortRange | None:
    """Read ``None``, ``9464``, ``"9464"``, ``"9464-9479"`` or ``"none"``; port 0 lets the system choose."""
    if value is None or isinstance(value, PortRange):
        return value
    if isinstance(value, str) and value.strip().lower() in _NONE:
        return None
    found = None if isinstance(value, bool) else re.fullmatch(r"\s*(\d{1,5})(?:\s*-\s*(\d{1,5}))?\s*", str(value))
    if found:
        first, last = int(found[1]), int(found[2] or found[1])
        if first <= last <= PORT_MAX and (first or not last):
            return PortRange(first, last)
    raise ValueError('a port (9464), a range of ports ("9464-9479") or "none"')


def paths(value: Any) -> tuple[str, ...]:
    """Read one path, a sequence of paths, or (from the environment) paths with the system's separator between."""
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(part for part in value.split(os.pathsep) if part)
    if isinstance(value, Path):
        return (str(value),)
    if isinstance(value, Iterable):
        paths = tuple(value)
        if all(isinstance(path, str | Path) for path in paths):
            return tuple(map(str, paths))
    raise ValueError(f"files or folders, with {os.pathsep!r} between them in the environment")


def variants(value: Any) -> tuple[str, ...]:
    """Read names of variants: a sequence, or a text with commas between them."""
    if value is None:
        return ()
    given = tuple(value.split(",") if isinstance(value, str) else value if isinstance(value, Iterable) else (value,))
    if all(isinstance(name, str) for name in given):
        found = tuple(dict.fromkeys(name.strip() for name in given if name.strip()))
        if all(map(_is_variant, found)):
            return found
    raise ValueError(f"names with commas between them, each of {names.VARIANT_WORDS}, and none {names.OVERFLOW!r}")


def variant(value: Any) -> str | None:
    """Read the name of one variant, or none."""
    if value is None or value == "":
        return None
    if isinstance(value, str) and _is_variant(value.strip()):
        return value.strip()
    raise ValueError(f"a name of {names.VARIANT_WORDS}, such as prompt-v2, and not {names.OVERFLOW!r}")


def _is_variant(name: str) -> bool:
    return _VARIANT.fullmatch(name) is not None and name != names.OVERFLOW


def url(value: Any, *, token: str = "the setting for it") -> str | None:
    """Read the address of a server, or none; ``token`` says where a token belongs, since none is taken here."""
    if value is None or value == "":
        return None
    example = "such as http://localhost:4318"
    address = _address(value, example, f"give a token by {token} instead")
    if "?" in address or "#" in address:
        raise Hidden(f"an http:// or https:// address without ? and #, {example}")
    return address.rstrip("/")


def _address(value: Any, example: str, instead: str) -> str:
    """Read an address. It is shown to people, so nothing that could be a password is taken, or shown when refused."""
    if not isinstance(value, str):
        raise Hidden(f"a text, {example}")
    address = text(value)
    trouble = Hidden if any(mark in address for mark in "@?#") else ValueError
    if " " in address or not address.isprintable():
        raise trouble(f"an address without blanks and control characters, {example}")
    try:
        parts = urlsplit(address)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # its words would repeat the address
        is_one = False
    if not is_one:
        raise trouble(f"an http:// or https:// address, {example}")
    if "@" in parts.netloc:
        raise Hidden(f"an address without user name and password, {example}; {instead}")
    return address


def port(value: Any) -> int:
    """Read one port; 0 lets the system choose."""
    number = int(value) if isinstance(value, str) and value.strip().isdecimal() else value
    if isinstance(number, int) and not isinstance(number, bool) and 0 <= number <= PORT_MAX:
        return number
    raise ValueError("a port, such as 4318")


def optional_port(value: Any) -> int | None:
    """Read one port, or none."""
    if value is None or (isinstance(value, str) and value.strip().lower() in _NONE):
        return None
    return port(value)


def trace_url(value: Any) -> str | None:
    """Read an address with a place for the trace id; it becomes a link on the page."""
    if value is None or value == "":
        return None
    address = _address(value, f"such as {_TRACE}", "whoever looks at a trace signs in there")
    if "{trace_id}" not in address:
        raise ValueError(f"an http:// or https:// address with {{trace_id}} in it, such as {_TRACE}")
    return address


def row(
    default: Any,
    parse: Callable[[Any], Any],
    kind: str,
    help: str,  # noqa: A002 - the word of the table
    consequence: str,
    *,
    unit: str = "",
    secret: bool = False,
) -> Any:
    """Declare one row of a table; ``secret`` values are never shown."""
    setting = Setting(kind, unit, help, consequence, parse, secret)
    return dataclasses.field(default=default, metadata={"setting": setting}, repr=not secret)

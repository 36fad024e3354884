"""Print for people: one console for results, one for messages, and text of foreign origin made harmless."""

from __future__ import annotations

import sys
import unicodedata
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

PIPE_WIDTH: Final = 160
"""Columns of a table when the output is no terminal and ``COLUMNS`` does not say."""
_WIDTH_UNKNOWN: Final = 80  # what rich takes then


def out() -> Console:
    """Make a console on standard output."""
    return _console(stderr=False)


def err() -> Console:
    """Make a console on standard error: messages and progress, so that results can be piped on."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    # rich is imported here and not above: --help and --version must not pay for it.
    from rich.console import Console  # noqa: PLC0415

    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal and console.width == _WIDTH_UNKNOWN:
        console.width = PIPE_WIDTH
    return console


def plain(value: object, length_max: int = 200) -> str:
    """Make a text that came out of a span fit to print: no control or bidirectional characters, one line, bounded."""
    text = str(value)[: length_max + 1]
    text = "".join(" " if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} else c for c in text)
    return text if len(text) <= length_max else text[: length_max - 1] + "…"


def cell(value: object, style: str = "", length_max: int = 200) -> Text:
    """Wrap a value for a table so that nothing in it is read as markup; ``None`` shows as a dash."""
    from rich.text import Text  # noqa: PLC0415

    return Text("–", "dim") if value is None else Text(plain(value, length_max), style)


def ratio(value: float | None) -> str | None:
    """Show a ratio with three digits; ``None`` stays ``None``."""
    return None if value is None else f"{value:.3f}"


def share(value: float | None) -> str | None:
    """Show a ratio in per cent."""
    return None if value is None else f"{value * 100:.0f} %"


def fail(message: str) -> None:
    """Print one clear message on standard error."""
    print(f"reach-otel: {message}", file=sys.stderr)

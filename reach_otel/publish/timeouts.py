"""Tell from its text whether an error was a timeout."""

from __future__ import annotations

import re
from typing import Final

_TIMEOUT: Final = re.compile(
    r"time[ds]?[ _-]?out|deadline[ _-]?exceeded|\b(?:http|status)\D{0,8}(?:408|504)\b|took too long|超时", re.IGNORECASE
)


def is_timeout(error: str | None) -> bool:
    """Tell whether an error text speaks of a timeout."""
    return error is not None and _TIMEOUT.search(error) is not None

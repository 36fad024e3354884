"""Tell where a run timed out, from the errors of its calls and of its root."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from reach_otel.engine.events import RunClosed

STAGES: Final = ("tool", "retries", "model", "run")

_TIMEOUT: Final = re.compile(
    # One word, also in a name: "ReadTimeout", "ETIMEDOUT", "request_timeout", "TimeoutError"; no "runtimeoutput".
    r"(?i:timed?out)(?:(?![A-Za-z])|(?<=t)(?=[A-Z])|(?i:s(?![a-z])|error|exception|expired))"
    # Two words: "timed out", "time-out"; no "runtime outcome", and no "at this time out of stock".
    r"|(?i:(?<![a-z])(?:timed|times?(?![ _-]out[ _-]of\b))[ _-]out(?![a-z]))"
    r"|(?i:deadline[ _-]?exceeded|\b(?:http|status)\D{0,8}(?:408|504)\b|took too long|超时)"
)


def is_timeout(error: str | None) -> bool:
    """Tell whether an error text speaks of a timeout."""
    return error is not None and _TIMEOUT.search(error) is not None


def timeouts(closed: RunClosed) -> Iterator[str]:
    """Yield the stage of each timeout of a run: one for each call, or ``run`` where only the root speaks of one."""
    found = False
    for action in closed.actions:
        if not action.ok and action.kind != "handoff" and is_timeout(action.error):
            found = True
            yield "retries" if action.retry else "tool"
    for call in closed.models:
        if not call.ok and is_timeout(call.error):
            found = True
            yield "model"
    root = closed.root
    if not found and root is not None and not root.ok and is_timeout(root.error):
        yield "run"

"""Log once that there are runs which are counted and not scored, so that nobody looks for their scores in vain."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from reach_otel import names
from reach_otel.engine.events import Counted

if TYPE_CHECKING:
    from reach_otel.engine.events import Event

IN_PROCESS: Final = "a run that was under way when instrument() was called is not scored: call it earlier"
IN_SERVICE: Final = (
    "a run that was under way when this scorer began, or soon after without a root, is not scored, as a part of it may "
    f"be elsewhere; {names.SCORER_INCOMPLETE_RUNS_TOTAL} counts these"
)

logger = logging.getLogger(__name__)


class Notice:
    """Log a text at the first run of which a part may be elsewhere. It names nothing that a span says."""

    def __init__(self, text: str, level: int) -> None:
        self._text = text
        self._level = level
        self._is_told = False

    def publish(self, events: Sequence[Event]) -> None:
        """Look for such a run until there was one."""
        if not self._is_told and any(isinstance(event, Counted) and event.what == "incomplete" for event in events):
            self._is_told = True
            logger.log(self._level, self._text)

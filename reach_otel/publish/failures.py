"""Count what could not be told of verdicts, on any thread, and log it now and then."""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter as Tally
from collections.abc import Callable
from typing import Final

from reach_otel.clock import Seldom

STAGE: Final = "evaluation"

logger = logging.getLogger(__name__)


class Failures:
    """Count failures in the tally that ``errors`` gives: one for each span and each event.

    Of an exception only its kind is told: its text may hold what a server answered.
    """

    def __init__(self, errors: Callable[[], Tally[str]]) -> None:
        self._errors = errors
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._may_log = Seldom()

    def __call__(self, error: Exception | None, n: int = 1) -> None:
        if self._pid != os.getpid():  # in a forked child the lock may be held by a thread that did not come along
            self._pid, self._lock = os.getpid(), threading.Lock()
        with self._lock:
            errors = self._errors()
            errors[STAGE] += n
            number, is_logged = errors[STAGE], self._may_log()
        if is_logged:
            why = "not taken" if error is None else type(error).__name__
            logger.warning("fault no. %d at %s: %s; scoring goes on", number, STAGE, why)

"""Run Python conditions of users with a time limit, so that one that hangs does not stop the scoring."""

from __future__ import annotations

import ctypes
import logging
import queue
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from reach_otel.task.condition import CallTimeout

TIMEOUTS_MAX: Final = 3

logger = logging.getLogger(__name__)


class TimedCalls:
    """Call functions on a helper thread and give up on one that takes longer than ``seconds`` (0: no limit).

    A function that ran out of time ``TIMEOUTS_MAX`` times is not called again: each further call is a timeout at once.
    Made to be the ``call`` of :func:`reach_otel.task.load`, for one calling thread.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._helper: _Helper | None = None
        self._timeouts: Counter[str] = Counter()

    def __call__(self, function: Callable[[Any, Any], Any], run: Any, view: Any) -> Any:
        """Return ``function(run, view)`` or raise what it raises.

        :raises CallTimeout: it took too long, now or too often before.
        """
        if not self._seconds:
            return function(run, view)
        name = f"{getattr(function, '__module__', '?')}:{getattr(function, '__qualname__', repr(function))}"
        if self._timeouts[name] >= TIMEOUTS_MAX:
            raise CallTimeout(f"{name} is no longer called")
        helper = self._helper
        if helper is None or not helper.thread.is_alive():  # dead: this is a forked child
            helper = self._helper = _Helper()
        try:
            return helper.ask(function, run, view, self._seconds)
        except queue.Empty:
            self._helper = None
            helper.give_up()
        self._timeouts[name] += 1
        if self._timeouts[name] == TIMEOUTS_MAX:
            logger.warning(
                "Python condition %s exceeded %g s %d times and is not called again", name, self._seconds, TIMEOUTS_MAX
            )
        raise CallTimeout(f"{name} took longer than {self._seconds:g} s")

    def close(self) -> None:
        """Let the helper thread end; the next call would start another."""
        if self._helper is not None:
            self._helper.end()
            self._helper = None


class _Helper:
    """A thread that makes one call after the other."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Callable[[Any, Any], Any], Any, Any] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self._given_up = False
        self.thread = threading.Thread(target=self._work, name="reach-otel-conditions", daemon=True)
        self.thread.start()

    def ask(self, function: Callable[[Any, Any], Any], run: Any, view: Any, seconds: float) -> Any:
        """Return the answer, or raise ``queue.Empty`` when there was none in time."""
        self._calls.put((function, run, view))
        value, error = self._answers.get(timeout=seconds)
        if error is not None:
            raise error
        return value

    def end(self) -> None:
        """Let the thread end after the call it is at."""
        self._calls.put(None)

    def give_up(self) -> None:
        """Let the thread end, by force if it runs Python code: one that spins would slow the agent for ever."""
        self._given_up = True
        self.end()
        if self.thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.thread.ident), ctypes.py_object(SystemExit))

    def _work(self) -> None:
        with suppress(SystemExit):  # of give_up(), when the call came back just before it
            self._answer_calls()

    def _answer_calls(self) -> None:
        while (call := self._calls.get()) is not None:
            function, run, view = call
            try:
                answer: tuple[Any, BaseException | None] = (function(run, view), None)
            except Exception as exc:  # noqa: BLE001 - it belongs to who asked
                answer = (None, exc)
            except BaseException as exc:  # noqa: BLE001 - sys.exit() in a condition must not end the scoring
                if self._given_up:
                    return
                answer = (None, RuntimeError(f"a condition raised {type(exc).__name__}"))
            self._answers.put(answer)

"""Hold one process of the stack: start it with its output in a file, wait until it is ready, end it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

READY_SECONDS: Final = 60.0
STOP_SECONDS: Final = 20.0
LOOK_SECONDS: Final = 0.05
LAST_LINES: Final = 15
FOREIGN_PREFIXES: Final = ("REACH_", "OTEL_")
DIRECT: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Opens addresses of this machine, whatever proxy the environment names."""


class StackError(Exception):
    """Say why the stack cannot start or go on."""


class Stopped(Exception):
    """Say that somebody asked the stack to stop while it was starting."""


class Part:
    """A process of the stack.

    It has a session of its own: Ctrl-C reaches the stack alone, which then ends its parts in good order. ``is_ready``
    is asked again and again after a start; ``None`` means ready as soon as it runs.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        *,
        env: Mapping[str, str] | None = None,
        is_ready: Callable[[], bool] | None = None,
        inherits: Sequence[int] = (),
    ) -> None:
        self.name = name
        self.command = [str(word) for word in command]
        self.log = log
        self.started_at = 0.0
        """Monotonic time of the last start, in seconds."""
        self._env = env or {}
        self._is_ready = is_ready
        self._inherits = tuple(inherits)
        self._process: subprocess.Popen[bytes] | None = None
        self._wanted = False

    @property
    def pid(self) -> int | None:
        """Return the id of the process; ``None`` before the first start."""
        return None if self._process is None else self._process.pid

    @property
    def runs(self) -> bool:
        """Say whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process; its output is added to the log."""
        if self.runs:
            raise StackError(f"{self.name} runs already")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**clean_environment(), **self._env},
                start_new_session=True,
                pass_fds=self._inherits,
            )
        self.started_at = time.monotonic()
        self._wanted = True

    def wait(self, asked: Callable[[], bool] = lambda: False) -> None:
        """Wait until it is ready.

        :raises StackError: it ended, or is not ready in time.
        :raises Stopped: ``asked`` says that nobody wants to wait any more.
        """
        if self._is_ready is not None:
            self.wait_for(self._is_ready, "it to be ready", asked)
        self.check()

    def wait_for(self, condition: Callable[[], bool], what: str, asked: Callable[[], bool] = lambda: False) -> None:
        """Wait until something is true that this process brings about; raises as :meth:`wait` does."""
        deadline = time.monotonic() + READY_SECONDS
        while not condition():
            self.check()
            if asked():
                raise Stopped
            if time.monotonic() > deadline:
                raise StackError(f"{self.name}: waited {READY_SECONDS:.0f} s in vain for {what}\n{self.last_words()}")
            time.sleep(LOOK_SECONDS)

    def check(self) -> None:
        """Raise :class:`StackError` with its last lines when it ended and was not told to."""
        if self._wanted and self._process is not None and (code := self._process.poll()) is not None:
            self._wanted = False
            how = f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
            raise StackError(f"{self.name} ended by itself ({how})\n{self.last_words()}")

    def reload(self) -> None:
        """Tell it to read its configuration again."""
        if self._process is not None:
            self._process.send_signal(signal.SIGHUP)

    def stop(self) -> None:
        """Ask it to end, and wait; after some time it is killed."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once, as the system does when memory runs out."""
        self._end(signal.SIGKILL)

    def last_words(self) -> str:
        """Return the last lines of its log, with the path of the log."""
        lines = self.log.read_text(errors="replace").splitlines()[-LAST_LINES:] if self.log.exists() else []
        return "\n".join([f"the last lines of {self.log}:", *(f"  {line}" for line in lines or ["(nothing)"])])

    def _end(self, how: signal.Signals) -> None:
        self._wanted = False
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(how)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def answers(url: str) -> Callable[[], bool]:
    """Return a question: whether an address answers with 200."""

    def ask() -> bool:
        try:
            with DIRECT.open(url, timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    return ask


def says(log: Path, text: str) -> Callable[[], bool]:
    """Return a question: whether a text stands in a log."""
    return lambda: log.exists() and text in log.read_text(errors="replace")


def clean_environment() -> dict[str, str]:
    """Return the environment without settings of ours and of OpenTelemetry, and with no proxy before this machine.

    So a part has only the settings that the stack gives it.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN_PREFIXES)}
    for name in ("no_proxy", "NO_PROXY"):
        kept[name] = ",".join(filter(None, [kept.get(name), "127.0.0.1", "localhost"]))
    return kept

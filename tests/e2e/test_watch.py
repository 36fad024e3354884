"""Watch a real service in a terminal, through its restart, and leave with Ctrl-C."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import reach_otel.demo
from tests.support.otlp import Trace
from tests.support.service import JSON, Served

pytestmark = pytest.mark.e2e

TASK = Path(reach_otel.demo.__file__).with_name("ticket.task.yaml")
PATIENCE_SECONDS = 60.0


class Terminal:
    """A terminal in which ``watch`` runs; what it has drawn is in :attr:`drawn`."""

    def __init__(self, address: str) -> None:
        self._ours, theirs = pty.openpty()
        self.watch = subprocess.Popen(
            [sys.executable, "-m", "reach_otel.cli.main", "watch", address],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"},
            close_fds=True,
        )
        os.close(theirs)
        self.drawn = ""

    def until(self, *words: str) -> None:
        """Read what is drawn from now on until all these words were among it."""
        self.drawn = ""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not all(word in self.drawn for word in words):
            assert time.monotonic() < deadline, f"waited in vain for {words}: {self.drawn[-2_000:]}"
            if not self._read():
                break
        assert all(word in self.drawn for word in words), self.drawn[-2_000:]

    def _read(self) -> bool:
        if select.select([self._ours], [], [], 0.5)[0]:
            try:
                self.drawn += os.read(self._ours, 65_536).decode(errors="replace")
            except OSError:  # the other end is closed
                return False
        return True

    def interrupt(self) -> int:
        self.watch.send_signal(signal.SIGINT)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._read() and self.watch.poll() is None and time.monotonic() < deadline:
            pass
        return self.watch.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        self.watch.kill()
        self.watch.wait()
        os.close(self._ours)


def send(service: Served, trace: Trace) -> None:
    assert service.ask("POST", "/v1/traces", trace.line().encode(), JSON)[0] == 200


def test_a_service_is_watched_through_its_restart(tmp_path: Path) -> None:
    """Runs show while they run and when they end; a gap is said and mended; Ctrl-C leaves a clean terminal."""
    flags = ("--task", str(TASK), "--set", "grace=0.2")
    with Served(tmp_path, *flags) as first:
        terminal = Terminal(first.address)
        try:
            terminal.until("No run yet", "live")
            trace = Trace("watched", agent="ticket-agent")
            trace.call("read_ticket", {"ticket_id": "T-1"}, {"status": "ok", "record": {"ticket_id": "T-1"}})
            send(first, trace)
            terminal.until("ticket-handling", "Running", "read_ticket")
            first.kill()
            terminal.until("not connected: trying again")
            with Served(tmp_path, *flags, port=first.port) as second:
                terminal.until("live")
                send(second, trace.end(user="Please handle ticket T-1.", says="Sorry."))
                terminal.until("Finished", "failed")
            assert terminal.interrupt() == 0
            assert "\x1b[?1049l" in terminal.drawn
            assert "Traceback" not in terminal.drawn
        finally:
            terminal.close()

"""Start ``reach-otel serve`` as a process of its own, as a user does, and talk to it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

PATIENCE_SECONDS: Final = 60.0
JSON: Final = {"Content-Type": "application/json"}
PROTOBUF: Final = {"Content-Type": "application/x-protobuf"}


class Served:
    """A running service; a context manager that ends it."""

    def __init__(self, folder: Path, *flags: str, env: dict[str, str] | None = None, port: int = 0) -> None:
        self.folder = folder
        self.database = folder / "reach-otel.db"
        command = [sys.executable, "-m", "reach_otel.cli.main", "serve", "--port", str(port)]
        command += ["--database", str(self.database), *flags]
        self.process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.said: list[str] = []
        self.address = ""
        self.grpc = ""
        self._listening = threading.Event()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        if not self._listening.wait(PATIENCE_SECONDS) or not self.address:
            self.kill()
            raise AssertionError("the service did not start:\n" + "".join(self.said))

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)
            if found := re.search(r"reach-otel is at (http://[^/]+)/", line):
                self.address = found[1]
            if found := re.search(r"over gRPC to (\S+)", line):
                self.grpc = found[1]
            if "kept in" in line:
                self._listening.set()
        self._listening.set()

    def kill(self) -> None:
        """End it at once, as the system does when memory runs out."""
        self.process.kill()
        self._ended()

    def stop(self, sig: int = signal.SIGTERM) -> int:
        """Ask it to end, and give its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(sig)
        try:
            self.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
        return self._ended()

    def _ended(self) -> int:
        code = self.process.wait()
        self._listener.join(PATIENCE_SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def connect(self, timeout_seconds: float = PATIENCE_SECONDS) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_seconds)

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Send one request on a connection of its own; gives status, headers (names in lower case) and body."""
        connection = self.connect()
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """Give the JSON of an address."""
        status, _, body = self.ask("GET", path)
        assert status in (200, 503), (status, body)
        return json.loads(body)

    def metrics(self) -> dict[str, float]:
        """Give the sums of all samples by name."""
        _, _, body = self.ask("GET", "/metrics")
        sums: dict[str, float] = {}
        for line in body.decode().splitlines():
            if not line.startswith("#"):
                name = re.split(r"[{ ]", line, maxsplit=1)[0]
                sums[name] = sums.get(name, 0.0) + float(
                    line.split("} ")[-1].split(" ")[0] if "}" in line else line.split()[1]
                )
        return sums

    def until(self, condition: Any, what: str, patience_seconds: float = PATIENCE_SECONDS) -> None:
        """Wait for something to become true."""
        deadline = time.monotonic() + patience_seconds
        while not condition():
            assert self.process.poll() is None, "the service ended:\n" + "".join(self.said[-30:])
            assert time.monotonic() < deadline, f"waited in vain for {what}"
            time.sleep(0.05)

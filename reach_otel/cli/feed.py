"""Follow a service's runs over its event stream, through breaks of the line."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import httpx2

from reach_otel.errors import InputError, StateError
from reach_otel.publish.exporters import bearer
from reach_otel.settings import parse

SILENCE_SECONDS: Final = 45.0  # three heartbeats of the service
ANSWER_SECONDS: Final = 10.0
PAUSES_SECONDS: Final = (0.5, 1.0, 2.0, 5.0)
OPEN_MAX: Final = 200
FINISHED_MAX: Final = 30
EVENT_BYTES_MAX: Final = 4 << 20

Take = Callable[[str, dict[str, Any]], None]


class Feed:
    """Read the stream on a thread of its own, and hand each event to ``take``: its name and its data.

    It starts with the runs there are, as if they had just been told: ``closed`` ones from early to late, then ``run``
    ones, after a ``reset`` without data. The same comes again when the stream could not be taken up where it broke.
    """

    def __init__(self, url: str, take: Take, *, token: str | None = None, task: str | None = None) -> None:
        """Reach for the service once.

        :raises InputError: ``url`` is no address of a service.
        :raises StateError: nothing answers there, or it wants a token.
        """
        self._take = take
        self._task = task
        self.is_live = False
        self._ended = threading.Event()
        self._last_id = ""
        address = _read("URL", partial(parse.url, token="--token or REACH_SERVE_READ_TOKEN"), url)
        token = _read("--token", parse.token, token)
        headers = bearer(token)
        try:
            self._client = httpx2.Client(base_url=address or "", headers=headers, timeout=ANSWER_SECONDS)
            if not self._client.base_url.host:
                raise httpx2.InvalidURL("no address")
        except (httpx2.InvalidURL, ValueError):  # the latter from what only begins like an address
            raise InputError(f"URL: found {url!r}, want the address of a service, as http://127.0.0.1:4318") from None
        try:
            self._reach()
        except BaseException:
            self._client.close()
            raise
        self._thread = threading.Thread(target=self._follow, name="reach-otel-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop following."""
        self._ended.set()
        self._client.close()

    def _reach(self) -> None:
        url = self._client.base_url
        try:
            answer = self._client.get("/api/runs", params={"limit": 1})
            known = answer.status_code == 200 and isinstance(answer.json().get("runs"), list)
        except httpx2.TransportError as error:
            raise StateError(f"nothing answers at {url} ({type(error).__name__}); is the service running?") from None
        except (ValueError, AttributeError):
            known = False
        if answer.status_code == 401:
            raise StateError(f"{url} asks for the token for reading; give it with --token or REACH_SERVE_READ_TOKEN")
        if not known:
            raise StateError(f"{url} is no reach-otel service that can be watched (it answered {answer.status_code})")

    def _follow(self) -> None:
        failures = 0
        while not self._ended.is_set():
            try:
                self._listen()
                failures = 0
            except (httpx2.HTTPError, httpx2.StreamError, ValueError, RuntimeError):
                failures += 1  # the service is away or restarts; it says so by not answering
            self.is_live = False
            self._ended.wait(PAUSES_SECONDS[min(failures, len(PAUSES_SECONDS) - 1)])

    def _listen(self) -> None:
        """Read events until the line breaks."""
        timeout = httpx2.Timeout(ANSWER_SECONDS, read=SILENCE_SECONDS)
        headers = {"Last-Event-ID": self._last_id} if self._last_id else {}
        with self._client.sse(
            "/api/events", headers=headers, timeout=timeout, max_event_size=EVENT_BYTES_MAX
        ) as stream:
            stream.response.raise_for_status()
            if not self._last_id:
                self._look()
            self.is_live = True
            for event in stream:
                if self._ended.is_set():
                    return
                self._last_id = event.id or self._last_id
                if event.event == "reset":
                    self._look()
                elif event.data:
                    self._tell(event.event, event.json())

    def _look(self) -> None:
        """Tell the runs there are."""
        self._take("reset", {})
        for event, live, limit in (("closed", "false", FINISHED_MAX), ("run", "true", OPEN_MAX)):
            asked = {"live": live, "limit": str(limit), **({"task": self._task} if self._task else {})}
            answer = self._client.get("/api/runs", params=asked).raise_for_status()
            for run in reversed(answer.json()["runs"]):
                self._tell(event, run)

    def _tell(self, event: str, data: Any) -> None:
        if isinstance(data, dict) and (self._task is None or data.get("task", self._task) == self._task):
            self._take(event, data)


def _read(name: str, read: Callable[[Any], str | None], value: str | None) -> str | None:
    """Read an argument as a setting of its kind, and refuse it without showing what may be a secret."""
    try:
        return read(value)
    except ValueError as error:
        found = "a value that is not shown" if isinstance(error, parse.Hidden) else repr(value)
        raise InputError(f"{name}: found {found}, want {error}") from None

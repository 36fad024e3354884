"""Receive what Alertmanager sends to people, as the pager or chat of a team would."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final

from tools.stack.ports import HOST

BODY_BYTES_MAX: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Notice:
    """One alert of one notification, as it came; ``at`` is monotonic time in seconds."""

    at: float
    status: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    receiver: str = ""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """Return the alert's name."""
        return self.labels.get("alertname", "")

    @property
    def fires(self) -> bool:
        """Say whether the alert fires, and is not resolved."""
        return self.status == "firing"


class Webhook:
    """Listen while the ``with`` block lasts; keep every notice, and hand it on from a thread of its own."""

    def __init__(self, port: int, on_notice: Callable[[Notice], None] | None = None) -> None:
        self.url = f"http://{HOST}:{port}/"
        self._on_notice = on_notice
        self._notices: list[Notice] = []
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"take": staticmethod(self._take)})
        self._server = ThreadingHTTPServer((HOST, port), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="webhook", daemon=True)

    def __enter__(self) -> Webhook:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def notices(self) -> list[Notice]:
        """Return everything that came so far, in order."""
        with self._lock:
            return list(self._notices)

    def _take(self, notification: Mapping[str, Any]) -> None:
        at = time.monotonic()
        for alert in notification.get("alerts", ()):
            notice = Notice(
                at,
                alert.get("status", ""),
                alert.get("labels", {}),
                alert.get("annotations", {}),
                notification.get("receiver", ""),
                alert,
            )
            with self._lock:
                self._notices.append(notice)
            if self._on_notice is not None:
                self._on_notice(notice)


class _Handler(BaseHTTPRequestHandler):
    take: Callable[[Mapping[str, Any]], None]

    def do_POST(self) -> None:
        """Answer as soon as the notification was understood."""
        length = int(self.headers.get("Content-Length", 0))
        try:
            if length > BODY_BYTES_MAX:
                raise ValueError("too long")
            notification = json.loads(self.rfile.read(length))
        except ValueError:
            self.send_error(400)
            return
        self.take(notification)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Keep quiet: notices are shown elsewhere."""

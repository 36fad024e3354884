"""Tell what happens to runs, as server-sent events, to many listeners of which none can hold up another.

The owner thread only leaves a note of the latest state of each run that changed. A task of the event loop takes the
notes every :data:`PUMP_SECONDS`, writes each event once, keeps the last ones for those who come back, and hands them to
the clients' bounded queues. A client that does not keep up is cut; it comes back with the id of its last event.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from starlette.responses import Response

from reach_otel.engine.events import Event, RunChanged, RunClosed, RunDropped, RunMerged
from reach_otel.errors import StateError
from reach_otel.service import shape
from reach_otel.service.entries import encode

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

PUMP_SECONDS: Final = 0.2
LINGER_SECONDS: Final = 60.0  # after the last client has gone, so that it can come back without a gap
CHANGES_MAX: Final = 300  # open runs shown in one turn of the pump; the others show with their next change
NOTES_MAX: Final = 1_000  # of all kinds in one turn; beyond it clients are told to look anew
RESET_SECONDS: Final = 5.0  # between two such calls
RING_EVENTS: Final = 1_000
QUEUE_BYTES_MAX: Final = 4 << 20  # of the ring, and of one client's queue: these share what they hold
RETRY_MS: Final = 2_000

Note = RunChanged | RunClosed | RunMerged | RunDropped

_HEARTBEAT: Final = b": still here\n\n"


class _Kept(Struct, frozen=True, gc=False):
    number: int
    frame: bytes


class Client:
    """Hold what one listener has not been sent yet; for the event loop only."""

    __slots__ = ("_bell", "_bytes", "_bytes_max", "_frames", "is_cut")

    def __init__(self, bytes_max: int) -> None:
        self._frames: deque[bytes] = deque()
        self._bytes = 0
        self._bytes_max = bytes_max
        self._bell = asyncio.Event()
        self.is_cut = False

    def put(self, frames: Sequence[bytes]) -> bool:
        """Add frames; ``False`` when there is no room, and the client is cut."""
        size = sum(map(len, frames))
        if self._bytes + size > self._bytes_max:
            self.cut()
            return False
        self._bytes += size
        self._frames.extend(frames)
        self._bell.set()
        return True

    def cut(self) -> None:
        """Send this client nothing more."""
        self._frames.clear()
        self._bytes = 0
        self.is_cut = True
        self._bell.set()

    async def take(self, timeout_seconds: float) -> bytes:
        """Return all that waits, as soon as something does; after the timeout a heartbeat; nothing once cut."""
        if not self._frames and not self.is_cut:
            self._bell.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._bell.wait(), timeout_seconds)
        frames = b"".join(self._frames)
        self._frames.clear()
        self._bytes = 0
        return b"" if self.is_cut else frames or _HEARTBEAT


class Hub:
    """Pass events on to all clients. :meth:`publish` is for the owner thread, all else for the event loop."""

    def __init__(
        self,
        *,
        clients_max: int = 64,
        queue_bytes_max: int = QUEUE_BYTES_MAX,
        heartbeat_seconds: float = 15.0,
        send_seconds: float = 20.0,
        pump_seconds: float = PUMP_SECONDS,
    ) -> None:
        """``queue_bytes_max`` bounds what waits for a client, ``send_seconds`` how long its socket may take nothing."""
        self.heartbeat_seconds = heartbeat_seconds
        self.send_seconds = send_seconds
        self._clients_max = clients_max
        self._queue_bytes_max = queue_bytes_max
        self._pump_seconds = pump_seconds
        self._clients: set[Client] = set()
        self._lock = threading.Lock()
        self._notes: dict[str, Note] = {}
        self._changes = 0  # among the notes
        self._overflowed = False
        self._reset_at = 0.0  # monotonic; not before it
        self._wanted_until = 0.0  # monotonic; nobody listens after it
        self._epoch = secrets.token_hex(4)  # tells this process's numbers from another's
        self._number = 0
        self._ring: deque[_Kept] = deque()
        self._ring_bytes = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pumping: asyncio.Task[None] | None = None
        self._closed = False

    # The owner thread.

    def publish(self, events: Sequence[Event]) -> None:
        """Note what happened; costs next to nothing while nobody listens."""
        if time.monotonic() > self._wanted_until:
            return
        with self._lock:
            notes = self._notes
            for event in events:
                if isinstance(event, RunChanged):
                    run_id = event.summary.run_id
                    if run_id not in notes:
                        if self._changes >= CHANGES_MAX:
                            continue
                        self._changes += 1
                elif isinstance(event, RunClosed):
                    run_id = event.record.run
                elif isinstance(event, RunMerged | RunDropped):
                    run_id = event.run_id
                else:
                    continue
                if len(notes) < NOTES_MAX or run_id in notes:
                    notes[run_id] = event
                else:
                    self._overflowed = True

    # The event loop.

    def start(self) -> None:
        """Start passing events on, on the running loop."""
        self._loop = asyncio.get_running_loop()
        self._pumping = self._loop.create_task(self._pump(), name="reach-otel-events")

    async def stop(self) -> None:
        """Cut all clients and end."""
        self.shut()
        if self._pumping is not None:
            self._pumping.cancel()
            with suppress(asyncio.CancelledError):
                await self._pumping

    def close(self) -> None:
        """Cut all clients and take no more; from any thread, as soon as the server is told to stop."""
        if self._loop is not None and not self._loop.is_closed():
            with suppress(RuntimeError):  # it ends at this moment
                self._loop.call_soon_threadsafe(self.shut)

    def shut(self) -> None:
        """Cut all clients and take no more."""
        self._closed = True
        for client in list(self._clients):
            client.cut()

    @property
    def clients(self) -> int:
        """Count the clients."""
        return len(self._clients)

    def join(self, last_event_id: str | None) -> Client:
        """Take a client in; with the id of the last event that it has seen, it gets what it missed, or ``reset``.

        :raises StateError: there are as many clients as there may be, or the service is about to stop.
        """
        if self._closed:
            raise StateError("the service is about to stop")
        if len(self._clients) >= self._clients_max:
            raise StateError(f"{self._clients_max} clients are listening, and no more may")
        fresh = time.monotonic() > self._wanted_until
        self._wanted_until = float("inf")
        if fresh:  # nothing was noted meanwhile: older events no longer lead up to the present
            self._ring.clear()
            self._ring_bytes = 0
            self._number += 1
        client = Client(self._queue_bytes_max)
        missed = self._missed(last_event_id)
        frames = [f"retry: {RETRY_MS}\nid: {self._epoch}-{self._number}\n\n".encode()]
        if missed is None:
            frames.append(self._frame("reset", {"reason": "the stream could not be taken up where it ended"}, None))
        else:
            frames = [f"retry: {RETRY_MS}\n\n".encode(), *missed] if missed else frames
        if not client.put(frames):
            client = Client(self._queue_bytes_max)
            client.put([self._frame("reset", {"reason": "too much was missed"}, self._number)])
        self._clients.add(client)
        return client

    def leave(self, client: Client) -> None:
        """Forget a client."""
        self._clients.discard(client)
        if not self._clients:
            self._wanted_until = time.monotonic() + LINGER_SECONDS

    def _missed(self, last_event_id: str | None) -> list[bytes] | None:
        """Give the events after an id; ``None`` where they are no longer known, nothing for a client that is new."""
        if not last_event_id:
            return []
        epoch, _, number = last_event_id.partition("-")
        if epoch != self._epoch or not number.isascii() or not number.isdigit() or len(number) > 18:
            return None
        last = int(number)
        first = self._ring[0].number if self._ring else self._number + 1
        if not first - 1 <= last <= self._number:
            return None
        return [kept.frame for kept in self._ring if kept.number > last]

    async def _pump(self) -> None:
        while True:
            await asyncio.sleep(self._pump_seconds)
            frames = self._frames()
            if frames:
                for client in list(self._clients):
                    client.put(frames)

    def _frames(self) -> list[bytes]:
        """Write what was noted since the last turn."""
        with self._lock:
            notes, self._notes, self._changes = self._notes, {}, 0
        frames = [self._keep(*_told(run_id, note)) for run_id, note in notes.items()]
        now = time.monotonic()
        if self._overflowed and now >= self._reset_at:
            self._overflowed = False
            self._reset_at = now + RESET_SECONDS
            frames.append(self._keep("reset", {"reason": "too many runs changed at once"}))
        return frames

    def _keep(self, event: str, value: Any) -> bytes:
        self._number += 1
        frame = self._frame(event, value, self._number)
        self._ring.append(_Kept(self._number, frame))
        self._ring_bytes += len(frame)
        while len(self._ring) > RING_EVENTS or self._ring_bytes > QUEUE_BYTES_MAX:
            self._ring_bytes -= len(self._ring.popleft().frame)
        return frame

    def _frame(self, event: str, value: Any, number: int | None) -> bytes:
        """Write one event; JSON holds no line break, so that a value cannot end the frame."""
        told_id = f"id: {self._epoch}-{self._number if number is None else number}\n"
        return f"{told_id}event: {event}\ndata: ".encode() + encode(value) + b"\n\n"


def _told(run_id: str, note: Note) -> tuple[str, dict[str, Any]]:
    if isinstance(note, RunChanged):
        return "run", shape.of_open(note.summary)
    if isinstance(note, RunClosed):
        return "closed", shape.of_record(note.record)
    if isinstance(note, RunMerged):
        return "merged", {"run": run_id, "into": note.into}
    return "dropped", {"run": run_id}


class EventStream(Response):
    """Send one client its events until either side ends it."""

    media_type = "text/event-stream"

    def __init__(self, hub: Hub, client: Client) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._hub = hub
        self._client = client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the client is gone, is cut, or takes nothing for too long."""
        del scope
        gone = asyncio.ensure_future(self._gone(receive))
        try:
            await self._send(send, {"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            while not gone.done():
                taking = asyncio.ensure_future(self._client.take(self._hub.heartbeat_seconds))
                await asyncio.wait({gone, taking}, return_when=asyncio.FIRST_COMPLETED)
                if gone.done():
                    taking.cancel()
                    break
                frames = taking.result()
                if not frames:
                    break
                await self._send(send, {"type": "http.response.body", "body": frames, "more_body": True})
            await self._send(send, {"type": "http.response.body", "body": b"", "more_body": False})
        except (TimeoutError, OSError):  # it takes nothing, or it has gone
            return
        finally:
            self._hub.leave(self._client)
            gone.cancel()

    async def _send(self, send: Send, message: dict[str, Any]) -> None:
        await asyncio.wait_for(send(message), self._hub.send_seconds)

    @staticmethod
    async def _gone(receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

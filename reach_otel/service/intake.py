"""Take requests in, whatever protocol they came by: decode, find room, journal, and hand on to the scorer."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from reach_otel.service.limits import Budget, overloaded
from reach_otel.service.scorer import Batch

if TYPE_CHECKING:
    from reach_otel.service.decode import Decoded, Decoder, Form, Signal
    from reach_otel.service.journal import Journal
    from reach_otel.service.scorer import Scorer
    from reach_otel.span import Faults

INLINE_BYTES: Final = 16 << 10
"""Bodies up to this are decoded on the event loop: that takes less time than a change of threads."""


class Intake:
    """Take requests in; its coroutines run on one event loop."""

    def __init__(
        self, decoder: Decoder, scorer: Scorer, journal: Journal, *, budget: Budget, faults: Faults | None = None
    ) -> None:
        """``faults`` adds up what was wrong with spans."""
        self.budget = budget
        self._decoder = decoder
        self._scorer = scorer
        self._journal = journal
        self._faults = faults
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="reach-otel-reader")
        self.is_stopping = False

    def stop(self) -> None:
        """Take nothing more; what is under way is finished."""
        self.is_stopping = True

    def close(self) -> None:
        """End the reader's thread."""
        self._reader.shutdown()

    def check(self) -> None:
        """Refuse early, before a body is received, what would be refused anyway.

        :raises Refused: 503 when the queue is full or the service stops.
        """
        if self.is_stopping:
            raise overloaded("the service is stopping")
        if self._scorer.room.is_full:
            raise overloaded("the queue is full")

    async def take(self, signal: Signal, form: Form, body: bytes) -> Decoded:
        """Decode a body and return once what it holds is safe in the journal.

        :raises Refused: 400, 413 or 503; then nothing of it was taken.
        """
        self.check()
        if len(body) <= INLINE_BYTES:
            decoded = self._decoder.decode(signal, form, body)
        else:
            loop = asyncio.get_running_loop()
            decoded = await loop.run_in_executor(self._reader, self._decoder.decode, signal, form, body)
        if self._faults is not None:
            self._faults.update(decoded.faults)
        if decoded.steps:
            await self._keep(decoded, len(body))
        return decoded

    async def _keep(self, decoded: Decoded, size: int) -> None:
        steps, count = decoded.steps, len(decoded.steps)
        if self.is_stopping or not self._scorer.room.take(count, size):
            self.check()
            raise overloaded("the queue is full")
        loop = asyncio.get_running_loop()
        safe: asyncio.Future[None] = loop.create_future()
        received_ns = time.monotonic_ns()

        def done(seq: int | None) -> None:
            self._scorer.enqueue(Batch(steps, seq or 0, size, received_ns))
            loop.call_soon_threadsafe(_resolve, safe)

        self._journal.append(decoded.rows, count, done)
        # Shielded from nothing: when the sender has gone, the spans are journalled and scored all the same.
        await safe


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)

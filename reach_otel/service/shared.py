"""Let many who ask the same at once share one answer, and ask again only so often that asking stays cheap."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

from msgspec import Struct

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

SHARE_MAX: Final = 0.1  # of the time of who answers
KEYS_MAX: Final = 64


class _Kept(Struct, Generic[T], frozen=True):
    value: T
    fresh_until: float  # monotonic


class Shared(Generic[K, T]):
    """Keep answers by question. One that took ``t`` seconds to find is given again for ``t / SHARE_MAX``.

    For one event loop. An answer that fails is given to all who wait for it, and not kept.
    """

    def __init__(self, keys_max: int = KEYS_MAX) -> None:
        self._keys_max = keys_max
        self._kept: dict[K, _Kept[T]] = {}
        self._asking: dict[K, asyncio.Future[T]] = {}

    async def get(self, key: K, ask: Callable[[], Awaitable[tuple[float, T]]]) -> T:
        """Give the answer to a question; ``ask`` finds it, and tells how many seconds of others' time it took."""
        kept = self._kept.get(key)
        if kept is not None and time.monotonic() < kept.fresh_until:
            return kept.value
        asking = self._asking.get(key)
        if asking is None:
            asking = self._asking[key] = asyncio.ensure_future(self._ask(key, ask))
            asking.add_done_callback(lambda done: self._done(key, done))
        return await asyncio.shield(asking)  # who stops waiting does not stop the others

    async def _ask(self, key: K, ask: Callable[[], Awaitable[tuple[float, T]]]) -> T:
        took, value = await ask()
        self._kept.pop(key, None)
        self._kept[key] = _Kept(value, time.monotonic() + took / SHARE_MAX)
        while len(self._kept) > self._keys_max:
            del self._kept[next(iter(self._kept))]
        return value

    def _done(self, key: K, asking: asyncio.Future[T]) -> None:
        del self._asking[key]
        if not asking.cancelled():
            asking.exception()  # whoever waited has seen it

"""Many who ask the same share an answer, and what is costly to find is found rarely."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reach_otel.service.shared import SHARE_MAX, Shared


class Source:
    """Answers that count how often they were asked for."""

    def __init__(self, took: float = 0.0) -> None:
        self.took = took
        self.asked = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def ask(self) -> tuple[float, int]:
        self.asked += 1
        number = self.asked
        await self.gate.wait()
        return self.took, number


def run(test: Any) -> None:
    asyncio.run(asyncio.wait_for(test, 10))


def test_who_asks_at_once_is_answered_at_once() -> None:
    """Fifty askers make one question, and who asks afterwards one more."""

    async def test() -> None:
        source, shared = Source(), Shared[str, int]()
        assert await asyncio.gather(*(shared.get("a", source.ask) for _ in range(50))) == [1] * 50
        assert await shared.get("a", source.ask) == 2
        assert await shared.get("b", source.ask) == 3

    run(test())


def test_a_costly_answer_is_kept_for_a_multiple_of_its_cost() -> None:
    """What took 10 ms is asked for again after 100 ms, not before."""

    async def test() -> None:
        source, shared = Source(took=0.01), Shared[str, int]()
        assert [await shared.get("a", source.ask) for _ in range(5)] == [1] * 5
        await asyncio.sleep(0.01 / SHARE_MAX + 0.02)
        assert await shared.get("a", source.ask) == 2

    run(test())


def test_who_stops_waiting_does_not_stop_the_others() -> None:
    """A client that goes away takes no answer from those who asked the same."""

    async def test() -> None:
        source, shared = Source(), Shared[str, int]()
        source.gate.clear()
        first = asyncio.ensure_future(shared.get("a", source.ask))
        second = asyncio.ensure_future(shared.get("a", source.ask))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        source.gate.set()
        assert await second == 1
        assert source.asked == 1

    run(test())


def test_a_failure_is_told_to_all_who_wait_and_not_kept() -> None:
    """The next one asks afresh."""

    async def test() -> None:
        source, shared = Source(took=100), Shared[str, int]()

        async def fail() -> tuple[float, int]:
            await asyncio.sleep(0)
            raise KeyError("no")

        results = await asyncio.gather(*(shared.get("a", fail) for _ in range(3)), return_exceptions=True)
        assert [type(result) for result in results] == [KeyError] * 3
        with pytest.raises(KeyError):
            await shared.get("a", fail)
        assert await shared.get("a", source.ask) == 1

    run(test())


def test_only_so_many_answers_are_kept() -> None:
    """Whoever asks for ever new things does not fill the memory."""

    async def test() -> None:
        source, shared = Source(took=100), Shared[int, int](keys_max=3)
        for key in range(10):
            await shared.get(key, source.ask)
        assert await shared.get(9, source.ask) == 10
        assert await shared.get(0, source.ask) == 11

    run(test())

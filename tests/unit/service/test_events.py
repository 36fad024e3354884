"""Events reach those who listen, in order and without gaps; nobody who is slow holds up anybody else."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec
import pytest

from reach_otel.engine.events import RunChanged, RunClosed, RunDropped, RunMerged, RunOpened
from reach_otel.errors import StateError
from reach_otel.service import events
from reach_otel.service.events import CHANGES_MAX, NOTES_MAX, Client, EventStream, Hub
from tests.support.asgi import Exchange
from tests.support.records import record, summary

Told = tuple[str, Any]


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 30))


def hub(**options: Any) -> Hub:
    made = Hub(pump_seconds=0.005, **options)
    made.start()
    return made


def changed(run_id: str = "r", **fields: Any) -> RunChanged:
    return RunChanged(summary(run_id, **fields))


def closed(run_id: str = "r") -> RunClosed:
    return RunClosed(record(run_id), (), ())


def frames_of(text: bytes) -> list[dict[str, str]]:
    """Read a stream as a browser does."""
    frames = []
    for block in text.decode().split("\n\n"):
        lines = [line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":")]
        if lines:
            frames.append(dict(lines))
    return frames


def told(text: bytes) -> list[Told]:
    return [(frame["event"], json.loads(frame["data"])) for frame in frames_of(text) if "event" in frame]


async def heard(client: Client, number: int) -> tuple[list[Told], str]:
    """Wait for so many events; gives them and the id of the last."""
    text = b""
    while len(told(text)) < number:
        text += await client.take(10)
        assert not client.is_cut
    return told(text), [frame["id"] for frame in frames_of(text) if "id" in frame][-1]


def test_everything_that_happens_to_runs_is_told() -> None:
    """Changes, verdicts, mergers and dropped runs come as events of their own, each with what it is about."""

    async def test() -> None:
        stream = hub()
        client = stream.join(None)
        stream.publish([RunOpened("a"), changed("a"), closed("b"), RunMerged("c", "d"), RunDropped("e")])
        found, _ = await heard(client, 4)
        assert [name for name, _ in found] == ["run", "closed", "merged", "dropped"]
        assert (found[0][1]["run"], found[0][1]["final"], found[0][1]["outcome"]) == ("a", False, "running")
        assert (found[1][1]["run"], found[1][1]["final"], found[1][1]["outcome"]) == ("b", True, "partial")
        assert found[2][1] == {"run": "c", "into": "d"}
        assert found[3][1] == {"run": "e"}
        assert "s3cr3t" not in str(found)
        await stream.stop()

    run(test())


def test_of_many_changes_of_one_run_the_latest_is_told() -> None:
    """What is overtaken before it is sent is left out, and a verdict overtakes every change."""

    async def test() -> None:
        stream = hub()
        client = stream.join(None)
        stream.publish([changed(actions=n) for n in range(100)])
        found, _ = await heard(client, 1)
        assert [value["actions"] for _, value in found] == [99]
        stream.publish([changed(actions=100), closed()])
        found, _ = await heard(client, 1)
        assert [name for name, _ in found] == ["closed"]
        await stream.stop()

    run(test())


def test_a_client_that_comes_back_gets_what_it_missed() -> None:
    """With the id of its last event it goes on there, with no event lost or repeated."""

    async def test() -> None:
        stream = hub()
        client = stream.join(None)
        last = ""
        for n in range(3):
            stream.publish([changed(f"r{n}")])
            _, last = await heard(client, 1)
        stream.leave(client)
        for n in range(3, 6):
            stream.publish([changed(f"r{n}")])
            await asyncio.sleep(0.02)
        again = stream.join(last)
        stream.publish([changed("r6")])
        found, _ = await heard(again, 4)
        assert [value["run"] for _, value in found] == ["r3", "r4", "r5", "r6"]
        await stream.stop()

    run(test())


def test_a_client_that_was_told_nothing_yet_can_come_back_too() -> None:
    """The first frame already bears an id to go on from."""

    async def test() -> None:
        stream = hub()
        client = stream.join(None)
        (first,) = frames_of(await client.take(1))
        assert "event" not in first
        stream.leave(client)
        stream.publish([changed()])
        await asyncio.sleep(0.02)
        found, _ = await heard(stream.join(first["id"]), 1)
        assert [name for name, _ in found] == ["run"]
        await stream.stop()

    run(test())


@pytest.mark.parametrize("last", ["x", "-", "0", "abcdefgh-1", "{epoch}-", "{epoch}-9999", "{epoch}-²", "{epoch}--1"])
def test_what_cannot_be_taken_up_is_said(last: str) -> None:
    """An id of another process, of the future, or of no shape at all gets ``reset``: look at everything anew."""

    async def test() -> None:
        stream = hub()
        client = stream.join(None)
        epoch = frames_of(await client.take(1))[0]["id"].split("-")[0]
        found, again = await heard(stream.join(last.format(epoch=epoch)), 1)
        assert [name for name, _ in found] == ["reset"]
        assert again.startswith(epoch)
        await stream.stop()

    run(test())


def test_what_was_forgotten_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that was away for longer than events are kept is told to look anew."""
    monkeypatch.setattr(events, "RING_EVENTS", 5)

    async def test() -> None:
        stream = hub()
        client = stream.join(None)
        stream.publish([changed("first")])
        _, last = await heard(client, 1)
        for n in range(5):
            stream.publish([changed(f"r{n}")])
            await asyncio.sleep(0.02)
        found, _ = await heard(stream.join(last), 5)
        assert [value["run"] for _, value in found] == [f"r{n}" for n in range(5)]
        stream.publish([changed("r5")])
        await asyncio.sleep(0.02)
        found, _ = await heard(stream.join(last), 1)
        assert [name for name, _ in found] == ["reset"]
        await stream.stop()

    run(test())


def test_while_nobody_listens_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the last client has been gone for a while events cost nothing, and who comes back then is told."""
    monkeypatch.setattr(events, "LINGER_SECONDS", 0.05)

    async def test() -> None:
        stream = hub()
        stream.publish([changed("before")])
        client = stream.join(None)
        stream.publish([changed("a")])
        _, last = await heard(client, 1)
        stream.leave(client)
        await asyncio.sleep(0.1)
        stream.publish([changed("unheard")])
        assert not stream._notes
        found, _ = await heard(stream.join(last), 1)
        assert [name for name, _ in found] == ["reset"]
        await stream.stop()

    run(test())


def test_too_much_at_once_is_bounded_and_said() -> None:
    """Of a storm only so many changes are told; verdicts all are, and beyond the limit clients look anew."""

    async def test() -> None:
        stream = hub()
        client = stream.join(None)
        stream.publish([changed(f"r{n}") for n in range(CHANGES_MAX + 50)])
        found, _ = await heard(client, CHANGES_MAX)
        assert len(found) == CHANGES_MAX
        stream.publish([closed(f"c{n}") for n in range(NOTES_MAX + 50)])
        found, _ = await heard(client, NOTES_MAX + 1)
        assert [name for name, _ in found] == ["closed"] * NOTES_MAX + ["reset"]
        stream.publish([changed("after")])
        found, _ = await heard(client, 1)
        assert found[0][1]["run"] == "after"
        await stream.stop()

    run(test())


def test_a_slow_client_is_cut_and_the_others_go_on() -> None:
    """Who does not take what waits for it is dropped at its limit of bytes; the hub never waits."""

    async def test() -> None:
        stream = hub(queue_bytes_max=20_000)
        slow, quick = stream.join(None), stream.join(None)
        for n in range(100):
            stream.publish([changed(f"r{n}")])
            found, _ = await heard(quick, 1)
            assert found[0][1]["run"] == f"r{n}"
        assert slow.is_cut
        assert await slow.take(0.01) == b""
        assert not quick.is_cut
        await stream.stop()

    run(test())


def test_only_so_many_may_listen() -> None:
    """The next one is refused until one leaves."""

    async def test() -> None:
        stream = hub(clients_max=2)
        first, _ = stream.join(None), stream.join(None)
        with pytest.raises(StateError, match="2 clients"):
            stream.join(None)
        stream.leave(first)
        stream.join(None)
        assert stream.clients == 2
        await stream.stop()
        with pytest.raises(StateError, match="stop"):
            stream.join(None)

    run(test())


def test_a_value_cannot_break_out_of_its_event() -> None:
    """Line breaks, separators and half characters in a name stay inside of the data."""
    hostile = "a\n\nevent: closed\ndata: {}\r\n\u2028\ud800\x00"

    async def test() -> None:
        stream = hub()
        client = stream.join(None)
        stream.publish([changed("r", agent=hostile)])
        found, _ = await heard(client, 1)
        assert [(name, value["agent"]) for name, value in found] == [("run", hostile.replace("\ud800", "?"))]
        await stream.stop()

    run(test())


# The stream as it is sent.


def stream_of(hub: Hub) -> Exchange:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await EventStream(hub, hub.join(None))(scope, receive, send)

    return Exchange(app, "GET", "/", {}, b"")


async def body(exchange: Exchange) -> bytes:
    message = await exchange.next()
    assert message["type"] == "http.response.body"
    sent: bytes = message["body"]
    return sent


def test_a_stream_is_sent_with_heartbeats_until_the_client_goes() -> None:
    """It starts as an event stream that nobody stores, breathes while nothing happens, and frees its place."""

    async def test() -> None:
        stream = hub(heartbeat_seconds=0.05)
        exchange = stream_of(stream)
        start = await exchange.next()
        headers = dict(start["headers"])
        assert headers[b"content-type"].startswith(b"text/event-stream")
        assert headers[b"cache-control"] == b"no-store"
        assert b"content-length" not in headers
        assert (await body(exchange)).startswith(b"retry:")
        assert await body(exchange) == b": still here\n\n"
        stream.publish([changed("a")])
        sent = b""
        while not told(sent):
            sent = await body(exchange)
        assert told(sent)[0][1]["run"] == "a"
        exchange.hang_up()
        await asyncio.wait_for(exchange.running, 5)
        assert stream.clients == 0
        await stream.stop()

    run(test())


def test_a_client_whose_socket_takes_nothing_is_left() -> None:
    """A send that does not end ends the stream, and the place is free again."""

    async def test() -> None:
        stream = hub(send_seconds=0.1, heartbeat_seconds=0.02)
        exchange = stream_of(stream)
        await exchange.next()
        exchange.stuck.clear()
        await asyncio.wait_for(exchange.running, 5)
        assert stream.clients == 0
        await stream.stop()

    run(test())


def test_streams_end_when_the_service_is_told_to_stop() -> None:
    """``close`` from any thread ends every stream in good order, at once."""

    async def test() -> None:
        stream = hub()
        exchanges = [stream_of(stream) for _ in range(3)]
        for exchange in exchanges:
            await exchange.next()
        await asyncio.to_thread(stream.close)
        for exchange in exchanges:
            await asyncio.wait_for(exchange.running, 5)
        assert stream.clients == 0
        await stream.stop()

    run(test())


def test_the_owner_thread_pays_little() -> None:
    """Noting a batch takes microseconds while somebody listens, and next to nothing while nobody does."""

    async def seconds(stream: Hub, batches: Sequence[Sequence[Any]]) -> float:
        begun = time.perf_counter()
        for batch in batches:
            stream.publish(batch)
        return (time.perf_counter() - begun) / len(batches)

    async def test() -> None:
        batches = [[changed(f"r{n}")] for n in range(200)]
        stream = Hub()
        assert await seconds(stream, batches) < 0.000_1
        stream.join(None)
        assert await seconds(stream, batches) < 0.001

    run(test())


def test_frames_are_the_json_of_lists() -> None:
    """An event and a list show the same run in the same form."""
    for value in (events._told("r", changed()), events._told("r", closed())):
        assert set(value[1]) == {
            *("run trace_id task agent variant final outcome start duration_seconds actions scores").split(),
            *("high_risk milestones findings last_tool").split(),
        }
        msgspec.json.encode(value[1])

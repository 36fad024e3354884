"""The terminal follows a service through breaks of the line, shows what it tells, and ends clean."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from rich.console import Console
from typer.testing import CliRunner

from reach_otel.cli import feed, main
from reach_otel.cli.feed import Feed
from reach_otel.cli.watching import Runs, screen
from reach_otel.errors import InputError, StateError
from reach_otel.service import shape
from tests.support.records import milestone, record, summary

PATIENCE_SECONDS = 10.0

Event = tuple[str, dict[str, Any]]


def opened(run: str, **fields: Any) -> dict[str, Any]:
    return shape.of_open(summary(run, **fields))


def closed(run: str, **fields: Any) -> dict[str, Any]:
    return shape.of_record(record(run, **fields))


class Fake:
    """A service that says what a test tells it to, and notes what it is asked."""

    def __init__(self) -> None:
        self.open: list[dict[str, Any]] = []
        self.finished: list[dict[str, Any]] = []
        self.streams: list[list[bytes]] = []  # what each connection to the events is sent before it is cut
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.token: str | None = None
        self.status = 200
        self.address = ""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        self.asked.append((handler.path, {name.lower(): value for name, value in handler.headers.items()}))
        if self.token is not None and handler.headers.get("Authorization") != f"Bearer {self.token}":
            self._send(handler, 401, {"detail": "a bearer token is needed"})
        elif parts.path == "/api/events":
            self._stream(handler)
        elif parts.path == "/api/runs":
            live = parse_qs(parts.query).get("live", ["true"])[0] == "true"
            self._send(handler, self.status, {"runs": self.open if live else self.finished, "next": None})
        else:
            self._send(handler, 404, {})

    def _send(self, handler: BaseHTTPRequestHandler, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def _stream(self, handler: BaseHTTPRequestHandler) -> None:
        if not self.streams:
            self._send(handler, 503, {})
            return
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        for frame in self.streams.pop(0):
            handler.wfile.write(frame)
            handler.wfile.flush()
        handler.close_connection = True

    def headers_of(self, path: str) -> list[dict[str, str]]:
        return [headers for asked, headers in self.asked if urlsplit(asked).path == path]


@contextmanager
def serving() -> Iterator[Fake]:
    fake = Fake()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            fake.answer(self)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    fake.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    monkeypatch.setattr(feed, "PAUSES_SECONDS", (0.01,))
    with serving() as fake:
        yield fake


def frame(number: int, event: str, data: dict[str, Any]) -> bytes:
    return f"id: e-{number}\nevent: {event}\ndata: {json.dumps(data)}\n\n".encode()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def feeding(service: Fake, **options: Any) -> Iterator[list[Event]]:
    told: list[Event] = []
    following = Feed(service.address, lambda event, data: told.append((event, data)), **options)
    try:
        yield told
    finally:
        following.close()


def test_it_starts_with_what_there_is(service: Fake) -> None:
    """Runs that ended come first, from early to late, then open ones, then what happens."""
    service.finished = [closed("second"), closed("first")]
    service.open = [opened("now")]
    service.streams = [[b": hello\n\n", frame(1, "run", opened("later"))]]
    with feeding(service) as told:
        until(lambda: len(told) >= 5)
    assert [(event, data.get("run")) for event, data in told[:5]] == [
        ("reset", None),
        ("closed", "first"),
        ("closed", "second"),
        ("run", "now"),
        ("run", "later"),
    ]


def test_a_broken_line_is_taken_up_where_it_was(service: Fake) -> None:
    """After a cut, a refusal and half an event the stream goes on from the last id, and nothing is told twice."""
    service.streams = [[frame(7, "run", opened("a")), b"id: e-8\nevent: run\ndata: {"], [frame(8, "run", opened("b"))]]
    with feeding(service) as told:
        until(lambda: len(told) >= 3)
    assert [data.get("run") for _, data in told] == [None, "a", "b"]
    assert [headers.get("last-event-id") for headers in service.headers_of("/api/events")[:2]] == [None, "e-7"]


def test_a_reset_makes_it_look_anew(service: Fake) -> None:
    """Where the service cannot take the stream up, the runs there are come again."""
    service.open = [opened("there")]
    service.streams = [[frame(3, "run", opened("a")), frame(4, "reset", {"reason": "too much was missed"})]]
    with feeding(service) as told:
        until(lambda: len(told) >= 5)
    assert [data.get("run") for _, data in told[:5]] == [None, "there", "a", None, "there"]


def test_only_the_task_asked_for_is_told(service: Fake) -> None:
    """Events of other tasks are left out, and the lists are asked for that task."""
    service.streams = [[frame(1, "run", opened("x", task="other")), frame(2, "run", opened("y", task="mine"))]]
    with feeding(service, task="mine") as told:
        until(lambda: len(told) >= 2)
    assert [data.get("run") for _, data in told] == [None, "y"]
    assert any("task=mine" in path for path, _ in service.asked)


def test_the_token_is_shown_and_a_missing_one_is_said(service: Fake) -> None:
    """A service that asks for a token says so at once, and gets it with every request."""
    service.token = "read-me-7"
    with pytest.raises(StateError, match="token for reading; give it with --token or REACH_SERVE_READ_TOKEN"):
        Feed(service.address, lambda *_: None)
    service.streams = [[frame(1, "run", opened("a"))]]
    with feeding(service, token="read-me-7") as told:
        until(lambda: len(told) >= 2)


@pytest.mark.parametrize("url", ["nonsense", "ftp://there", "http://", ""])
def test_what_is_no_address_is_refused(url: str) -> None:
    """The message says what an address looks like."""
    with pytest.raises(InputError, match=f"URL: found {url!r}, want .*address.* (such )?as http://"):
        Feed(url, lambda *_: None)


@pytest.mark.parametrize(
    ("url", "token", "says"),
    [
        ("http://me:s3cret@127.0.0.1:1", None, "without user name and password.*give a token by --token"),
        ("http://127.0.0.1:1/?token=s3cret", None, "URL: "),
        ("http://127.0.0.1:1", "s3cret\nx", "--token: .*without blanks and control characters"),
    ],
)
def test_a_secret_in_the_wrong_place_is_refused_unseen(url: str, token: str | None, says: str) -> None:
    """The message tells where it belongs, and does not repeat it."""
    with pytest.raises(InputError, match=says) as refused:
        Feed(url, lambda *_: None, token=token)
    assert "s3cret" not in str(refused.value)


def test_what_is_no_service_is_refused(service: Fake) -> None:
    """Nothing there, and something else there, are told apart."""
    with pytest.raises(StateError, match=r"nothing answers at http://127\.0\.0\.1:1"):
        Feed("http://127.0.0.1:1", lambda *_: None)
    service.status = 500
    with pytest.raises(StateError, match="no reach-otel service that can be watched"):
        Feed(service.address, lambda *_: None)


# What is kept of it.


def test_a_run_is_on_its_board_until_it_ends(service: Fake) -> None:
    """It is among the open ones first and among the finished ones then; told again after a gap it counts once."""
    runs = Runs()
    runs.take("run", opened("a", task="mine"))
    assert runs.look() == []
    assert [run.run_id for run in runs.boards()["mine"].open] == ["a"]
    runs.take("closed", closed("a", task="mine"))
    (done,) = runs.look()
    assert done.record.run == "a"
    assert runs.boards()["mine"].open == ()
    for event, data in (("reset", {}), ("closed", closed("a", task="mine")), ("run", opened("a", task="mine"))):
        runs.take(event, data)
    assert runs.look() == []
    assert len(runs.boards()["mine"].finished) == 1


def test_a_run_that_begins_and_ends_between_two_looks_counts() -> None:
    """However short it was, it has its place among the finished."""
    runs = Runs()
    runs.take("closed", closed("quick"))
    assert [done.record.run for done in runs.look()] == ["quick"]


def test_runs_that_were_part_of_others_go() -> None:
    """What turns out to belong to another run, or cannot be scored, is no longer shown."""
    runs = Runs()
    for name in ("part", "broken", "stays"):
        runs.take("run", opened(name, task="mine"))
    runs.take("merged", {"run": "part", "into": "stays"})
    runs.take("dropped", {"run": "broken"})
    runs.look()
    assert [run.run_id for run in runs.boards()["mine"].open] == ["stays"]


@pytest.mark.parametrize("data", [{}, {"run": None}, {"run": "x", "start": "soon"}, {"run": "x", "milestones": 3}])
def test_events_of_another_version_are_left_out(data: dict[str, Any]) -> None:
    """What cannot be read is no reason to end."""
    runs = Runs()
    for event in ("run", "closed", "merged", "dropped", "unheard-of"):
        runs.take(event, data)
    assert runs.look() == []


# What is seen of it.


def drawn(runs: Runs, *, width: int = 110, height: int = 40, is_live: bool = True) -> str:
    runs.look()
    console = Console(width=width, height=height, record=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    console.print(screen(runs.boards(), "http://here:4318", is_live=is_live, width=width, height=height))
    console.file.close()
    return console.export_text()


@pytest.mark.parametrize("width", [40, 80, 110, 220])
def test_the_screen_fits_any_terminal(width: int) -> None:
    """No line is wider than the terminal, and the screen no longer, with many runs of several tasks."""
    runs = Runs()
    for n in range(60):
        runs.take("run", opened(f"open-{n}", task=f"task-{n % 3}"))
        runs.take("closed", closed(f"done-{n}", task=f"task-{n % 3}"))
    lines = drawn(runs, width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= 40


def test_before_the_first_run_it_says_so() -> None:
    """An empty screen tells what it waits for, and a broken line shows."""
    assert "No run yet" in drawn(Runs())
    assert "not connected: trying again" in drawn(Runs(), is_live=False)


def test_names_cannot_steer_the_terminal() -> None:
    """Escape sequences and markup in names of spans are shown as text."""
    runs = Runs()
    hostile = "\x1b[31m[bold]\u202eevil\x07"
    runs.take("run", opened("r", task=hostile, agent=hostile, last_tool=hostile))
    runs.take("closed", closed("c", task=hostile, agent=hostile, milestones=(milestone(hostile),)))
    text = drawn(runs)
    assert "[bold]" in text
    assert not {"\x1b", "\u202e", "\x07"} & set(text)


# The command.


def test_lines_are_printed_where_there_is_no_terminal(service: Fake) -> None:
    """One line a run that ends, with when it ended, and exit code 0 when the time is up."""
    service.finished = [closed("a", task="mine")]
    service.streams = [[b": hello\n\n"]] * 400
    done = CliRunner().invoke(main.app, ["watch", service.address, "--duration", "1"])
    assert done.exit_code == 0, done.output
    assert f"watching {service.address}" in done.output
    assert done.output.count("mine") == 1


def test_what_cannot_be_watched_ends_with_code_2() -> None:
    """The command says in one line what is wrong."""
    done = CliRunner().invoke(main.app, ["watch", "http://127.0.0.1:1"])
    assert done.exit_code == 2
    assert "nothing answers at http://127.0.0.1:1" in done.stderr

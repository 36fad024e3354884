"""Hold what the API answers from."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from reach_otel.service.events import Hub
    from reach_otel.service.history import History
    from reach_otel.service.live import Lately, Live
    from reach_otel.service.reader import Reader
    from reach_otel.service.vitals import Vitals
    from reach_otel.task import Tasks

T = TypeVar("T")


class Writer(Protocol):
    """Run a function on the database's one writing thread, in a transaction of its own."""

    def run(self, function: Callable[[sqlite3.Connection], T], /) -> Future[T]: ...


@dataclass(frozen=True, slots=True)
class Desk:
    """Name the parts of the service that the API needs.

    ``trace_url`` is a template with ``{trace_id}``; ``journal`` gives what ``/api/system`` shows of the journal.
    """

    tasks: Tasks
    live: Live
    lately: Lately
    history: History
    reader: Reader
    writer: Writer
    hub: Hub
    vitals: Vitals
    show_content: bool = False
    trace_url: str | None = None
    journal: Callable[[], dict[str, Any]] | None = None

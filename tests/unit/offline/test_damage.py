"""Damaged input: whatever a file holds, replay reports it or raises one kind of error, and nothing else."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from reach_otel.errors import InputError
from reach_otel.offline.message import Problem
from reach_otel.offline.replay import Notes, replay
from reach_otel.task import Tasks
from tests.support.otlp import Trace
from tests.unit.offline.test_messages import logs_request, prefixed, traces_request

if TYPE_CHECKING:
    import pytest

WHOLE = Trace("whole")
WHOLE.call("read_ticket", {"ticket": "T-77"}, {"sku": "SKU-1234"})
WHOLE.chat(user="Please look at T-77.", asks=[("c1", "read_ticket", {})])
WHOLE.end(user="Please look at T-77.", says="Done.")
LINE = WHOLE.line().encode() + b"\n"
GOOD = (
    LINE * 2,
    gzip.compress(LINE),
    json.dumps([json.loads(LINE)], indent=1).encode(),
    traces_request(),
    logs_request(),
    prefixed(traces_request(), logs_request()),
)


def read(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(content)
    notes = Notes()
    try:
        records = list(replay([path], Tasks(), steps=True, notes=notes))
    except InputError as error:
        notes.report(Problem(str(error).split(": ")[0], str(error)))
        records = []
    assert all(record.final for record in records)
    assert all(problem.where.startswith(str(path)) and problem.what for problem in notes.problems)


@given(content=st.binary(max_size=200))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    read(tmp_path_factory, content)


@given(good=st.sampled_from(GOOD), data=st.data())
def test_good_input_with_some_bytes_changed_or_missing(
    tmp_path_factory: pytest.TempPathFactory, good: bytes, data: st.DataObject
) -> None:
    damaged = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(damaged)))
    read(tmp_path_factory, bytes(damaged[:cut] if data.draw(st.booleans()) else damaged))

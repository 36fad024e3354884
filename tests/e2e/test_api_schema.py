"""The API does what its OpenAPI document says, against a real service, whatever schemathesis thinks up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode

from reach_otel.service.api_models import RUN
from tests.support.otlp import Trace
from tests.support.service import JSON, Served
from tests.support.stand import TICKETS

pytestmark = pytest.mark.e2e


def trace_of(trace_id: str) -> Trace:
    """Make a small run: an agent that reads a ticket and then cannot see the stock."""
    trace = Trace(agent="ticket-agent")
    trace.trace_id = trace_id
    trace.call("read_ticket", {"ticket_id": "T-1"}, {"status": "ok", "record": {"ticket_id": "T-1"}})
    trace.call("check_inventory", {"sku": "X-1"}, error="no such sku")
    return trace


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve two finished runs, of which one is the example in the document, and an open one."""
    with Served(tmp_path_factory.mktemp("service"), "--task", str(TICKETS), "--set", "grace=0") as service:
        over = trace_of(RUN).end(user="ticket T-1"), trace_of("e" * 32).end()
        for trace in (*over, trace_of("f" * 32)):
            assert service.ask("POST", "/v1/traces", trace.line().encode(), JSON)[0] == 200
        service.until(lambda: service.get("/api/system")["runs"]["finished"] == len(over), "the verdicts")
        yield service
        assert service.process.poll() is None
        assert service.get("/api/system")["runs"]["active"] == 1


@pytest.fixture(scope="module")
def document(served: Served) -> Any:
    return schemathesis.openapi.from_url(f"{served.address}/openapi.json")


# The stream of events does not end by itself; what takes spans has tests of its own.
OPERATIONS = [
    ("GET", "/api/runs"),
    ("GET", "/api/runs/{run_id}"),
    ("GET", "/api/tasks"),
    ("GET", "/api/tasks/{name}/summary"),
    ("GET", "/api/system"),
    ("POST", "/v1/feedback"),
]
THERE = {"run_id": RUN, "name": "ticket-handling", "run": RUN}


WITHOUT_WRONG = {"/api/runs/{run_id}", "/api/tasks", "/api/system"}  # any text is an id, and no parameter can be wrong
TRIED = [
    (mode, *operation)
    for mode in GenerationMode
    for operation in OPERATIONS
    if mode is GenerationMode.POSITIVE or operation[1] not in WITHOUT_WRONG
]


def make_sense(case: schemathesis.Case[Any], *, real: bool, cursor: str) -> None:
    """Turn a request that is right by its schema into one that is right: what no schema can say."""
    if real:
        case.path_parameters = {name: THERE[name] for name in case.path_parameters or {}}
    query: Any = case.query or {}
    if "cursor" in query:
        query["cursor"] = cursor
    lowest, highest = query.get("min"), query.get("max")
    if isinstance(lowest, int | float) and isinstance(highest, int | float):
        assume(lowest <= highest)
    body: Any = case.body
    if real and isinstance(body, dict) and body.get("run"):
        body["run"] = RUN
        if body.get("milestones"):
            body["milestones"] = dict.fromkeys(["stock"], next(iter(body["milestones"].values())))


@pytest.mark.parametrize(("mode", "method", "path"), TRIED)
def test_the_api_keeps_its_word(served: Served, document: Any, mode: GenerationMode, method: str, path: str) -> None:
    """Every answer has a documented status, type, shape and headers; what is right is taken, what is wrong refused."""
    operation = document[path][method]
    cursor = served.get("/api/runs?limit=1")["next"]

    @given(operation.as_strategy(generation_mode=mode), st.booleans())
    @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def keep(case: schemathesis.Case[Any], real: bool) -> None:
        if mode is GenerationMode.POSITIVE:
            make_sense(case, real=real, cursor=cursor)
        case.call_and_validate(timeout=20)

    keep()


def test_all_operations_are_tried(document: Any) -> None:
    """A route that is added to the API is tried too."""
    known = {f"{method} {path}" for method, path in OPERATIONS} | {"GET /api/events"}
    found = {result.ok().label for result in document.get_all_operations()}
    assert {label for label in found if " /api/" in label or "feedback" in label} == known

"""Check which error texts count as timeouts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from reach_otel.publish.health import Health
from reach_otel.publish.timeouts import STAGES, is_timeout, timeouts
from reach_otel.service.vitals import Vitals
from tests.support.steps import Steps
from tests.unit.publish.scrape import Scrape


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        ("TimeoutError", True),
        ("connect ETIMEDOUT 10.0.0.1:443", True),
        ("The read operation timed out", True),
        ("Request time-out", True),
        ("Time out while waiting", True),
        ("the request times out", True),
        ("504 Gateway Time-out", True),
        ("TIMED OUT", True),
        ("timeout", True),
        ("i/o timeout", True),
        ("ReadTimeout", True),
        ("readtimeout", True),
        ("openai.APITimeoutError: no answer", True),
        ("subprocess.TimeoutExpired", True),
        ("java.net.SocketTimeoutException", True),
        ("ESOCKETTIMEDOUT", True),
        ("TIMEOUTERROR", True),
        ("request_timeout", True),
        ("request_timed_out", True),
        ("timeout=30 exceeded", True),
        ("all timeouts used up", True),
        ("runtimeoutput", False),
        ("RUNTIMEOUTPUT is empty", False),
        ("RuntimeOutputError", False),
        ("runtime output is invalid", False),
        ("runtime out of memory", False),
        ("at this time out of stock", False),
        ("at this time out-of-stock", False),
        ("failed 3 times out of 5", False),
        ("no lifetime outage", False),
        ("CancelledError", False),
        ("DEADLINE_EXCEEDED", True),
        ("504 Gateway Timeout", True),
        ("HTTP status 504", True),
        ("请求超时", True),
        ("order 504 not found", False),
        ("the deadline for returns is over", False),
        ("permission denied", False),
        ("", False),
        (None, False),
    ],
)
def test_an_error_text_tells_a_timeout(error: str | None, verdict: bool) -> None:
    """Texts of common libraries are known; numbers alone prove nothing."""
    assert is_timeout(error) is verdict


SLOW = "the request timed out"


def failing(*calls: tuple[str, str | None], error: str | None = None, ok: bool = False) -> list[Any]:
    """Make a run of calls (tool or ``model``, error) whose root has this error."""
    steps = Steps(1)
    for n, (tool, told) in enumerate(calls):
        if tool == "model":
            steps.model(3 * n + 1, 3 * n + 2, parent="ff", ok=told is None, error=told)
        elif tool == "handoff":
            steps.tool("transfer_to_x", 3 * n + 1, 3 * n + 2, parent="ff", kind="handoff", to_agent="x", error=told)
        else:
            steps.tool(tool, 3 * n + 1, 3 * n + 2, parent="ff", args={"n": 1}, error=told)
    steps.agent("ticket-agent", 0, 100, span_id="ff", ok=ok, error=error, variant="v1")
    return steps.made


@pytest.mark.parametrize(
    ("calls", "error", "stages"),
    [
        ((("read_ticket", SLOW),), None, {"tool": 1}),
        ((("read_ticket", SLOW), ("read_ticket", SLOW), ("read_ticket", SLOW)), SLOW, {"tool": 1, "retries": 2}),
        ((("read_ticket", SLOW), ("notify", SLOW)), None, {"tool": 2}),
        ((("read_ticket", None), ("model", SLOW)), SLOW, {"model": 1}),
        ((("model", None), ("model", "rate limited")), SLOW, {"run": 1}),
        ((("read_ticket", "not found"),), "deadline exceeded", {"run": 1}),
        ((("handoff", SLOW),), None, {}),
        ((("read_ticket", None),), "not found", {}),
        ((), SLOW, {"run": 1}),
    ],
)
def test_a_timeout_counts_where_it_arose(
    calls: tuple[tuple[str, str | None], ...], error: str | None, stages: dict[str, int]
) -> None:
    """A run counts as timed out only where no call of it did; metrics and the system page say the same."""
    scrape = Scrape()
    scrape.feed(failing(*calls, error=error))
    closed = scrape.close()
    vitals = Vitals(Health())
    vitals.publish(closed)
    assert Counter(timeouts(closed[0])) == stages
    expected = dict.fromkeys(STAGES, 0) | stages
    assert vitals.shown()["timeouts"] == expected
    assert {stage: scrape.task_value("reach_timeouts_total", "v1", stage=stage) for stage in STAGES} == expected


def test_a_run_that_an_outer_span_saw_time_out_timed_out() -> None:
    """The root may be a request or a chain around steps of which no agent tells."""
    steps = Steps(1)
    steps.tool("read_ticket", 1, 2, parent="web", args={"n": 1})
    steps.add("other", 0, 9, span_id="web", ok=False, error=SLOW)
    scrape = Scrape()
    scrape.feed(steps.made)
    (closed,) = scrape.close()
    assert list(timeouts(closed)) == ["run"]


def test_a_model_call_that_two_spans_report_timed_out_once() -> None:
    """A framework's span stands around the SDK's of the same call."""
    steps = Steps(1)
    steps.model(2, 9, parent="framework", ok=False, error=SLOW)
    steps.model(1, 10, parent="ff", span_id="framework", ok=False, error=SLOW)
    steps.agent("ticket-agent", 0, 100, span_id="ff", ok=False, error=SLOW)
    scrape = Scrape()
    scrape.feed(steps.made)
    (closed,) = scrape.close()
    assert list(timeouts(closed)) == ["model"]
    assert scrape.total("reach_model_duration_seconds_count") == 1


def test_a_run_that_ended_well_did_not_time_out() -> None:
    """Words of a timeout in the text of a root that ended well prove nothing."""
    scrape = Scrape()
    scrape.feed(failing(error=SLOW, ok=True))
    (closed,) = scrape.close()
    assert list(timeouts(closed)) == []

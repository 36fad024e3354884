"""A real Alertmanager keeps back what another alert says already, and nothing else."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import programs
from tools.stack.ports import HOST, choose_any
from tools.stack.process import DIRECT, Part, answers

pytestmark = pytest.mark.e2e

CONFIG = Path(__file__).parents[2] / "dashboards" / "alertmanager" / "alertmanager.yml"
PATIENCE_SECONDS = 20.0
SETTLED_SECONDS = 0.5  # its inhibitor takes alerts up beside its API: the first answer may be without it

LOW = {"alertname": "ReachHighLayerLow", "task": "t", "severity": "critical"}
COVERAGE = {"alertname": "ReachCoverageDropped", "task": "t", "severity": "warning"}
STALLED = {"alertname": "ReachMilestoneStalled", "task": "t", "milestone": "m", "severity": "warning"}
OTHER_TASK = {"alertname": "ReachCoverageDropped", "task": "u", "severity": "warning"}
LEAK = {"alertname": "ReachSensitiveDataLeak", "task": "t", "action": "found", "severity": "critical"}
MASKED = {"alertname": "ReachSensitiveDataLeak", "task": "t", "action": "masked", "severity": "warning"}
ALL_DOWN = {"alertname": "ReachScorerDown", "scope": "all", "severity": "critical"}
ONE_DOWN = {"alertname": "ReachScorerDown", "scope": "one", "instance": "a", "severity": "warning"}
DROPPING = {"alertname": "ReachScorerDropping", "instance": "a", "lost": "spans_dropped", "severity": "warning"}
BLIND = {"alertname": "ReachNoRuns", "severity": "critical"}
SILENT = {"alertname": "ReachNoRuns", "task": "t", "severity": "warning"}
QUEUE = {"alertname": "QueueTooLong", "task": "t", "severity": "critical"}
STAGING = {"job": "reach-otel-staging"}
NORTH, SOUTH = {"cluster": "north"}, {"cluster": "south"}


def of(alert: dict[str, str], *more: dict[str, str]) -> dict[str, str]:
    """Return an alert as Prometheus sends it, with the job that it is about."""
    return {"job": "reach-otel", **alert, **{name: value for labels in more for name, value in labels.items()}}


class Alertmanager:
    """A running Alertmanager with the committed configuration."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/api/v2/alerts"

    def tell(self, *alerts: dict[str, str]) -> list[dict[str, str]]:
        """Raise alerts; return those that nothing keeps back, in the order given."""
        body = json.dumps([{"labels": labels} for labels in alerts]).encode()
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"})
        DIRECT.open(request, timeout=5).close()
        deadline = time.monotonic() + PATIENCE_SECONDS
        last, since = None, 0.0
        while time.monotonic() < deadline:
            with DIRECT.open(self._url, timeout=5) as answer:
                found: list[dict[str, Any]] = json.load(answer)
            if len(found) == len(alerts) and not [a for a in found if a["status"]["state"] == "unprocessed"]:
                free = [alert["labels"] for alert in found if not alert["status"]["inhibitedBy"]]
                left = [labels for labels in alerts if labels in free]
                if left != last:
                    last, since = left, time.monotonic()
                elif time.monotonic() - since > SETTLED_SECONDS:
                    return left
            time.sleep(0.05)
        pytest.fail(f"Alertmanager did not take {alerts}")


@pytest.fixture
def alertmanager(tmp_path: Path) -> Iterator[Alertmanager]:
    program = programs.need("alertmanager")
    address = f"{HOST}:{choose_any(['alertmanager'])['alertmanager']}"
    command = (
        program,
        f"--config.file={CONFIG}",
        f"--storage.path={tmp_path / 'data'}",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
    )
    part = Part("alertmanager", command, tmp_path / "log", is_ready=answers(f"http://{address}/-/ready"))
    part.start()
    try:
        part.wait()
        yield Alertmanager(f"http://{address}")
    finally:
        part.stop()


@pytest.mark.parametrize(
    ("told", "left"),
    [
        pytest.param([LOW, COVERAGE, STALLED, OTHER_TASK], [LOW, STALLED, OTHER_TASK], id="the same of one task"),
        pytest.param([LEAK, MASKED], [LEAK], id="a leak and what was masked"),
        pytest.param([COVERAGE, MASKED], [COVERAGE, MASKED], id="nothing else of the task"),
        pytest.param([ALL_DOWN, LOW, STALLED, LEAK, DROPPING, SILENT, BLIND], [ALL_DOWN], id="no scorer is up"),
        pytest.param([ONE_DOWN, LOW, DROPPING, BLIND], [ONE_DOWN, LOW, DROPPING, BLIND], id="one of several is down"),
        pytest.param([ALL_DOWN, QUEUE], [ALL_DOWN, QUEUE], id="somebody else's alert has a task"),
    ],
)
def test_what_is_kept_back(alertmanager: Alertmanager, told: list[dict[str, str]], left: list[dict[str, str]]) -> None:
    """No alert about runs while no scorer is up; one message for one fault; the rest goes out."""
    assert alertmanager.tell(*map(of, told)) == [*map(of, left)]


@pytest.mark.parametrize(
    ("of_one", "of_the_other"),
    [
        pytest.param({}, STAGING, id="another job"),
        pytest.param(NORTH, SOUTH, id="another cluster"),
        pytest.param({}, NORTH, id="a cluster that has a name"),
    ],
)
def test_nothing_is_kept_back_for_what_is_elsewhere(
    alertmanager: Alertmanager, of_one: dict[str, str], of_the_other: dict[str, str]
) -> None:
    """A staging system without scorers, or with a leak, keeps back its own alerts and none of production."""
    faults = [of(alert, of_one) for alert in (ALL_DOWN, LOW, LEAK)]
    same = [of(alert, of_one) for alert in (BLIND, COVERAGE, MASKED)]
    other = [of(alert, of_the_other) for alert in (LOW, COVERAGE, BLIND, MASKED)]
    assert alertmanager.tell(*faults, *same, *other) == [faults[0], other[0], *other[2:]]
    # COVERAGE of the other is kept back by LOW of the other.

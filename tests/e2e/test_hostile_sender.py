"""Let a sender who makes up every name it sends loose on a running service, over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.hostile import ON_SPANS, RUNS, TASK, check, flood, samples_of, total
from tests.support.service import JSON, Served

pytestmark = pytest.mark.e2e

BUDGET = 40
ACCEPT = {False: "text/plain", True: "application/openmetrics-text; version=1.0.0"}


@pytest.mark.parametrize("variants", [None, ("release-3", ON_SPANS, "release-99")])
def test_a_hostile_sender_fills_no_metric(tmp_path: Path, variants: tuple[str, ...] | None) -> None:
    """What was sent shows in no label; the budget holds; what is beyond is counted; sums are those of what was sent."""
    (tmp_path / "ticket.task.yaml").write_text(TASK, encoding="utf-8")
    flags = ["--task", str(tmp_path), "--set", f"label_budget={BUDGET}", "--set", "grace=0"]
    if variants is not None:
        flags += ["--set", f"variants={','.join(variants)}"]
    bodies, sums = flood()
    with Served(tmp_path, *flags) as served:
        for body in bodies:
            assert served.ask("POST", "/v1/traces", body.encode(), JSON)[0] == 200
        served.until(lambda: served.metrics()["reach_runs_total"] >= RUNS, "all verdicts")
        for is_openmetrics, accept in ACCEPT.items():
            _, headers, text = served.ask("GET", "/metrics", headers={"Accept": accept})
            assert headers["content-type"].startswith(accept.split(";")[0])
            samples = samples_of(text.decode(), is_openmetrics=is_openmetrics)
            check(samples, sums, BUDGET, variants)
            assert total(samples, "reach_service_requests_total", signal="traces", code="200") == RUNS
            assert total(samples, "reach_scorer_spans_received_total") == sum(body.count('"spanId"') for body in bodies)

"""What panels of the dashboards show is worked out by Prometheus itself, over series made up here."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support import panels, programs

SHOWN = {"__rate_interval": "5m", "__range": "1h", "task": ".*", "variant": ".*"}
OF = 'job="reach-otel", instance="a", task="t"'


def shows(tmp_path: Path, panel: str, series: dict[str, str], value: float, labels: str = "{}") -> None:
    """Hold what each query of a panel gives after 40 min against one value, with promtool."""
    found = [query for query in panels.queries() if query.panel == panel]
    assert found, f"no panel is called {panel}"
    asked = [f"round({panels.interpolate(query.expr, SHOWN)}, 0.001)" for query in found]
    test: dict[str, Any] = {
        "rule_files": [str(panels.RULES / "recording.yml")],
        "evaluation_interval": "15s",
        "tests": [
            {
                "interval": "15s",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": [
                    {"expr": expr, "eval_time": "40m", "exp_samples": [{"labels": labels, "value": value}]}
                    for expr in asked
                ],
            }
        ],
    }
    file = tmp_path / "panel.yml"
    file.write_text(json.dumps(test), encoding="utf-8")  # which is YAML, too
    command = [str(programs.need("promtool")), "test", "rules", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("panel", "series"),
    [
        ("Violations", f'reach_violations_total{{{OF}, variant="v2", rule="forbidden_tool"}}'),
        (
            "Sensitive values masked",
            f'reach_sensitive_total{{{OF}, variant="v2", kind="email", where="tool", action="masked"}}',
        ),
    ],
)
def test_what_an_alert_counts_is_on_its_panel(tmp_path: Path, panel: str, series: str) -> None:
    """The first case of a series that begins with it is shown, also when its quarter of an hour has passed."""
    others = f'reach_violations_total{{{OF}, variant="v1", rule="tool_not_allowed"}}'
    masked = f'reach_sensitive_total{{{OF}, variant="v1", kind="email", where="tool", action="masked"}}'
    up = 'up{job="reach-otel", instance="a"}'
    shows(tmp_path, panel, {up: "1x160", series: "_x79 1x80", others: "0x160", masked: "0x160"}, 1)


def test_what_is_counted_without_a_rule_is_shown_all_the_same(tmp_path: Path) -> None:
    """Several quarters of an hour add up; and before the rule has held anything the counter is shown."""
    series = f'reach_violations_total{{{OF}, variant="v1", rule="forbidden_tool"}}'
    # 160 scrapes in 40 min, one each; `increase` over an hour of which 40 min are there.
    shows(tmp_path, "Violations", {series: "0+1x160"}, 160)


@pytest.mark.parametrize(
    ("panel", "series", "labels"),
    [
        (
            "Success rate",
            {
                f'reach_runs_total{{{OF}, variant="v1", outcome="success"}}': "0+1x160",
                f'reach_runs_total{{{OF}, variant="overflow", outcome="overflow"}}': "0+1x160",
            },
            "{}",
        ),
        (
            "Share of actions by class",
            {
                f'reach_actions_total{{{OF}, variant="v1", class="effective"}}': "0+1x160",
                f'reach_actions_total{{{OF}, variant="overflow", class="overflow"}}': "0+1x160",
            },
            '{class="effective"}',
        ),
    ],
)
def test_what_is_in_overflow_is_no_failure(tmp_path: Path, panel: str, series: dict[str, str], labels: str) -> None:
    """Half of it found no label room: of the other half all is well, and that is what is shown."""
    shows(tmp_path, panel, series, 1, labels)

"""Every query of every panel and rule, asked of a real Prometheus that scraped a real run."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request

import pytest

from reach_otel.publish import catalog
from tests.support import panels, programs, promql
from tests.support.otlp import Trace
from tools.stack.process import DIRECT
from tools.stack.stack import TASK as DEMO_TASK
from tools.stack.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SCALE: Final = 20
"""An hour of the rules passes in three minutes."""

PATIENCE_SECONDS: Final = 240.0
TASK: Final = "ticket-handling"
AGENTS: Final = ("--agents", "8", "--degrade-after", "20", "--pace", "0.4")
RATE: Final = "3s"  # four scrapes, as Grafana has it
SHOWN: Final = "2m"
LATE_AFTER: Final = 8  # seconds: well beyond the grace after which a run is closed

EMPTY_PANELS: Final = {
    "reach-scorer / Label overflow / A": "a label overflows only under a sender that makes up names",
    "reach-scorer / Collector: spans given up / A": "counted from the first one on; here every span arrives",
}
"""Queries of panels that may be empty in this run, and why."""

EMPTY_RULES: Final[dict[str, str]] = {}
"""Recording rules that may be empty in this run, and why."""

EMPTY_OPERANDS: Final = {
    'task_action:reach_sensitive:increase15m{action!~"masked|overflow"}': "nothing counts values that were found only",
}
"""Series that alerts read and that may not be there in this run, and why."""

EMPTY_DOTS: Final[dict[str, str]] = {}
"""Graphs that ask for exemplars and may get none in this run, and why."""

NOT_SCRAPED: Final = {
    "reach_scorer_label_overflow_total": "has a series for each metric whose labels overflowed: here for none",
}
"""Metrics of the catalogue that a scorer may not expose in this run, and why."""

HISTOGRAMS: Final = {
    metric.name for metric in (*catalog.METRICS, *catalog.SERVICE_METRICS) if metric.type == "histogram"
}


class Api(NamedTuple):
    """The HTTP API of one Prometheus."""

    url: str

    def get(self, path: str, **asked: str) -> Any:
        """Return the ``data`` of an answer; a query that Prometheus refuses fails with what it says."""
        try:
            with DIRECT.open(f"{self.url}/api/v1/{path}?{urlencode(asked)}", timeout=30) as answer:
                return json.load(answer)["data"]
        except HTTPError as error:
            raise AssertionError(f"{asked}: {error.read().decode()}") from None

    def now(self, expr: str) -> bool:
        """Tell whether an instant query gives a number, and not only NaN."""
        return any(_finite(sample["value"]) for sample in self.get("query", query=expr)["result"])

    def lately(self, expr: str) -> bool:
        """Tell whether a graph of the last half minute has a point."""
        end = time.time()
        found = self.get("query_range", query=expr, start=f"{end - 30}", end=f"{end}", step="1")["result"]
        return any(_finite(point) for series in found for point in series["values"])

    def dots(self, expr: str) -> bool:
        """Tell whether there are exemplars for an expression, each with the trace that it leads to."""
        end = time.time()
        found = self.get("query_exemplars", query=expr, start=f"{end - 120}", end=f"{end}")
        return any("trace_id" in dot["labels"] for series in found for dot in series["exemplars"])


class Mishaps(threading.Thread):
    """Send each second what the demo's agents never do: a forbidden call, a handoff, a card number, late spans."""

    def __init__(self, collector: str) -> None:
        super().__init__(daemon=True)
        self._url = f"{collector}/v1/traces"
        self._ended = threading.Event()

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()

    def run(self) -> None:
        traces: list[Trace] = []
        while not self._ended.wait(1):
            trace = Trace(f"mishap {len(traces)}", agent="ticket-agent")
            trace.offset_ns = time.time_ns() - 10**9
            trace.call(
                "read_ticket", {"ticket_id": len(traces), "note": "paid with 4111 1111 1111 1111"}, {"status": "ok"}
            )
            trace.call("drop_table", {"name": "tickets"}, {"ok": True})
            handoff = {"gen_ai.operation.name": "handoff", "gen_ai.handoff.to_agent": "clerk"}
            trace.span("handoff", handoff, start=0.3, end=0.4, parent=trace.root)
            trace.call("list_orders", start=0.5, seconds=-0.2)  # ends before it begins
            spans = trace.end(says="passed on").spans
            if len(traces) >= LATE_AFTER:
                late = traces[-LATE_AFTER]
                late.call("list_orders", {"late": True}, {"ok": True})
                spans = [*spans, late.spans[-1]]
            traces.append(trace)
            body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
            DIRECT.open(Request(self._url, body, {"Content-Type": "application/json"}), timeout=30).close()


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A whole stack with agents that get worse, on a task that declares all it can."""
    for name in ("otelcol", "prometheus", "alertmanager"):
        programs.need(name)
    folder = tmp_path_factory.mktemp("queries")
    task = folder / "ticket.task.yaml"
    declared = "outcome: {duration_seconds_max: 30}\nforbidden_tools: [drop_table]\n"
    task.write_text(f"{DEMO_TASK.read_text(encoding='utf-8')}\n{declared}", encoding="utf-8")
    with Stack(folder / "stack", scorers=2, time_scale=SCALE, tasks=[task]) as stack, Mishaps(stack.collector_http):
        stack.start_agents(*AGENTS)
        yield Api(stack.prometheus)
        stack.check()


@pytest.fixture(scope="module")
def variables(prometheus: Api) -> dict[str, dict[str, str]]:
    """What Grafana would put in for each dashboard's variables, after asking for their values."""
    found = {}
    for board in panels.boards().values():
        values = {"__rate_interval": RATE, "__range": SHOWN, "datasource": "reach-prometheus"}
        for variable in board["templating"]["list"][1:]:
            query = panels.interpolate(variable["query"]["query"], values)
            options = _until(partial(label_values, prometheus, query), f"values of {query}")
            values[variable["name"]] = variable["allValue"] if variable["includeAll"] else options[0]
        found[board["uid"]] = values
    return found


def test_every_variable_has_values(variables: dict[str, dict[str, str]]) -> None:
    """The lists above a dashboard are filled; the Task dashboard is about one task from the start."""
    assert variables["reach-task"]["task"] == TASK
    assert variables["reach-fleet"]["task"] == ".*"
    assert variables["reach-scorer"]["instance"] == ".*"


def test_every_query_of_every_panel_returns_data(prometheus: Api, variables: dict[str, dict[str, str]]) -> None:
    """No panel is empty, but for those that are listed with a reason; and no reason is out of date."""
    asked = {
        query.name: (prometheus.now if query.instant else prometheus.lately, query.expr, variables[query.board])
        for query in panels.queries()
    }
    empty = _empty(
        {name: (ask, panels.interpolate(expr, values)) for name, (ask, expr, values) in asked.items()}, EMPTY_PANELS
    )
    assert empty == set(EMPTY_PANELS)


def test_a_chosen_variant_narrows_what_is_shown(prometheus: Api, variables: dict[str, dict[str, str]]) -> None:
    """With a variant that is not there, what is counted by variant is empty; recorded series are not."""
    nobody = {name: {**values, "variant": "nobody"} for name, values in variables.items()}
    variant = {m.name for m in (*catalog.METRICS,) if "variant" in m.all_labels}
    for query in panels.queries():
        uses = promql.uses(panels.interpolate(query.expr, nobody[query.board]))
        if all(_base(use.metric) in variant for use in uses):
            assert not prometheus.now(panels.interpolate(query.expr, nobody[query.board])), query.name


def test_every_recording_rule_holds_something(prometheus: Api) -> None:
    """What alerts and panels build on is there; each rule as Prometheus has loaded it."""
    rules = [rule for rule in _rules(prometheus) if rule["type"] == "recording"]
    assert {rule["name"] for rule in rules} == {rule["record"] for rule in panels.rules() if "record" in rule}
    # Some are made of several rules of one name.
    asked = {f"{rule['name']} {n}": (prometheus.now, rule["query"]) for n, rule in enumerate(rules)}
    known = [name for name in asked if name.partition(" ")[0] in EMPTY_RULES]
    empty = {name.partition(" ")[0] for name in _empty(asked, known)}
    assert empty == set(EMPTY_RULES)
    assert [rule["name"] for rule in _rules(prometheus) if rule["health"] != "ok"] == []


def test_every_alert_can_be_evaluated_and_reads_what_is_there(prometheus: Api) -> None:
    """An alert that does not fire is empty, so each series that it reads is asked for instead: none can be missing."""
    rules = [rule for rule in _rules(prometheus) if rule["type"] == "alerting"]
    assert {rule["name"] for rule in rules} == {rule["alert"] for rule in panels.rules() if "alert" in rule}
    operands = {}
    for rule in rules:
        prometheus.get("query", query=rule["query"])
        for use in promql.uses(rule["query"]):
            matchers = ",".join(f'{label}{sign}"{value}"' for label, sign, value in use.matchers)
            operands[f"{use.metric}{{{matchers}}}"] = (prometheus.now, f"{use.metric}{{{matchers}}}")
    assert _empty(operands, EMPTY_OPERANDS) == set(EMPTY_OPERANDS)


def test_dots_are_asked_for_wherever_there_are_any(prometheus: Api, variables: dict[str, dict[str, str]]) -> None:
    """Each graph of one metric that has exemplars shows them, with the id of a trace; and none asks in vain."""
    graphs = {
        query.name: (query, panels.interpolate(query.expr, variables[query.board]))
        for query in panels.queries()
        if query.kind in ("timeseries", "heatmap")
        and len({use.metric for use in promql.uses(panels.interpolate(query.expr, variables[query.board]))}) == 1
    }
    asking = {name: (prometheus.dots, expr) for name, (query, expr) in graphs.items() if query.exemplar}
    assert _empty(asking, EMPTY_DOTS) == set(EMPTY_DOTS)
    without = [name for name, (query, expr) in graphs.items() if not query.exemplar and prometheus.dots(expr)]
    assert without == []


def test_every_metric_that_prometheus_scraped_is_on_a_panel_or_excused(prometheus: Api) -> None:
    """What a scorer really exposes, and not only what the catalogue lists."""
    scraped = set(prometheus.get("label/__name__/values", **{"match[]": '{job="reach-otel"}'}))
    rules = {rule["record"] for rule in panels.rules() if "record" in rule}
    ours = {_base(name) for name in scraped - rules if not name.startswith(("scrape_", "ALERTS"))}
    samples = {"__rate_interval": RATE, "__range": SHOWN, "task": ".*", "variant": ".*", "instance": ".*"}
    shown = {
        _base(use.metric) for query in panels.queries() for use in promql.uses(panels.interpolate(query.expr, samples))
    }
    assert ours - shown == ours & set(panels.NOT_SHOWN)
    assert {metric.name for metric in (*catalog.METRICS, *catalog.SERVICE_METRICS)} - ours <= set(NOT_SCRAPED)


def label_values(prometheus: Api, query: str) -> list[str]:
    """Answer ``label_values(selector, label)`` as Grafana does."""
    selector, _, label = query.removeprefix("label_values(").removesuffix(")").rpartition(", ")
    found: list[str] = prometheus.get(f"label/{quote(label)}/values", **{"match[]": selector})
    return sorted(found)


def _rules(prometheus: Api) -> list[dict[str, Any]]:
    return [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]


def _base(name: str) -> str:
    """Return the metric of a series: a histogram has three."""
    for suffix in ("_bucket", "_sum", "_count"):
        if name.endswith(suffix) and (base := name.removesuffix(suffix)) in HISTOGRAMS:
            return base
    return name


def _empty(asked: Mapping[str, tuple[Callable[[str], bool], str]], known: Collection[str]) -> set[str]:
    """Return what stays empty: asked again until all but the known ones have data, or patience ends."""
    missing = set(asked)

    def ask() -> bool:
        missing.difference_update([name for name in missing if asked[name][0](asked[name][1])])
        return missing <= set(known)

    deadline = time.monotonic() + PATIENCE_SECONDS
    while not ask() and time.monotonic() < deadline:
        time.sleep(1)
    return missing


def _until(condition: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.2)
    return found


def _finite(point: list[Any]) -> bool:
    return math.isfinite(float(point[1]))

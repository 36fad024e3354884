"""Hold the dashboards to their conventions, over the JSON that Grafana reads."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
import typing
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards import __main__ as command
from dashboards import house
from reach_otel.publish import catalog
from tests.support import panels, promql

UIDS = {
    "fleet.json": "reach-fleet",
    "task.json": "reach-task",
    "system.json": "reach-system",
    "scorer.json": "reach-scorer",
}
BOARDS = panels.boards()
PANELS = [
    pytest.param(panel, id=f"{board['uid']}: {panel['title']}")
    for board in BOARDS.values()
    for panel in panels.panels(board)
]
QUERIES = [pytest.param(query, id=query.name) for query in panels.queries()]
SAMPLE = {"__rate_interval": "1m", "__range": "1h", "task": ".*", "variant": ".*", "instance": ".*"}
SCRAPED = frozenset({"job", "instance"})
PROVISIONING = panels.ROOT / "dashboards" / "provisioning"


def on_boards() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("board", [pytest.param(board, id=board["uid"]) for board in BOARDS.values()])


def parsed(query: panels.Query) -> list[promql.Use]:
    return promql.uses(panels.interpolate(query.expr, SAMPLE))


def exposed() -> dict[str, frozenset[str]]:
    """Every series name that a scorer exposes, with its labels."""
    found: dict[str, frozenset[str]] = {}
    for metric in (*catalog.METRICS, *catalog.SERVICE_METRICS):
        labels = frozenset(metric.all_labels) | SCRAPED
        if metric.type == "histogram":
            found |= {
                f"{metric.name}_sum": labels,
                f"{metric.name}_count": labels,
                f"{metric.name}_bucket": labels | {"le"},
            }
        else:
            found[metric.name] = labels
    return found


def known() -> dict[str, frozenset[str]]:
    """Every series name that a query may use, with its labels: exposed, recorded, and of others."""
    found = exposed() | {name: frozenset(labels) for name, labels in panels.FOREIGN.items()}
    recorded = [rule for rule in panels.rules() if "record" in rule]
    for _ in range(5):  # a rule may read one that is written further down
        for rule in recorded:
            labels = promql.labels_of(rule["expr"], lambda name: found.get(name, frozenset()))
            found[rule["record"]] = found.get(rule["record"], frozenset()) | labels | set(rule.get("labels", ()))
    return found


KNOWN = known()


# -- the files


def test_the_committed_files_are_what_the_code_builds() -> None:
    """The JSON in the repository is never behind its code."""
    assert list(command.differences()) == []


def test_the_check_tells_what_is_stale(tmp_path: Path) -> None:
    """A changed file, a missing one and one too many show in the diff; writing mends all three."""
    folder = tmp_path / "json"
    shutil.copytree(panels.FOLDER, folder)
    (folder / "fleet.json").write_text((folder / "fleet.json").read_text().replace("Tasks at high risk", "Old title"))
    (folder / "task.json").unlink()
    (folder / "gone.json").write_text("{}\n")
    diff = "".join(command.differences(folder))
    assert '-      "title": "Old title"' in diff
    assert '+      "title": "Tasks at high risk"' in diff
    assert "+++ task.json (built)" in diff
    assert "--- gone.json (there)" in diff
    command.write(folder)
    assert list(command.differences(folder)) == []


def test_the_command_line_says_when_all_is_well() -> None:
    """`python -m dashboards --check` exits with 0; a flag it does not know is refused."""
    check = subprocess.run([sys.executable, "-m", "dashboards", "--check"], cwd=panels.ROOT, check=False)
    assert check.returncode == 0
    assert command.main(["--chekc"]) == 2


# -- the frame


def test_each_dashboard_has_its_own_fixed_uid() -> None:
    """Links in alerts and between dashboards go by the uid."""
    assert {name: board["uid"] for name, board in BOARDS.items()} == UIDS


@on_boards()
def test_it_can_be_provisioned_as_it_is(board: dict[str, Any]) -> None:
    """Nothing is to be filled in at import, and nothing is left of the Grafana it may have come from."""
    assert not {"__inputs", "__requires", "__elements", "id", "version", "gnetId"} & set(board)
    assert board["schemaVersion"] == 41
    assert board["refresh"] == "30s"
    assert board["timezone"] == "browser"
    assert board["tags"] == ["reach-otel"]
    assert board["time"] == {"from": "now-1h", "to": "now"}
    assert board["title"]
    assert board["description"].endswith((".", "?"))


@on_boards()
def test_variables_are_the_same_everywhere(board: dict[str, Any]) -> None:
    """The data source can be chosen, and task and variant go with every link."""
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    assert list(variables)[:3] == ["datasource", "task", "variant"]
    assert variables["datasource"]["type"] == "datasource"
    assert variables["datasource"]["query"] == "prometheus"
    assert variables["datasource"]["current"]["value"] == "reach-prometheus"
    for name in list(variables)[1:]:
        assert variables[name]["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert variables[name]["query"]["query"].startswith("label_values(")
        assert variables[name]["refresh"] == 2  # with the time that is shown: what is new turns up
    assert variables["variant"]["multi"]
    assert variables["variant"]["includeAll"]
    assert bool(variables["task"]["multi"]) == (board["uid"] != "reach-task")


@on_boards()
def test_each_leads_to_the_others_with_variables_and_time(board: dict[str, Any]) -> None:
    """Whoever goes from one to the next stays with the same task, variant and hour."""
    assert {link["url"] for link in board["links"]} == {f"/d/{uid}" for uid in UIDS.values() if uid != board["uid"]}
    assert all(link["includeVars"] and link["keepTime"] and link["type"] == "link" for link in board["links"])


@on_boards()
def test_panels_lie_side_by_side(board: dict[str, Any]) -> None:
    """No panel covers another or leaves the grid, every row holds some, ids and titles are unique."""
    cells = Counter(
        (x, y)
        for panel in board["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    )
    assert cells.most_common(1)[0][1] == 1
    assert max(x for x, _ in cells) < 24
    assert len(cells) == 24 * (1 + max(y for _, y in cells)), "there is a hole"
    kinds = [panel["type"] for panel in board["panels"]]
    assert kinds[0] == "row"
    assert kinds[-1] != "row"
    assert ("row", "row") not in itertools.pairwise(kinds)
    for key in ("id", "title"):
        assert Counter(panel[key] for panel in board["panels"]).most_common(1)[0][1] == 1


@on_boards()
def test_everything_has_the_type_that_grafana_gives_it(board: dict[str, Any]) -> None:
    """Read into the SDK's types and written again it is the same: no key is unknown, no value misfits."""
    register_default_plugins()
    model = Dashboard.from_json(board)
    again = json.loads(json.dumps(model, cls=JSONEncoder))
    for mark, wanted in zip(again["annotations"]["list"], board["annotations"]["list"], strict=True):
        mark |= {key: wanted[key] for key in ("titleFormat", "textFormat", "step")}  # Prometheus' own
    for panel in panels.panels(again):
        if panel["fieldConfig"]["defaults"].get("custom") == {}:  # the SDK puts it there
            del panel["fieldConfig"]["defaults"]["custom"]
    assert again == board
    assert list(panels.misfits(model, Dashboard, board["uid"])) == []


def test_misfits_are_found() -> None:
    """The check of types can fail: deep down, in options, in enumerations."""
    register_default_plugins()
    board = json.loads((panels.FOLDER / "fleet.json").read_text())
    shown = next(panel for panel in panels.panels(board) if panel["type"] == "timeseries")
    shown["gridPos"]["w"] = "8"
    shown["options"]["legend"]["displayMode"] = "lists"
    shown["fieldConfig"]["defaults"]["custom"]["fillOpacity"] = "much"
    found = "\n".join(panels.misfits(Dashboard.from_json(board), Dashboard, "fleet"))
    assert "grid_pos.w: '8'" in found
    assert "'lists'" in found
    assert "'much'" in found


# -- the panels


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_explains_itself(panel: dict[str, Any]) -> None:
    """Title, a description in sentences, a unit, and the data source that was chosen above."""
    assert panel["description"].endswith("."), "a description is a sentence"
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    refs = [target["refId"] for target in panel["targets"]]
    assert refs == sorted(set(refs))
    assert refs
    for target in panel["targets"]:
        assert target["datasource"] == panel["datasource"]
        assert target["instant"] != target["range"]


@pytest.mark.parametrize("panel", [param for param in PANELS if param.values[0]["type"] == "table"])  # type: ignore[index]
def test_a_table_can_be_read(panel: dict[str, Any]) -> None:
    """Every column has a headline of its own and a unit, and none is a time or the name of a query."""
    organize = next(step["options"] for step in panel["transformations"] if step["id"] == "organize")
    headlines = organize["renameByName"]
    values = [f"Value #{target['refId']}" for target in panel["targets"]] if len(panel["targets"]) > 1 else ["Value"]
    assert set(values) <= set(headlines)
    assert organize["excludeByName"]["Time"]
    assert len(set(headlines.values())) == len(headlines)
    units = {
        override["matcher"]["options"]
        for override in panel["fieldConfig"]["overrides"]
        if any(each["id"] == "unit" for each in override["properties"])
    }
    assert units == {headlines[value] for value in values}
    assert all(target["format"] == "table" for target in panel["targets"])


# -- the queries


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_is_about_series_that_exist_with_exactly_these_labels(query: panels.Query) -> None:
    """No panel is empty because of a name that is written differently elsewhere."""
    for use in parsed(query):
        assert use.metric in KNOWN, f"{use.metric} is neither exposed nor recorded"
        assert use.labels <= KNOWN[use.metric], f"{use.metric} has no {set(use.labels - KNOWN[use.metric])}"


@pytest.mark.parametrize("query", QUERIES)
def test_windows_are_grafanas(query: panels.Query) -> None:
    """Rates are taken over what Grafana finds right for the graph, totals over the time that is shown."""
    windows = set(re.findall(r"\[([^\]]*)\]", query.expr))
    assert windows <= ({"$__range", "$__range:"} if query.instant else {"$__rate_interval"})
    for use in parsed(query):
        counts = use.metric.endswith(("_total", "_bucket", "_sum", "_count")) or use.metric.startswith(
            "otelcol_receiver"
        )
        if counts and use.metric != "reach_live_depth_sum":
            assert use.function in promql.COUNTING, f"{use.metric} is a counter"
        elif use.metric != "otelcol_exporter_send_failed_spans":
            assert use.function not in promql.COUNTING, f"{use.metric} is no counter"


@pytest.mark.parametrize("query", QUERIES)
def test_no_mean_of_ratios(query: panels.Query) -> None:
    """Replicas are summed, and ratios are sums over sums: `avg` would weigh an idle scorer like a busy one."""
    text = panels.interpolate(query.expr, SAMPLE)
    assert {op for op, _ in promql.aggregations(text)} <= {"sum", "max", "count", "topk"}
    assert "avg_over_time" not in text
    for op, inner in promql.aggregations(text):
        if op == "max":  # takes off labels of what there is once: a recorded ratio, a declared number, a moment
            assert len(promql.uses(inner)) == 1, "a maximum of something that should be summed"
            assert promql.uses(inner)[0].function is None


@pytest.mark.parametrize("query", QUERIES)
def test_task_and_variant_are_respected(query: panels.Query) -> None:
    """What is chosen above holds in every panel; recorded series are over all variants, and their panels say so."""
    chosen = {"task": '=~"$task', "variant": '=~"$variant"'}
    for use in parsed(query):
        for label in {"task", "variant"} & KNOWN[use.metric]:
            assert f"{use.metric}{{" in query.expr
            asked = re.search(rf"{use.metric}\{{([^}}]*)\}}", query.expr)
            assert asked
            assert f"{label}{chosen[label]}" in asked[1], f"{use.metric} is not narrowed to ${label}"
        if use.metric.startswith("task") and "variant" not in KNOWN[use.metric]:
            said = next(p.values[0]["description"] for p in PANELS if p.id == f"{query.board}: {query.panel}")  # type: ignore[index]
            assert "over all variants" in said


@pytest.mark.parametrize("query", [param for param in QUERIES if not param.values[0].instant])  # type: ignore[union-attr]
def test_lines_have_names(query: panels.Query) -> None:
    """Whatever tells the series of a graph apart stands in their names."""
    if query.kind == "annotation":
        return
    assert query.legend
    labels = promql.labels_of(panels.interpolate(query.expr, SAMPLE), lambda name: KNOWN[name])
    assert set(re.findall(r"{{(\w+)}}", query.legend)) <= labels | {"le"}
    one_task = {"task"} if query.board == "reach-task" else set()
    if query.kind != "heatmap":
        assert labels - one_task <= set(re.findall(r"{{(\w+)}}", query.legend)), query.legend


@pytest.mark.parametrize("query", [param for param in QUERIES if param.values[0].exemplar])  # type: ignore[union-attr]
def test_dots_are_about_what_the_line_is_about(query: panels.Query) -> None:
    """Traces are asked for where one metric is drawn over time; in a ratio they would belong to either."""
    assert not query.instant
    assert len({use.metric for use in parsed(query)}) == 1


def test_every_exposed_metric_is_on_a_panel_or_excused() -> None:
    """Nothing is measured that nobody sees, and no excuse outlives its reason."""
    shown = {use.metric for query in panels.queries() for use in parsed(query)}
    names = {metric.name for metric in (*catalog.METRICS, *catalog.SERVICE_METRICS)}
    seen = {name for name in names if {name, f"{name}_bucket", f"{name}_sum"} & shown}
    assert names - seen == names & set(panels.NOT_SHOWN)


def test_labels_that_a_query_asks_for_are_found() -> None:
    """The check of labels can fail: it sees what is grouped by, matched on, joined on, renamed and lent."""
    renamed = 'label_replace(sum by (a, b) (rate(x_total{c="1"}[1m])), "a", "$1", "d", "")'
    left, right = promql.uses(f"{renamed} / on (a) group_left (e) max by (a, e) (y)")
    assert (left.metric, set(left.labels)) == ("x_total", {"a", "b", "c", "d"})
    assert (right.metric, set(right.labels)) == ("y", {"a", "e"})
    assert promql.labels_of("sum without (a) (x)", lambda _: frozenset("abc")) == {"b", "c"}
    assert promql.labels_of("sum(x) / 2", lambda _: frozenset("abc")) == set()
    with pytest.raises(ValueError, match="unclosed"):
        promql.uses("sum by (")


# -- thresholds, and what is around


def alert(name: str) -> str:
    """The expressions of an alert, as one text."""
    return " ".join(rule["expr"] for rule in panels.rules() if rule.get("alert") == name)


@pytest.mark.parametrize("name", house.LIMITS)
def test_thresholds_are_where_the_alert_is(name: str) -> None:
    """A panel turns red where somebody is paged: the number is that of alerts.yml."""
    limit = house.LIMITS[name]
    compared = re.search(r"([a-z_]+:reach_[\w:]+)(?:{[^}]*})? ([<>]) ([\d.]+)", alert(name))
    assert compared, f"{name} compares nothing with a number"
    series, sign, number = compared.groups()
    assert float(number) == limit
    red = {"value": limit, "color": "red"} if sign == ">" else {"value": None, "color": "red"}
    judged = 0
    for param in PANELS:
        (panel,) = typing.cast("tuple[dict[str, Any]]", param.values)
        exprs = [target["expr"] for target in panel["targets"]]
        if panel["type"] in ("timeseries", "stat") and any(
            f"({series}{{" in expr and "bool" not in expr for expr in exprs
        ):
            steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
            assert red in steps, panel["title"]
            assert limit in [step["value"] for step in steps], panel["title"]
            judged += 1
    assert judged


def test_the_risk_mark_is_where_the_alert_is() -> None:
    """The mark in the table and the number of tasks at risk go by the same limit."""
    limit = house.LIMITS["ReachHighLayerLow"]
    marks = [query for query in panels.queries() if "< bool" in query.expr]
    assert {query.panel for query in marks} == {"Tasks at high risk", "Tasks in order of high-layer reach"}
    assert all(f"< bool {limit}" in query.expr for query in marks)


def test_data_sources_have_the_uids_that_dashboards_and_traces_go_by() -> None:
    """Prometheus and the trace store are found by uid; a dot leads from one to the other by the exemplar's label."""
    text = (PROVISIONING / "datasources" / "reach-otel.yml").read_text()
    sources = {source["uid"]: source for source in yaml.safe_load(text)["datasources"]}
    numbers, traces = sources["reach-prometheus"], sources["reach-traces"]
    assert (numbers["type"], numbers["url"]) == ("prometheus", "http://prometheus:9090")
    assert (traces["type"], traces["url"]) == ("jaeger", "http://jaeger:16686")
    (destination,) = numbers["jsonData"]["exemplarTraceIdDestinations"]
    assert (destination["name"], destination["datasourceUid"]) == ("trace_id", "reach-traces")
    prometheus = yaml.safe_load((panels.RULES.parent / "prometheus.yml").read_text())
    assert numbers["jsonData"]["timeInterval"] == prometheus["global"]["scrape_interval"]


def test_dashboards_are_provisioned_from_their_folder() -> None:
    """Grafana reads the files, into a folder of their own."""
    text = (PROVISIONING / "dashboards" / "reach-otel.yml").read_text()
    (provider,) = yaml.safe_load(text)["providers"]
    assert (provider["type"], provider["folder"]) == ("file", "reach-otel")
    assert provider["options"]["path"] == "/etc/grafana/dashboards"

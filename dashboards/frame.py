"""Give all dashboards the same frame: uid, variables, links between them, alerts as marks, rows of panels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from grafana_foundation_sdk.builders import dashboard as make
from grafana_foundation_sdk.models.dashboard import (
    AnnotationQuery,
    Dashboard,
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    GridPos,
    Panel,
    VariableHide,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from dashboards import queries
from reach_otel import names

COLUMNS: Final = 24
TAG: Final = "reach-otel"
DATASOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")
FIRING: Final = queries.series("ALERTS", 'alertname=~"Reach.*"', 'alertstate="firing"', 'task=~"$task|"')
"""Alerts that fire; those about no task, such as a scorer that is down, are always among them."""

TITLES: Final = {
    "reach-fleet": "Fleet: which tasks are in trouble",
    "reach-task": "Task: where runs stop",
    "reach-system": "System: latency, errors, safety",
    "reach-scorer": "Scorer: is the scoring itself well",
}


class Built(Protocol):
    """Anything that builds a panel."""

    def build(self) -> Panel: ...


class Row(NamedTuple):
    """Panels under one headline, left to right and then down."""

    title: str
    panels: tuple[Built, ...]


class Mark(AnnotationQuery):
    """An annotation from Prometheus: the SDK knows all but how its text is made."""

    def to_json(self) -> dict[str, object]:
        """Return what Grafana reads."""
        return {
            **super().to_json(),
            "titleFormat": "{{alertname}}",
            "textFormat": "{{task}} {{instance}}",
            "step": "15s",
        }


def frame(
    uid: str, description: str, rows: Iterable[Row], *, one_task: bool = False, instances: bool = False
) -> Dashboard:
    """Return a dashboard.

    ``one_task``: it is about a single task. ``instances``: it is about processes, and not about tasks at all.
    """
    builder = (
        make.Dashboard(TITLES[uid])
        .uid(uid)
        .description(description)
        .tags([TAG])
        .refresh("30s")
        .time("now-1h", "now")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .editable()
        .variables([_datasource(), _task(one=one_task, hidden=instances), _variant(hidden=instances)])
        .links([_link(other) for other in TITLES if other != uid])
    )
    if instances:
        builder.with_variable(_instance())
    model = builder.build()
    model.annotations.list_val = [_alerts()]
    model.panels = []
    _place(model, rows)
    return model


def _place(model: Dashboard, rows: Iterable[Row]) -> None:
    """Put rows below each other, and their panels from left to right as long as there is room."""
    assert model.panels is not None
    y = ident = 0
    for row in rows:
        ident += 1
        model.panels.append(make.Row(row.title).id(ident).grid_pos(GridPos(h=1, w=COLUMNS, x=0, y=y)).build())
        x, y, tallest = 0, y + 1, 0
        for built in row.panels:
            ident += 1
            panel = built.build()
            panel.id_val = ident
            assert panel.grid_pos is not None
            if x + panel.grid_pos.w > COLUMNS:
                x, y, tallest = 0, y + tallest, 0
            panel.grid_pos.x, panel.grid_pos.y = x, y
            x, tallest = x + panel.grid_pos.w, max(tallest, panel.grid_pos.h)
            model.panels.append(panel)
        y += tallest


def _datasource() -> make.DatasourceVariable:
    return (
        make.DatasourceVariable("datasource")
        .label("Data source")
        .type("prometheus")
        .current(VariableOption(selected=True, text="Prometheus", value="reach-prometheus"))
    )


def _task(*, one: bool, hidden: bool) -> make.QueryVariable:
    variable = _values("task", "Task", queries.series(names.RUNS_TOTAL), hidden=hidden)
    return variable if one else _all(variable)


def _variant(*, hidden: bool) -> make.QueryVariable:
    return _all(_values("variant", "Variant", queries.series(names.RUNS_TOTAL, queries.TASK), hidden=hidden))


def _instance() -> make.QueryVariable:
    return _all(_values("instance", "Process", queries.series(names.SCORER_BUILD_INFO), hidden=False))


def _values(name: str, label: str, selector: str, *, hidden: bool) -> make.QueryVariable:
    query = f"label_values({selector}, {name})"
    return (
        make.QueryVariable(name)
        .label(label)
        .datasource(DATASOURCE)
        .query({"qryType": 1, "query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery"})
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .hide(VariableHide.HIDE_VARIABLE if hidden else VariableHide.DONT_HIDE)
    )


def _all(variable: make.QueryVariable) -> make.QueryVariable:
    """Let several values be chosen, at first all; what turns up later is then among them."""
    every = VariableOption(selected=True, text=["All"], value=["$__all"])
    return variable.multi(True).include_all(True).all_value(".*").current(every)


def _link(uid: str) -> make.DashboardLink:
    """Lead to another of the dashboards, with the same variables and time."""
    return (
        make.DashboardLink(TITLES[uid].partition(":")[0])
        .type(DashboardLinkType.LINK)
        .url(f"/d/{uid}")
        .tooltip(TITLES[uid])
        .icon("dashboard")
        .include_vars(True)
        .keep_time(True)
    )


def _alerts() -> AnnotationQuery:
    return Mark(name="Alerts", datasource=DATASOURCE, enable=True, icon_color="red", expr=FIRING)

"""Make panels of seven kinds, all with title, description, unit and data source."""

from __future__ import annotations

from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    heatmap,
    prometheus,
    stat,
    statushistory,
    table,
    timeseries,
)
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models.common import (
    BarGaugeDisplayMode,
    BarGaugeValueMode,
    BigValueColorMode,
    BigValueGraphMode,
    GraphThresholdsStyleMode,
    StackingMode,
    VisibilityMode,
    VizOrientation,
)
from grafana_foundation_sdk.models.dashboard import DataTransformerConfig, DynamicConfigValue, FieldColorModeId
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode, HeatmapColorScale
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards import house, queries
from dashboards.frame import DATASOURCE
from dashboards.house import Column, Limit


def graph(
    title: str,
    description: str,
    unit: str,
    *targets: prometheus.Dataquery,
    limit: Limit | None = None,
    width: int = 8,
    stacked: bool = False,
    top: float | None = None,
) -> timeseries.Panel:
    """Draw lines over time; ``stacked`` for parts of a whole, ``top`` where the axis has an end."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit(unit)
        .min(0)
        .height(8)
        .span(width)
        .line_width(1)
        .fill_opacity(40 if stacked else 8)
        .show_points(VisibilityMode.AUTO)
        .legend(house.legend())
        .tooltip(house.tooltip())
        .targets(_lettered(targets))
    )
    if top is not None:
        panel.max(top)
    if stacked:
        panel.stacking(common.StackingConfig().mode(StackingMode.NORMAL).group("A"))
    if limit:
        panel.thresholds(limit.config()).thresholds_style(
            common.GraphThresholdsStyleConfig().mode(GraphThresholdsStyleMode.DASHED)
        )
    return panel


def quantiles(
    title: str, description: str, histogram: str, *, of: tuple[str, ...] = queries.PICKED, dots: bool = True
) -> timeseries.Panel:
    """Draw the quantiles of durations over time; with dots where the histogram names runs."""
    lines = [over_time(queries.quantile(q, histogram, of=of), name) for name, q in queries.QUANTILES.items()]
    return graph(title, description, house.SECONDS, *(map(exemplars, lines) if dots else lines))


def number(
    title: str,
    description: str,
    unit: str,
    expr: str,
    *,
    limit: Limit | None = None,
    width: int = 4,
    height: int = 4,
    none: str = "no runs",
) -> stat.Panel:
    """Show one number, of now or of all the time that is shown."""
    return (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit(unit)
        .no_value(none)
        .height(height)
        .span(width)
        .graph_mode(BigValueGraphMode.NONE)
        .color_mode(BigValueColorMode.VALUE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False).fields(""))
        .thresholds(house.thresholds(limit))
        .with_target(now(expr).ref_id("A"))
    )


def bars(
    title: str,
    description: str,
    unit: str,
    expr: str,
    *,
    by: tuple[str, ...],
    limit: Limit | None = None,
    top: float | None = None,
    width: int = 8,
    largest_first: bool = False,
    none: str = "no runs",
) -> bargauge.Panel:
    """Draw one bar a row, in order of the labels ``by`` or with the largest first."""
    order = {"field": "Value", "desc": True} if largest_first else {"field": by[0], "desc": False}
    named = {"excludeByName": {"Time": True}, "includeByName": {}, "indexByName": {}, "renameByName": {}}
    panel = (
        bargauge.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit(unit)
        .no_value(none)
        .min(0)
        .height(8)
        .span(width)
        .orientation(VizOrientation.HORIZONTAL)
        .display_mode(BarGaugeDisplayMode.BASIC)
        .value_mode(BarGaugeValueMode.COLOR)
        .show_unfilled(True)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(True).limit(30).fields("/^Value$/"))
        .color_scheme(house.colour(FieldColorModeId.THRESHOLDS if limit else house.COLD_TO_WARM))
        .thresholds(house.thresholds(limit))
        .with_target(now(expr, table=True).ref_id("A"))
        .with_transformation(DataTransformerConfig(id_val="organize", options=named))
        .with_transformation(DataTransformerConfig(id_val="sortBy", options={"fields": {}, "sort": [order]}))
    )
    if top is None:  # how many there are is neither good nor bad
        panel.color_scheme(house.colour(FieldColorModeId.FIXED).fixed_color("blue"))
    else:
        panel.max(top)
    return panel


def heat(
    title: str, description: str, *targets: prometheus.Dataquery, width: int = 24, height: int = 9
) -> statushistory.Panel:
    """Draw ratios over time as coloured cells, one line a series: red for 0, green for 1."""
    return (
        statushistory.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit(house.RATIO)
        .min(0)
        .max(1)
        .height(height)
        .span(width)
        .max_data_points(house.STEPS_MAX)
        .color_scheme(house.colour(house.COLD_TO_WARM))
        .show_value(VisibilityMode.NEVER)
        .row_height(0.9)
        .col_width(1)
        .fill_opacity(85)
        .line_width(0)
        .legend(house.legend())
        .tooltip(house.tooltip(all_series=False))
        .targets(_lettered(targets))
    )


def spread(title: str, description: str, unit: str, expr: str, *, width: int = 12) -> heatmap.Panel:
    """Draw how what a histogram sees is spread, over time; dots are single runs, and lead to their traces."""
    colours = heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Blues").fill("dark-blue")
    return (
        heatmap.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit(house.COUNT)
        .height(8)
        .span(width)
        .max_data_points(house.STEPS_MAX)
        .calculate(False)
        .color(colours.scale(HeatmapColorScale.EXPONENTIAL).exponent(0.5).steps(64).reverse(False))
        .cell_gap(1)
        .filter_values(heatmap.FilterValueRange().le(1e-9))
        .y_axis(heatmap.YAxisConfig().unit(unit))
        .exemplars_color("rgba(255,0,255,0.7)")
        .with_target(exemplars(over_time(expr, "{{le}}").format(PromQueryFormat.HEATMAP)).ref_id("A"))
    )


def rows(
    title: str,
    description: str,
    *columns: Column,
    by: dict[str, str],
    width: int = 24,
    height: int = 8,
    link: tuple[str, str] | None = None,
    worst_first: str | None = None,
    none: str = "no runs",
) -> table.Panel:
    """Show a table: one row for each value of the labels ``by`` (label to headline), one column a query.

    ``link``: headline of the column that leads somewhere, and where. ``worst_first``: column to sort by, lowest on top.
    """
    # Grafana names the numbers of several queries after their letters, and those of a single one just so.
    values = ["Value"] if len(columns) == 1 else [f"Value #{chr(ord('A') + n)}" for n in range(len(columns))]
    renamed = {**by, **{value: column.name for value, column in zip(values, columns, strict=True)}}
    order = {name: place for place, name in enumerate(renamed)}
    panel = (
        table.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit(house.COUNT)
        .no_value(none)
        .height(height)
        .span(width)
        .filterable(False)
        .targets(_lettered(tuple(now(column.expr, table=True) for column in columns)))
        .with_transformation(DataTransformerConfig(id_val="merge", options={}))
        .with_transformation(
            DataTransformerConfig(
                id_val="organize",
                options={
                    "excludeByName": {"Time": True},
                    "includeByName": {},
                    "indexByName": order,
                    "renameByName": renamed,
                },
            )
        )
    )
    for column in columns:
        panel.override_by_name(column.name, house.cells(column))
    if link:
        target = {"title": "Open", "url": link[1], "targetBlank": False}
        panel.override_by_name(link[0], [DynamicConfigValue(id_val="links", value=[target])])
    if worst_first:
        panel.sort_by([common.TableSortByFieldState().display_name(worst_first).desc(False)])
    return panel


def over_time(expr: str, legend: str) -> prometheus.Dataquery:
    """Ask for a graph."""
    return prometheus.Dataquery().datasource(DATASOURCE).expr(expr).legend_format(legend).range()


def now(expr: str, *, table: bool = False) -> prometheus.Dataquery:
    """Ask for numbers as of the end of the time that is shown."""
    query = prometheus.Dataquery().datasource(DATASOURCE).expr(expr).instant()
    return query.format(PromQueryFormat.TABLE) if table else query.legend_format("__auto")


def exemplars(query: prometheus.Dataquery) -> prometheus.Dataquery:
    """Ask for the traces behind the numbers too."""
    return query.exemplar(True)


def _lettered(targets: tuple[prometheus.Dataquery, ...]) -> list[Builder[Dataquery]]:
    return [target.ref_id(chr(ord("A") + n)) for n, target in enumerate(targets)]

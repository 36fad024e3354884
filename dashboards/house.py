"""Set the looks that all panels share: colours, units, thresholds, legends, cells."""

from __future__ import annotations

from typing import Final, NamedTuple

from grafana_foundation_sdk.builders import common
from grafana_foundation_sdk.builders import dashboard as make
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.common import (
    BarGaugeDisplayMode,
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    TableBarGaugeCellOptions,
    TableCellBackgroundDisplayMode,
    TableColoredBackgroundCellOptions,
    TooltipDisplayMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
)

GOOD: Final = "green"
BAD: Final = "red"
PLAIN: Final = "text"
COLD_TO_WARM: Final = FieldColorModeId.CONTINUOUS_RD_YL_GR

RATIO: Final = units.PercentUnit
COUNT: Final = units.Short
SECONDS: Final = units.Seconds
DOLLARS: Final = units.Dollars
BYTES: Final = units.BytesIEC
PER_SECOND: Final = units.CountsPerSecond
SCORE: Final = units.NoUnit

LIMITS: Final = {
    "ReachHighLayerLow": 0.5,
    "ReachTimeoutsHigh": 0.05,
    "ReachStabilityLow": 0.1,
}
"""Where alerts fire, for the thresholds of panels; a test holds them equal to alerts.yml."""

STEPS_MAX: Final = 120
"""Columns of a heat map: more would be narrower than can be seen, and Grafana refuses to draw them."""

OF_ALL_VARIANTS: Final = " A recorded series: over all variants, whatever is chosen above."


class Limit(NamedTuple):
    """A value from which on, or below which, things are bad."""

    value: float
    above: bool

    def config(self) -> make.ThresholdsConfig:
        """Return it as steps of colour."""
        low, high = (GOOD, BAD) if self.above else (BAD, GOOD)
        return _steps(Threshold(value=None, color=low), Threshold(value=self.value, color=high))


def bad_below(value: float) -> Limit:
    """Say that less than this is bad."""
    return Limit(value, above=False)


def bad_from(value: float) -> Limit:
    """Say that this and more is bad."""
    return Limit(value, above=True)


class Column(NamedTuple):
    """A column of a table: a query that gives one number a row, and how to show it."""

    name: str
    expr: str
    unit: str
    limit: Limit | None = None
    gauge: bool = False
    top: float = 1
    decimals: int | None = None
    words: dict[float, tuple[str, str]] | None = None
    """Text and colour to show instead of a number."""


def thresholds(limit: Limit | None) -> make.ThresholdsConfig:
    """Return the steps of a limit; without one, a single colour that judges nothing."""
    return limit.config() if limit else _steps(Threshold(value=None, color=PLAIN))


def colour(mode: FieldColorModeId) -> make.FieldColor:
    """Return how numbers get their colour."""
    return make.FieldColor().mode(mode)


def legend() -> common.VizLegendOptions:
    """Return the legend of everything that is drawn over time."""
    builder = common.VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM)
    return builder.show_legend(True).calcs([])


def tooltip(*, all_series: bool = True) -> common.VizTooltipOptions:
    """Return what is told under the pointer."""
    mode = TooltipDisplayMode.MULTI if all_series else TooltipDisplayMode.SINGLE
    return common.VizTooltipOptions().mode(mode).sort(SortOrder.DESCENDING)


def cells(column: Column) -> list[DynamicConfigValue]:
    """Return how the cells of a column look."""
    looks: dict[str, object] = {"unit": column.unit}
    if column.decimals is not None:
        looks["decimals"] = column.decimals
    if column.gauge:
        looks |= {"min": 0, "max": column.top, "custom.cellOptions": _gauge(), "color": {"mode": COLD_TO_WARM}}
    if column.limit:
        looks |= {"thresholds": column.limit.config().build(), "color": {"mode": FieldColorModeId.THRESHOLDS}}
        looks.setdefault("custom.cellOptions", _filled())
    if column.words:
        results = {
            f"{value:g}": ValueMappingResult(text=text, color=hue) for value, (text, hue) in column.words.items()
        }
        looks |= {"mappings": [ValueMap(options=results)], "custom.cellOptions": _filled()}
    return [DynamicConfigValue(id_val=name, value=value) for name, value in looks.items()]


def _steps(*steps: Threshold) -> make.ThresholdsConfig:
    return make.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(list(steps))


def _gauge() -> TableBarGaugeCellOptions:
    return TableBarGaugeCellOptions(mode=BarGaugeDisplayMode.BASIC)


def _filled() -> TableColoredBackgroundCellOptions:
    return TableColoredBackgroundCellOptions(mode=TableCellBackgroundDisplayMode.BASIC)

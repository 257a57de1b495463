"""Line charts, bar charts and heat maps as Vega-Lite, made by Altair.

A line chart shows a figure against a size with a series a method; a bar chart shows a figure a strategy, where there is
no size to draw it against; a heat map shows a figure against two sizes. Importing this module loads Altair, which takes
half a second.
"""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

import altair

from warpfold.app.charts.chart import Chart

WIDTH, HEIGHT = 560, 320
_SUBTITLE = 100
"""Characters of a subtitle that are as wide as the chart. A longer line would widen and shrink the picture."""
_BAR = 22
"""Height of a bar with the gap below it."""

_CELL = 34
"""Height of a cell of a heat map."""
_ORANGE_TO_BLUE = ("#a04000", "#f2f2f2", "#005a8f")
"""Orange, grey and blue, which the colour-blind can tell apart."""

_READABLE = (1e-3, 1e6)
"""Axes whose furthest number is between these have labels without an exponent."""
_DRAWABLE = 1e300
"""Beyond this number, and below one divided by it, d3 overflows or underflows while it chooses ticks."""

_MEASURED, _PUBLISHED = "measured", "published"
_DASHES: Mapping[str, Sequence[int]] = MappingProxyType({_MEASURED: [1, 0], _PUBLISHED: [5, 3]})


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a line. `low` and `high`, where they are known, are the ends of an interval around `y`."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """A named line. Figures that were published elsewhere are dashed."""

    name: str
    points: Sequence[Point]
    published: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """A named figure."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure of two sizes in a heat map: `shown` is written into the cell."""

    x: int
    y: int
    value: float
    shown: str


@dataclass(frozen=True, slots=True)
class Plane:
    """The plane of a heat map: the names of both sizes and of the figure, which is blue above `middle` and orange
    below it."""

    x: str
    y: str
    value: str
    middle: float


@dataclass(frozen=True, slots=True)
class Level:
    """A dotted line across the chart; `text` explains the line in the subtitle."""

    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of a line chart. `log` axes leave out values that are not above zero. `format` is d3's, of the numbers at
    the ticks of `log` and `counted` axes; others choose by their numbers. A `counted` axis has ticks where there are
    points, and nowhere else."""

    title: str
    log: bool = True
    format: str = "~s"
    counted: bool = False


@dataclass(frozen=True, slots=True)
class ChartText:
    """The texts around a chart. `description` stands in its place for those who cannot see it."""

    name: str
    title: str
    subtitle: str
    description: str


def line_chart(text: ChartText, x: Axis, y: Axis, series: Sequence[Series], levels: Sequence[Level] = ()) -> Chart:
    """`series` against both axes, with `levels` across."""
    rows = [
        {
            "series": line.name,
            "kind": _PUBLISHED if line.published else _MEASURED,
            "x": point.x,
            "y": point.y,
            "low": point.low,
            "high": point.high,
        }
        for line in series
        for point in line.points
        if (point.x > 0 or not x.log) and (point.y > 0 or not y.log)
    ]
    names = list(dict.fromkeys(line.name for line in series))
    colour = altair.Color("series:N", scale=altair.Scale(domain=names), title=None)
    shape = altair.Shape("series:N", scale=altair.Scale(domain=names), title=None)
    kinds = [kind for kind in _DASHES if any(row["kind"] == kind for row in rows)]
    # Dashes have no legend: the subtitle names the dashed lines.
    dashes = altair.Scale(domain=kinds, range=[_DASHES[kind] for kind in kinds])
    dash = altair.StrokeDash("kind:N", scale=dashes, legend=None)
    points = [point for line in series for point in line.points]
    heights = [*(point.y for point in points), *(level.y for level in levels)]
    base = altair.Chart(inline(rows)).encode(
        x=altair.X("x:Q", title=x.title, scale=_scale(x), axis=_ticks(x, [point.x for point in points])),
        y=altair.Y("y:Q", title=y.title, scale=_scale(y), axis=_ticks(y, heights)),
        color=colour,
        shape=shape,
    )
    layers: list[Any] = [
        base.mark_line(strokeWidth=1.8).encode(strokeDash=dash, detail="kind:N"),
        base.mark_point(filled=True, size=45, opacity=1),
    ]
    if any(point.low is not None for point in points):
        layers.insert(1, base.mark_rule(strokeWidth=1.2).encode(y="low:Q", y2="high:Q"))
    rules, text = _across(text, levels)
    layers += rules
    return chart_of(text, altair.layer(*layers).properties(width=WIDTH, height=HEIGHT))


def bar_chart(text: ChartText, title: str, bars: Sequence[Bar], levels: Sequence[Level] = ()) -> Chart:
    """`bars` from top to bottom in their order, with lines across at `levels`. `title` names what lengths stand for.
    Values that d3 cannot draw are shown in units of 1e300 or 1e-300, as the title says."""
    values = [*(bar.value for bar in bars), *(level.y for level in levels)]
    unit = _unit(values)
    if unit != 1:
        title = f"{title}, in units of {unit:.0e}"
        bars = [replace(bar, value=bar.value / unit) for bar in bars]
        levels = [replace(level, y=level.y / unit) for level in levels]
    picture = altair.Chart(inline([asdict(bar) for bar in bars]))
    names = [bar.name for bar in bars]
    drawn = picture.mark_bar(size=_BAR * 2 // 3).encode(
        x=altair.X("value:Q", title=title, axis=_plain_ticks([value / unit for value in values])),
        y=altair.Y("name:N", sort=names, title=None),
        color=altair.Color("name:N", scale=altair.Scale(domain=names), legend=None),
    )
    rules, text = _across(text, levels, upright=True)
    return chart_of(text, altair.layer(drawn, *rules).properties(width=WIDTH, height=_BAR * len(bars)))


def heat_map(text: ChartText, plane: Plane, cells: Sequence[Cell]) -> Chart:
    """`cells` on a plane. The figures stand in the cells as well, for those who cannot tell the colours apart."""
    reach = max((abs(math.log(cell.value / plane.middle)) for cell in cells if cell.value > 0), default=0.0)
    # As far from the middle on both sides, on a scale of ratios.
    low, high, *light = (plane.middle * math.exp(share * (reach or 1)) for share in (-1, 1, -0.7, 0.7))
    data = [{"x": f"{cell.x:,}", "y": f"{cell.y:,}", "value": cell.value, "shown": cell.shown} for cell in cells]
    columns, rows = sorted({cell.x for cell in cells}), sorted({cell.y for cell in cells}, reverse=True)
    domain = [low, plane.middle, high]
    scale = altair.Scale(type="log", domain=domain, range=[*_ORANGE_TO_BLUE], interpolate="lab", clamp=True)
    base = altair.Chart(inline(data)).encode(
        x=altair.X("x:N", title=plane.x, sort=[f"{size:,}" for size in columns], axis=altair.Axis(labelAngle=0)),
        y=altair.Y("y:N", title=plane.y, sort=[f"{size:,}" for size in rows]),
    )
    dark = f"datum.value < {light[0]!r} || datum.value > {light[1]!r}"
    ink = altair.condition(dark, altair.value("#ffffff"), altair.value("#1b1f24"))
    picture = altair.layer(
        base.mark_rect().encode(color=altair.Color("value:Q", title=plane.value, scale=scale)),
        base.mark_text(fontSize=11).encode(text="shown:N", color=ink),
    )
    return chart_of(text, picture.properties(width=WIDTH, height=max(2, len(rows)) * _CELL))


def chart_of(text: ChartText, picture: Any) -> Chart:
    """An Altair chart with its texts, as data."""
    titled = picture.properties(title=altair.Title(text.title, subtitle=textwrap.wrap(text.subtitle, _SUBTITLE)))
    return Chart(text.name, text.title, text.description, titled.to_json(indent=None))


def inline(rows: Sequence[Mapping[str, object]]) -> altair.Data:
    """Data that travels within the chart."""
    return altair.Data(values=list(rows))  # type: ignore[no-untyped-call]


def _across(text: ChartText, levels: Sequence[Level], *, upright: bool = False) -> tuple[list[Any], ChartText]:
    """Dotted lines at `levels`, and the texts with what they stand for, which would overlap beside the lines."""
    if not levels:
        return [], text
    rules = altair.Chart(inline([{"level": level.y} for level in levels])).mark_rule(strokeDash=[2, 3])
    subtitle = "; ".join([text.subtitle, *(f"dotted: {level.text}" for level in levels)])
    return [rules.encode(x="level:Q") if upright else rules.encode(y="level:Q")], replace(text, subtitle=subtitle)


def _scale(axis: Axis) -> altair.Scale:
    return altair.Scale(type="log", nice=False) if axis.log else altair.Scale()


def _ticks(axis: Axis, values: Iterable[float]) -> altair.Axis:
    """The ticks of a log axis are powers of ten, where there are at least two among `values`."""
    values = list(values)
    shown = [value for value in values if value > 0]
    if axis.counted:
        return altair.Axis(format=axis.format, values=sorted(set(shown)))
    if not axis.log:
        return _plain_ticks(values)
    if not shown:
        return altair.Axis(format=axis.format)
    powers = range(math.ceil(math.log10(min(shown))), math.floor(math.log10(max(shown))) + 1)
    if len(powers) < 2:
        return altair.Axis(format=axis.format, tickCount=6)
    wide = powers.stop > 12 or powers.start < -4
    return altair.Axis(format=".0e" if wide else axis.format, values=[10.0**power for power in powers])


def _plain_ticks(values: Iterable[float]) -> altair.Axis:
    """Labels of a linear axis: 0, 2,000, 1.5e+16. Prefixes such as P and m would have to be looked up, d3 writes one
    behind the zero as well, and has none beyond Y."""
    largest = _largest(values)
    if largest == 0 or _READABLE[0] <= largest < _READABLE[1]:
        return altair.Axis(labelExpr="format(datum.value, ',.12~g')")
    return altair.Axis(labelExpr="datum.value === 0 ? '0' : format(datum.value, '.6~e')")


def _unit(values: Iterable[float]) -> float:
    """The power of ten by which values are divided so that d3 can draw them."""
    largest = _largest(values)
    if largest > _DRAWABLE:
        return _DRAWABLE
    return 1 / _DRAWABLE if 0 < largest < 1 / _DRAWABLE else 1.0


def _largest(values: Iterable[float]) -> float:
    return max((abs(value) for value in values), default=0.0)

"""Charts of lines: some figure against a size, a line a method."""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import altair

from warpfold.app.charts.chart import Chart

WIDTH, HEIGHT = 560, 320
_SUBTITLE = 100
"""Characters of a subtitle that are as wide as the chart: a longer line would make the picture wider, and all in it
smaller."""

_MEASURED, _PUBLISHED = "measured", "published"
_DASHES: Mapping[str, Sequence[int]] = MappingProxyType({_MEASURED: [1, 0], _PUBLISHED: [5, 3]})


@dataclass(frozen=True, slots=True)
class Point:
    """`low` and `high`, where known, are the ends of an interval around `y`."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A named series. What was published elsewhere is dashed."""

    name: str
    points: Sequence[Point]
    published: bool = False


@dataclass(frozen=True, slots=True)
class Level:
    """A line across the chart, with what it stands for."""

    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Axis:
    """`log` axes leave out what is not above zero. `format` is d3's, of the numbers at the ticks; `counted` axes have
    these where there are points, and nowhere else."""

    title: str
    log: bool = True
    format: str = "~s"
    counted: bool = False


@dataclass(frozen=True, slots=True)
class Words:
    """What stands around a chart, and in its place for those who cannot see it."""

    name: str
    title: str
    subtitle: str
    description: str


def line_chart(words: Words, x: Axis, y: Axis, lines: Sequence[Line], levels: Sequence[Level] = ()) -> Chart:
    """`lines` against both axes, with `levels` across."""
    rows = [
        {
            "series": line.name,
            "kind": _PUBLISHED if line.published else _MEASURED,
            "x": point.x,
            "y": point.y,
            "low": point.low,
            "high": point.high,
        }
        for line in lines
        for point in line.points
        if (point.x > 0 or not x.log) and (point.y > 0 or not y.log)
    ]
    series = list(dict.fromkeys(line.name for line in lines))
    colour = altair.Color("series:N", scale=altair.Scale(domain=series), title=None)
    shape = altair.Shape("series:N", scale=altair.Scale(domain=series), title=None)
    kinds = [kind for kind in _DASHES if any(row["kind"] == kind for row in rows)]
    # Without a legend: the subtitle says what is dashed.
    dashes = altair.Scale(domain=kinds, range=[_DASHES[kind] for kind in kinds])
    dash = altair.StrokeDash("kind:N", scale=dashes, legend=None)
    points = [point for line in lines for point in line.points]
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
    rules, words = across(words, levels)
    layers += rules
    return chart_of(words, altair.layer(*layers).properties(width=WIDTH, height=HEIGHT))


def across(words: Words, levels: Sequence[Level], *, upright: bool = False) -> tuple[list[Any], Words]:
    """Dotted lines at `levels`, and the words with what they stand for: written beside the lines, texts would meet."""
    if not levels:
        return [], words
    rules = altair.Chart(inline([{"level": one.y} for one in levels])).mark_rule(strokeDash=[2, 3])
    subtitle = "; ".join([words.subtitle, *(f"dotted: {one.text}" for one in levels)])
    return [rules.encode(x="level:Q") if upright else rules.encode(y="level:Q")], replace(words, subtitle=subtitle)


def chart_of(words: Words, picture: Any) -> Chart:
    """An Altair chart with its words, as data."""
    titled = picture.properties(title=altair.Title(words.title, subtitle=textwrap.wrap(words.subtitle, _SUBTITLE)))
    return Chart(words.name, words.title, words.description, titled.to_json(indent=None))


def inline(rows: Sequence[Mapping[str, object]]) -> altair.Data:
    """Data that travels in the chart."""
    return altair.Data(values=list(rows))  # type: ignore[no-untyped-call]


def _scale(axis: Axis) -> altair.Scale:
    return altair.Scale(type="log", nice=False) if axis.log else altair.Scale()


def _ticks(axis: Axis, values: Iterable[float]) -> altair.Axis:
    """On a log axis a tick a power of ten, where there are at least two among `values`."""
    shown = [value for value in values if value > 0]
    if axis.counted:
        return altair.Axis(format=axis.format, values=sorted(set(shown)))
    if not axis.log or not shown:
        return altair.Axis(format=axis.format)
    powers = range(math.ceil(math.log10(min(shown))), math.floor(math.log10(max(shown))) + 1)
    if len(powers) < 2:
        return altair.Axis(format=axis.format, tickCount=6)
    wide = powers.stop > 12 or powers.start < -4
    return altair.Axis(format=".0e" if wide else axis.format, values=[10.0**power for power in powers])


def significant(value: float) -> str:
    """`value` with three significant digits, for people: "4,350", "0.123", "1.2e-07"."""
    if value == 0 or not math.isfinite(value):
        return str(value)
    if not 1e-4 <= abs(value) < 1e9:
        return f"{value:.3g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{float(f'{value:.3g}'):,.{digits}f}"

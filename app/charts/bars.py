"""Charts of bars: one figure a strategy, where there is no size to draw it against."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import altair

from warpfold.app.charts.chart import Chart
from warpfold.app.charts.vega_lite import WIDTH, Level, Words, across, chart_of, inline

_BAR = 22


@dataclass(frozen=True, slots=True)
class Bar:
    """A named figure."""

    name: str
    value: float


def bar_chart(words: Words, title: str, bars: Sequence[Bar], levels: Sequence[Level] = ()) -> Chart:
    """`bars` from top to bottom in their order, `title` what their lengths stand for, `levels` lines across."""
    picture = altair.Chart(inline([asdict(bar) for bar in bars]))
    names = [bar.name for bar in bars]
    drawn = picture.mark_bar(size=_BAR * 2 // 3).encode(
        x=altair.X("value:Q", title=title, axis=altair.Axis(format="~s")),
        y=altair.Y("name:N", sort=names, title=None),
        color=altair.Color("name:N", scale=altair.Scale(domain=names), legend=None),
    )
    lines, words = across(words, levels, upright=True)
    return chart_of(words, altair.layer(drawn, *lines).properties(width=WIDTH, height=_BAR * len(bars)))

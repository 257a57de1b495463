"""A table of groups, and a bar chart for each column of values: a bar for each group."""

import math
from itertools import islice

from warpfold.app.charts.chart import Chart
from warpfold.app.charts.vega_lite import Bar, ChartText, bar_chart
from warpfold.app.reports.kinds.tables_only import preview
from warpfold.app.reports.report import Table
from warpfold.contract.described import Cell, described
from warpfold.contract.group_tables import GroupKeys, GroupTableResult, GroupValues
from warpfold.contract.kinds.groupby import GroupbyResult
from warpfold.contract.wording import ABSENT, exactly, number_of

_MOST_SHOWN = 1000
_MOST_BARS = 40
_MOST_CHARTS = 4
_MOST_LETTERS = 40
_MEASURES = ("mean", "min", "median", "quantile", "max")
"""Ops whose values are numbers on one scale with the elements."""


def tables(result: GroupTableResult) -> tuple[Table, ...]:
    """A row for each group: its keys, how many rows it has, and its values; of groups that are stored, the first. A
    table without keys is a description: it has a row for each column."""
    if not result.keys:
        names, cells = described(result.columns, result.rows)
        shown = tuple(tuple(_shown(cell) for cell in row) for row in cells)
        title = f"{number_of('column', len(cells))} of {number_of('row', result.rows)} ({result.strategy})"
        return (Table(title=title, columns=tuple(names), rows=shown),)
    title = f"{number_of('group', result.groups)} of {number_of('row', result.rows)} ({result.strategy})"
    if result.sizes is None and result.artefact is not None:
        return (preview(result.artefact, title),)
    sizes = result.sizes or ()
    rows = tuple(
        (
            *(_key(keys, group) for keys in result.keys),
            f"{sizes[group]:,}",
            *(text for column in result.columns for text in _texts(column, group)),
        )
        for group in range(min(result.groups, _MOST_SHOWN))
    )
    notes = [f"The first {len(rows):,} of {result.groups:,} groups."] if len(rows) < result.groups else []
    if isinstance(result, GroupbyResult) and result.dropped:
        notes.append(
            f"{number_of('row', result.dropped)} without a key {'was' if result.dropped == 1 else 'were'} left out."
        )
    return (
        Table(
            title=title,
            columns=(
                *(keys.name for keys in result.keys),
                "rows",
                *(name for column in result.columns for name in _headings(column)),
            ),
            rows=rows,
            note=" ".join(notes) or None,
        ),
    )


def _shown(cell: Cell) -> str:
    return ABSENT if cell is None else cell if isinstance(cell, str) else exactly(cell)


def _key(keys: GroupKeys, group: int) -> str:
    key = (keys.values or ())[group]
    return ABSENT if key is None else str(key)


def _headings(column: GroupValues) -> tuple[str, ...]:
    return (f"{column.name} ({column.dtype})", *(() if column.fractions is None else (f"{column.name} exactly",)))


def _texts(column: GroupValues, group: int) -> tuple[str, ...]:
    """The value of a group, and its fraction where the column has fractions."""
    value = (column.values or ())[group]
    text = (ABSENT if value is None else exactly(value)) if column.words is None else column.words[group] or ABSENT
    if column.fractions is None:
        return (text,)
    fraction = column.fractions[group]
    return text, ABSENT if fraction is None else str(fraction)


def charts(result: GroupTableResult) -> list[Chart]:
    """The values of the first groups as bars, a chart for each of the first columns. Stored groups have no charts."""
    if not result.keys:
        return _descriptions(result)
    drawn = []
    for number, column in enumerate(result.columns[:_MOST_CHARTS], 1):
        bars = [
            Bar(_name(result, group), float(value))
            for group, value in islice(enumerate(column.values or ()), _MOST_BARS)
            if value is not None and math.isfinite(value)
        ]
        if bars:
            drawn.append(bar_chart(_text(result, column, number, bars), column.name, bars))
    return drawn


def _descriptions(result: GroupTableResult) -> list[Chart]:
    """The mean, the extremes and the quantiles of the first columns, a chart for each."""
    drawn = []
    for number, name in enumerate(list(dict.fromkeys(column.column for column in result.columns))[:_MOST_CHARTS], 1):
        bars = [
            Bar(column.name.removeprefix(f"{name}_"), float(column.values[0]))
            for column in result.columns
            if column.column == name and column.op in _MEASURES and column.values
            if column.values[0] is not None and math.isfinite(column.values[0])
        ]
        if bars:
            text = ChartText(
                name=f"columns-{number}",
                title=str(name),
                subtitle=f"{number_of('row', result.rows)}; {result.device.name}",
                description=f"Bars of {', '.join(f'{bar.name} {bar.value:g}' for bar in bars)} of {name}.",
            )
            drawn.append(bar_chart(text, str(name), bars))
    return drawn


def _name(result: GroupTableResult, group: int) -> str:
    return ", ".join(_key(keys, group) for keys in result.keys)[:_MOST_LETTERS]


def _text(result: GroupTableResult, column: GroupValues, number: int, bars: list[Bar]) -> ChartText:
    keys = ", ".join(keys.name for keys in result.keys)
    what = column.op if column.column is None else f"{column.op} of {column.column}"
    some = (
        f"the first {len(bars):,} of {result.groups:,} groups" if len(bars) < result.groups else f"{len(bars):,} groups"
    )
    least, most = min(bars, key=lambda bar: bar.value), max(bars, key=lambda bar: bar.value)
    return ChartText(
        name=f"groups-{number}",
        title=f"{column.name} by {keys}",
        subtitle=f"{what}, {some}; {result.device.name}",
        description=f"Bars of {what} by {keys}, {some}: from {least.value:g} ({least.name}) to {most.value:g} "
        f"({most.name}).",
    )

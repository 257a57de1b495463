"""Charts as pages show them: the picture for Vega-Embed to draw, its texts and its numbers for everybody.

Making the first chart of a process loads Altair, which takes half a second: pages call these functions in a thread.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from warpfold.app.charts.chart import Chart
from warpfold.app.json_view import text_of
from warpfold.app.reports.report import Table
from warpfold.app.results.repository import Measured
from warpfold.contract.jobs import JobResult

_MOST = 8
_MOST_ROWS = 300


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart with its data as a table. `spec` is Vega-Lite as JSON text. Its title and subtitle stand beside it,
    where they are text like any other."""

    name: str
    title: str
    subtitle: str
    description: str
    spec: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def shown_of_result(result: JobResult, points: Sequence[Measured]) -> tuple[list[Figure], Sequence[Table]]:
    """The charts and the tables of a result."""
    from warpfold.app.reports.kinds.registry import charts_of, tables_of

    figures = [_figure(chart) for chart in charts_of(result, points)[:_MOST]]
    return figures, tables_of(result, points)


def figures_of_points(points: Sequence[Measured]) -> list[Figure]:
    """The charts of benchmark points, whichever jobs they come from."""
    from warpfold.app.reports.kinds import benchmark

    return [_figure(chart) for chart in benchmark.charts(points)[:_MOST]]


def _figure(chart: Chart) -> Figure:
    spec = json.loads(chart.spec)
    subtitle = " ".join(spec.pop("title")["subtitle"])
    values = _values(spec)
    names = list(dict.fromkeys(name for row in values for name in row))
    used = [name for name in names if any(row.get(name) is not None for row in values)]
    rows = [[text_of(name, row.get(name)) for name in used] for row in values[:_MOST_ROWS]]
    return Figure(chart.name, chart.title, subtitle, chart.description, json.dumps(spec), used, rows)


def _values(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of the chart's own data, wherever they stand in the spec."""
    candidates = [spec.get("data"), *(layer.get("data") for layer in spec.get("layer", ()))]
    named = spec.get("datasets", {})
    for data in candidates:
        if isinstance(data, dict):
            values = data.get("values") or named.get(data.get("name"))
            if values:
                return [row for row in values if isinstance(row, dict)]
    return next(iter(named.values()), [])

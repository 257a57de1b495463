"""Charts as pages show them: the picture for Vega-Embed to draw, its words and its numbers for everybody."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from warpfold.app.json_view import text_of
from warpfold.app.results.repository import Measured
from warpfold.contract.jobs import JobResult

_MOST = 8
_MOST_ROWS = 300


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart with its data as a table. `spec` is Vega-Lite as JSON text; its title and subtitle are told beside it,
    where they are text like any other."""

    name: str
    title: str
    subtitle: str
    description: str
    spec: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def figures_of_result(result: JobResult, points: Sequence[Measured]) -> list[Figure]:
    """The charts of a result. Loads Altair the first time: call it in a thread."""
    from warpfold.app.charts.of_result import charts_of

    return [_figure(chart) for chart in charts_of(result, points)[:_MOST]]


def figures_of_points(points: Sequence[Measured]) -> list[Figure]:
    """The charts of benchmark points, wherever they come from. Loads Altair the first time: call it in a thread."""
    from warpfold.app.charts import benchmark

    return [_figure(chart) for chart in benchmark.charts(points)[:_MOST]]


def _figure(chart: Any) -> Figure:
    spec = json.loads(chart.spec)
    subtitle = " ".join(spec.pop("title")["subtitle"])
    values = _values(spec)
    names = list(dict.fromkeys(name for row in values for name in row))
    used = [name for name in names if any(row.get(name) is not None for row in values)]
    rows = [[text_of(name, row.get(name)) for name in used] for row in values[:_MOST_ROWS]]
    return Figure(chart.name, chart.title, subtitle, chart.description, json.dumps(spec), used, rows)


def _values(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of the chart's own data, wherever in the spec they stand."""
    found = [spec.get("data"), *(layer.get("data") for layer in spec.get("layer", ()))]
    named = spec.get("datasets", {})
    for data in found:
        if isinstance(data, dict):
            values = data.get("values") or named.get(data.get("name"))
            if values:
                return [row for row in values if isinstance(row, dict)]
    return next(iter(named.values()), [])

"""The data that a chart shows."""

import json
from typing import Any

from warpfold.app.charts.chart import Chart


def rows_of(chart: Chart) -> list[dict[str, Any]]:
    """Every row of data in the chart, each once."""
    rows: list[dict[str, Any]] = []

    def look(node: Any) -> None:
        if isinstance(node, dict):
            data = node.get("data")
            if isinstance(data, dict):
                rows.extend(row for row in data["values"] if row not in rows)
            for child in node.values():
                look(child)
        elif isinstance(node, list):
            for child in node:
                look(child)

    look(json.loads(chart.spec))
    return rows

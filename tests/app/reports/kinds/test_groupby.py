"""Tables and bars of groups."""

import json
from typing import Any

from warpfold.app.reports.kinds.groupby import charts, tables
from warpfold.contract.artefact import Artefact
from warpfold.contract.kinds.groupby import GroupbyResult

EXAMPLE: dict[str, Any] = GroupbyResult.model_json_schema()["examples"][0]


def groups(count: int, **changes: Any) -> GroupbyResult:
    """A result of so many groups, with the first one's key and value missing."""
    keys = {**EXAMPLE["keys"][0], "values": [None, *map(str, range(1, count))]}
    values = [None, *(float(group) for group in range(1, count))]
    column = {**EXAMPLE["columns"][0], "values": values, "hex": None, "counts": [1] * count}
    fields = {"groups": count, "keys": [keys], "columns": [column], "sizes": [1] * count, "rows": count}
    return GroupbyResult.model_validate({**EXAMPLE, **fields, **changes})


def test_a_row_is_a_group_and_what_is_missing_is_a_dash() -> None:
    (table,) = tables(groups(3, dropped=2))
    assert table.columns == ("region", "rows", "total (float64)")
    assert table.rows[1:] == (("1", "1", "1.0"), ("2", "1", "2.0"))
    assert table.rows[0] == ("–", "1", "–")
    assert table.note == "2 rows without a key were left out."
    (table,) = tables(groups(1001))
    assert (len(table.rows), table.note) == (1000, "The first 1,000 of 1,001 groups.")


def test_the_first_groups_are_bars_and_a_missing_value_is_none() -> None:
    (chart,) = charts(groups(3))
    assert "Bars of sum by region" in chart.description
    assert '"value":1.0' in json.dumps(json.loads(chart.spec), separators=(",", ":"))
    (chart,) = charts(groups(100))
    assert "the first 39 of 100 groups" in chart.description


def test_a_table_without_keys_has_a_row_and_a_chart_for_each_column() -> None:
    column = {**EXAMPLE["columns"][0], "column": "x", "hex": None, "counts": [3]}
    columns = [
        {**column, "name": f"x_{label}", "op": op, "values": [value], "nans": [1]}
        for label, op, value in (("min", "min", -1.0), ("skew", "skew", 0.5), ("quantile_0.5", "quantile", 2.0))
    ]
    fields = {"groups": 1, "keys": [], "columns": columns, "sizes": [5], "rows": 5}
    result = GroupbyResult.model_validate({**EXAMPLE, **fields})
    (table,) = tables(result)
    assert table.columns == ("column", "count", "nulls", "nans", "min", "skew", "quantile_0.5")
    assert table.rows == (("x", "3", "1", "1", "-1.0", "0.5", "2.0"),)
    (chart,) = charts(result)
    assert chart.description == "Bars of min -1, quantile_0.5 2 of x."


def test_groups_that_are_stored_show_a_preview_and_no_bars() -> None:
    nothing = {"keys": [{**EXAMPLE["keys"][0], "values": None}], "sizes": None}
    column = {**EXAMPLE["columns"][0], "values": None, "hex": None, "counts": None}
    stored = Artefact.model_json_schema()["examples"][0]
    result = GroupbyResult.model_validate({**EXAMPLE, **nothing, "columns": [column], "artefact": stored})
    assert charts(result) == []
    assert "all of them are stored" in (tables(result)[0].note or "")

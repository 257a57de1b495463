"""Descriptions of the columns of tables, as frames."""

from collections.abc import Mapping, Sequence
from typing import Any

from warpfold.client import groupby, jobs, sources
from warpfold.client.exchange import Steps
from warpfold.client.group_table import GroupTable
from warpfold.client.sources import ManyFiles
from warpfold.client.table_options import OF_TABLES
from warpfold.contract.described import Cell, described, describing


def describe(data: Any, columns: Sequence[str] | None, q: Sequence[float], options: Mapping[str, Any]) -> Steps[Any]:
    """A frame with a row for each column, of the library of `data`. Raises as `Client.describe`."""
    data = ManyFiles.among(data) or data
    of_file = {name: options[name] for name in sorted(OF_TABLES) if options.get(name) is not None}
    if not sources.is_file(data):
        kinds = {field.name: field.type for field in groupby.table_of(data, columns).schema}
    else:
        kinds = groupby.kinds_of(data, of_file)
    aggregations = describing(kinds, columns, q)
    asked = list(dict.fromkeys(str(each["column"]) for each in aggregations))
    made = groupby.spec_of([], aggregations, {"nan_policy": "omit", **options})
    made["source"] = yield from groupby.source_of(data, asked, options, made)
    result = jobs.result_of((yield from jobs.wait((yield from jobs.submit(made, None)))))
    assert isinstance(result, GroupTable), "the job is a group-by"
    return groupby.frame_of(_table(*described(result.columns, result.rows)), groupby.library_of(data))


def _table(names: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Any:
    import pyarrow

    return pyarrow.table({name: _array([row[at] for row in rows]) for at, name in enumerate(names)})


def _array(cells: Sequence[Cell]) -> Any:
    """Cells of columns of several types: as words where one is words, and as floats where one is a float."""
    import pyarrow

    known = [cell for cell in cells if cell is not None]
    if any(isinstance(cell, str) for cell in known):
        return pyarrow.array([None if cell is None else str(cell) for cell in cells])
    if any(isinstance(cell, float) for cell in known):
        return pyarrow.array([None if cell is None else float(cell) for cell in cells])
    return pyarrow.array([None if cell is None else int(cell) for cell in cells])

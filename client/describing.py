"""Descriptions of the columns of tables, and sizes of their groups, as frames."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from warpfold.client import groupby, jobs, sources
from warpfold.client.exchange import Steps
from warpfold.client.group_table import GroupTable
from warpfold.client.jobs import Follow
from warpfold.client.sources import ManyFiles
from warpfold.client.table_options import OF_TABLES
from warpfold.contract.described import Cell, described, describing

_SIZE = "size"


def describe(
    data: Any,
    columns: Sequence[str] | None,
    q: Sequence[float],
    options: Mapping[str, Any],
    follow: Follow | None = None,
) -> Steps[Any]:
    """A frame with a row for each column, of the library of `data`; `follow` is called with each state of the job.
    Raises as `Client.describe`."""
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
    result = jobs.result_of((yield from jobs.wait((yield from jobs.submit(made, None)), None, follow)))
    assert isinstance(result, GroupTable), "the job is a group-by"
    return groupby.frame_of(_table(*described(result.columns, result.rows)), groupby.library_of(data))


def sizes(data: object, by: Sequence[str], options: Mapping[str, Any], follow: Follow | None = None) -> Steps[Any]:
    """Hand in a group-by for the numbers of rows, and wait as `groupby.reduced`. A frame is sent with a column that has
    no null beside its keys. Raises ValueError for a file of more groups than a result holds."""
    import pyarrow

    if not sources.is_file(data):
        table = groupby.table_of(data, by)
        rows = pyarrow.array(np.ones(table.num_rows, np.bool_))
        counted = yield from groupby.reduced(
            table.append_column(_SIZE, rows), by, [{"column": _SIZE, "op": "count", "name": _SIZE}], options, follow
        )
        return groupby.frame_of(counted, groupby.library_of(data))
    numbers = [
        name for name, kind in groupby.kinds_of(data, options).items() if name not in by and groupby.is_number(kind)
    ]
    if not numbers:
        raise ValueError("a file without a column of numbers beside its keys has no sizes so far: read it as a frame")
    made = groupby.spec_of(by, [{"column": numbers[0], "op": "count", "name": _SIZE}], options)
    made["source"] = yield from groupby.source_of(data, [*by, numbers[0]], options, made)
    result = jobs.result_of((yield from jobs.wait((yield from jobs.submit(made, None)), None, follow)))
    assert isinstance(result, GroupTable), "the job is a group-by"
    if result.sizes is None:
        raise ValueError("a result with so many groups has no sizes: read the file as a frame")
    table = result.to_arrow()
    return table.set_column(len(by), _SIZE, pyarrow.array(result.sizes, pyarrow.int64()))


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

"""The values of a reduction as CSV: a row for each value, with its index on every axis, or for each group."""

import csv
import io
from collections.abc import Sequence
from itertools import product

from warpfold.app.http.errors import Invalid
from warpfold.contract.group_tables import GroupTableResult, GroupValues
from warpfold.contract.jobs import result_of
from warpfold.contract.kinds.reduce import ReduceArrayResult, ReduceResult

CSV = "text/csv"


def csv_of_result(stored: str) -> str:
    """The stored result of a reduction as CSV with the columns axis_0, axis_1, … of the result, value, hex and count,
    of decimals also `decimal`, and of instants and durations `time`. A value that is not there is an empty cell. Groups
    have a column for each key, `rows`, one for each column of values and, of floats, one for its hex. Raises Invalid
    for another kind of result."""
    result = result_of(stored)
    text = io.StringIO()
    writer = csv.writer(text)
    if isinstance(result, ReduceArrayResult):
        if result.values is None or result.counts is None:
            assert result.artefact is not None, "values that do not stand in the result are stored"
            raise Invalid.of("format", f"the values are stored apart: see {result.artefact.href}?format=csv")
        words: dict[str, Sequence[object]] = {} if result.decimal is None else {"decimal": result.decimal}
        if result.time is not None:
            words["time"] = [None if time is None else time.iso for time in result.time]
        writer.writerow([*(f"axis_{axis}" for axis in range(len(result.shape))), "value", "hex", "count", *words])
        hexes = result.hex or (None,) * len(result.values)
        indices = product(*map(range, result.shape))
        columns = (result.values, hexes, result.counts, *words.values())
        writer.writerows((*index, *row) for index, *row in zip(indices, *columns, strict=True))
    elif isinstance(result, ReduceResult):
        more = {} if result.decimal is None else {"decimal": result.decimal}
        more |= {} if result.time is None else {"time": result.time.iso}
        writer.writerow(["value", "hex", "count", *more])
        writer.writerow([result.value, result.hex, result.count, *more.values()])
    elif isinstance(result, GroupTableResult):
        if result.sizes is None and result.artefact is not None:
            raise Invalid.of("format", f"the groups are stored apart: see {result.artefact.href}?format=csv")
        names = [keys.name for keys in result.keys]
        writer.writerow([*names, "rows", *(name for column in result.columns for name in _headers(column))])
        of_groups: list[Sequence[object]] = [*(keys.values or () for keys in result.keys), result.sizes or ()]
        for column in result.columns:
            of_groups += [column.values or ()] if column.hex is None else [column.values or (), column.hex]
        writer.writerows(zip(*of_groups, strict=True))
    else:
        raise Invalid.of("format", "only the result of a reduction is a table of values")
    return text.getvalue()


def _headers(column: GroupValues) -> tuple[str, ...]:
    return (column.name, f"{column.name}_hex") if column.hex else (column.name,)

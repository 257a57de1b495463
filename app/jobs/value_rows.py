"""The values of a reduction as CSV: a row for each value, with its index on every axis, or for each group."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product

from warpfold.app.csv_text import CsvText, cells
from warpfold.app.http.errors import Invalid
from warpfold.contract.group_tables import GroupTableResult, GroupValues
from warpfold.contract.jobs import JobResult, result_of
from warpfold.contract.kinds.reduce import ReduceArrayResult, ReduceResult

CSV = "text/csv"
_ROWS = 1 << 11
"""How many rows a piece has."""

Rows = Iterable[Sequence[object]]


def csv_of_result(stored: str) -> Sequence[bytes]:
    """The stored result of a reduction as CSV, in pieces, with the columns axis_0, axis_1, … of the result, value, hex
    and count, of decimals also `decimal`, of what is known as a fraction `fraction`, and of instants and durations
    `time`. A value that is not there is an empty cell. Groups have a column for each key, `rows`, one for each column
    of values and, beside it, one for its hex, its words and its fractions where it has them.
    Raises Invalid for another kind of result."""
    names, rows = _table(result_of(stored))
    return list(_pieces(CsvText(names), iter(rows)))


def _pieces(text: CsvText, rows: Iterator[Sequence[object]]) -> Iterator[bytes]:
    while some := list(islice(rows, _ROWS)):
        text.add(some)
        yield text.taken()
    yield text.taken()  # without rows, the names alone


def _table(result: JobResult) -> tuple[Sequence[str], Rows]:
    """The names of the columns, and the rows."""
    if isinstance(result, ReduceArrayResult):
        return _of_array(result)
    if isinstance(result, ReduceResult):
        more: dict[str, object] = {} if result.decimal is None else {"decimal": result.decimal}
        more |= {} if result.fraction is None else {"fraction": result.fraction}
        more |= {} if result.time is None else {"time": result.time.iso}
        return ["value", "hex", "count", *more], [(result.value, result.hex, result.count, *more.values())]
    if isinstance(result, GroupTableResult):
        return _of_groups(result)
    raise Invalid.of("format", "only the result of a reduction is a table of values")


def _of_array(result: ReduceArrayResult) -> tuple[Sequence[str], Rows]:
    if result.values is None or result.counts is None:
        assert result.artefact is not None, "values that do not stand in the result are stored"
        raise Invalid.of("format", f"the values are stored apart: see {result.artefact.href}?format=csv")
    words: dict[str, Sequence[object]] = {} if result.decimal is None else {"decimal": result.decimal}
    if result.fraction is not None:
        words["fraction"] = result.fraction
    if result.time is not None:
        words["time"] = [None if time is None else time.iso for time in result.time]
    names = [*(f"axis_{axis}" for axis in range(len(result.shape))), "value", "hex", "count", *words]
    columns = (result.values, result.hex or (None,) * len(result.values), result.counts, *words.values())
    indices = product(*map(range, result.shape))
    return names, ((*index, *row) for index, *row in zip(indices, *columns, strict=True))


def _of_groups(result: GroupTableResult) -> tuple[Sequence[str], Rows]:
    if result.sizes is None and result.artefact is not None:
        raise Invalid.of("format", f"the groups are stored apart: see {result.artefact.href}?format=csv")
    names = [
        *(keys.name for keys in result.keys),
        "rows",
        *(name for each in result.columns for name in _of_column(each)),
    ]
    columns: list[Sequence[object]] = [*(cells(keys.values or ()) for keys in result.keys), result.sizes or ()]
    for column in result.columns:
        columns += _of_column(column).values()
    return names, zip(*columns, strict=True)


def _of_column(column: GroupValues) -> dict[str, Sequence[object]]:
    values = column.values or ()
    forms: dict[str, Sequence[object]] = {column.name: cells(values) if column.hex is None else values}
    for form, texts in (("hex", column.hex), ("words", column.words), ("fraction", column.fractions)):
        if texts is not None:
            forms[f"{column.name}_{form}"] = texts
    return forms

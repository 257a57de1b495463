"""Descriptions of tables: the ops that describe a column, and what they gave as a table with a row for each column."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.tables import dtype_of_column, meaning_of_column
from warpfold.kernels.ops import OPS

QUARTILES = (0.25, 0.5, 0.75)
_OPS = ("count_nonzero", "mean", "std", "skew", "kurtosis", "min", "quantile", "max")
_OF_A_SAMPLE = {"ddof": 1}

Cell = int | float | bool | str | None


class Reduced(Protocol):
    """A column of values of a table of groups, as the service and the client have it."""

    @property
    def name(self) -> str: ...

    @property
    def op(self) -> str: ...

    @property
    def column(self) -> str | None: ...

    @property
    def values(self) -> Sequence[Any] | None: ...

    @property
    def counts(self) -> Sequence[int] | None: ...

    @property
    def nans(self) -> Sequence[int] | None: ...

    @property
    def words(self) -> Sequence[str | None] | None: ...


def describing(
    kinds: Mapping[str, Any], columns: Sequence[str] | None = None, q: Sequence[float] = QUARTILES
) -> list[dict[str, Any]]:
    """The aggregations that describe these columns of a table, of whose columns `kinds` has the types of pyarrow; or
    all that hold numbers, decimals, instants or durations. Raises InvalidInput naming "column" for another, or where
    there is none."""
    made: list[dict[str, Any]] = []
    for name in kinds if columns is None else columns:
        try:
            made += _of_column(name, kinds[name], q)
        except InvalidInput as error:
            if columns is not None:
                raise InvalidInput(str(error), "column") from None
    if not made:
        raise InvalidInput("there is no column of numbers, decimals, instants or durations", "column")
    return made


def _of_column(name: str, kind: Any, q: Sequence[float]) -> Iterator[dict[str, Any]]:
    meaning = meaning_of_column(kind)
    if meaning is None:
        dtype_of_column(name, kind)  # raises
    for op in _OPS:
        row = OPS[op]
        if meaning is None or meaning.takes(row):
            quantiles = {"q": list(q)} if row.selects else {}
            yield {"op": op, "column": name, **quantiles, **(_OF_A_SAMPLE if row.ddof else {})}


def described(columns: Iterable[Reduced], rows: int) -> tuple[list[str], list[list[Cell]]]:
    """The names of the columns of a description, and a row for each column that was reduced: its name, how many of its
    `rows` rows are numbers, nulls, NaNs and zeros, and its values."""
    cells: dict[str, dict[str, Cell]] = {}
    for column in columns:
        name = str(column.column or column.name)
        count, nans = (each[0] if each else 0 for each in (column.counts, column.nans))
        of_column = cells.setdefault(name, {"column": name, "count": count, "nulls": rows - count, "nans": 0})
        if nans:
            of_column |= {"nulls": rows - count - nans, "nans": nans}
        value = column.values[0] if column.values else None
        if column.op == "count_nonzero":
            of_column["zeros"] = None if value is None else count - value
        else:
            label = str(column.name).removeprefix(f"{name}_")
            of_column[label] = column.words[0] if column.words and column.words[0] is not None else value
    names = list(dict.fromkeys(label for row in cells.values() for label in row))
    return names, [[row.get(label) for label in names] for row in cells.values()]

"""The table of groups that a group-by returns, as Python objects and as data frames."""

import re
from typing import TYPE_CHECKING, Any

from pydantic import Field

from warpfold.client.answer import Answer, Input, Timings
from warpfold.contract.artefact import Artefact
from warpfold.contract.exact_forms import FractionText
from warpfold.contract.json_value import JsonValue, KeyValue
from warpfold.contract.wording import number_of
from warpfold.kernels.machine.extras import bringing, install

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from warpfold.kernels.parts.keyed import GroupColumn


_STAMP = re.compile(r"timestamp\[(\w+)(?:, tz=([^\]]+))?\]")


class GroupKeys(Answer):
    """A column of keys, one for each group; `dtype` is its type as Arrow calls it."""

    name: str
    dtype: str
    values: tuple[KeyValue, ...] | None


class GroupValues(Answer):
    """A column with one value for each group, None for a group without a value; `counts` has each group's elements."""

    name: str
    op: str
    column: str | None
    dtype: str
    values: tuple[JsonValue | None, ...] | None
    hex: tuple[str | None, ...] | None
    counts: tuple[int, ...] | None
    words: tuple[str | None, ...] | None = None
    fractions: tuple[FractionText | None, ...] | None = None
    nans: tuple[int, ...] | None = None


class GroupTable(Answer):
    """A table with a row for each group: its keys, how many rows it has (`sizes`), and its values. Very many groups are
    stored instead (`artefact`): `Client.groups` downloads them, and `Client.artefact` as a file."""

    groups: int
    keys: tuple[GroupKeys, ...]
    columns: tuple[GroupValues, ...]
    sizes: tuple[int, ...] | None
    rows: int
    artefact: Artefact | None = None
    strategy: str
    correctly_rounded: bool
    backend: str
    device: dict[str, Any]
    timings: Timings
    provenance: dict[str, Any] = Field(default_factory=dict)
    input: Input | None = None

    def to_arrow(self) -> "pyarrow.Table":
        """The keys and the values as one table of pyarrow; integers that 64 bits do not hold are decimals or, where
        these do not hold them, strings. Raises ImportError without pyarrow, which the extra `frames` brings, and
        ValueError where the groups are stored."""
        if self.sizes is None:
            raise ValueError("the groups are stored in files: Client.groups downloads them")
        try:
            import pyarrow
        except ImportError as error:
            raise ImportError(f"tables of groups need pyarrow: {install('frames')}") from error
        keys = [_keys(key) for key in self.keys]
        values = [_column(column).array() for column in self.columns]
        names = [column.name for column in self._columns()]
        return pyarrow.Table.from_arrays([*keys, *values], names=names)

    def to_pandas(self) -> "pandas.DataFrame":
        """The same as a data frame of pandas, with the keys as columns. Raises ImportError without pandas."""
        with bringing("frames"):
            return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The same as a data frame of Polars, where values of more than 38 digits are strings. Raises ImportError
        without Polars."""
        return polars_of(self.to_arrow())

    def _columns(self) -> list[GroupKeys | GroupValues]:
        return [*self.keys, *self.columns]

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self._columns())
        return f"<{type(self).__name__} of {number_of('group', self.groups)} of {number_of('row', self.rows)}: {names}>"


class GroupbyResult(GroupTable):
    """The groups of a group-by; `dropped` rows had no key, and are in no group."""

    dropped: int


class MergeResult(GroupTable):
    """The groups of merged `tables` of states; with a `shape` the values of an array, whose indices are the keys."""

    tables: int
    shape: tuple[int, ...] | None


def polars_of(table: Any) -> Any:
    """A table of pyarrow as a data frame of Polars, whose decimals have at most 38 digits: longer ones are strings."""
    with bringing("polars"):
        import polars
    import pyarrow

    for place, column in enumerate(table.columns):
        if pyarrow.types.is_decimal256(column.type):
            words = [None if value is None else format(value, "f") for value in column.to_pylist()]
            table = table.set_column(place, table.column_names[place], pyarrow.array(words, pyarrow.string()))
    return polars.from_arrow(table)


def _keys(keys: GroupKeys) -> Any:
    """An array of pyarrow of the keys, of which dates and timestamps come in words."""
    import pyarrow

    stamp = _STAMP.fullmatch(keys.dtype)
    if keys.dtype in ("float", "double"):  # infinities are strings
        return pyarrow.array([None if key is None else float(key) for key in keys.values or ()], keys.dtype)
    if stamp is None and not keys.dtype.startswith("date"):
        return pyarrow.array(keys.values, pyarrow.type_for_alias(keys.dtype))
    words = pyarrow.array([None if key is None else str(key).removesuffix("Z") for key in keys.values or ()], "string")
    if stamp is None:
        days = words.cast("date32")
        return days.cast(pyarrow.date64()) if keys.dtype.startswith("date64") else days
    return words.cast(pyarrow.timestamp(stamp[1])).cast(pyarrow.timestamp(stamp[1], stamp[2]))


def _column(column: GroupValues) -> "GroupColumn":
    import numpy as np

    from warpfold.client.value_arrays import array_from
    from warpfold.kernels.parts.keyed import GroupColumn

    listed = column.values or ()
    present = array_from([0 if value is None else value for value in listed], (len(listed),), column.dtype)
    missing = np.array([value is None for value in listed], np.bool_)
    values = present.astype(np.float64) if present.dtype.kind in "fV" else present
    counts = np.array(column.counts or (), np.int64)
    return GroupColumn(
        column.name, column.op, column.dtype, values, missing, counts, words=column.words, fractions=column.fractions
    )

"""The kernels' view of a `groupby` spec: its rows, which are opened here, its plan, and the columns of its result."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from warpfold.contract.aggregations import check_multiplies
from warpfold.contract.folders import Folders
from warpfold.contract.group_tables import GroupKeys, GroupValues
from warpfold.contract.groupings import MOST_RESULTS
from warpfold.contract.json_value import check_length, hex_of
from warpfold.contract.kinds.groupby import GroupbySpec
from warpfold.contract.sources.keys import GivenKeys
from warpfold.contract.text_fields import FileOptions
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.frames import Frame, Wanted, keyed_frame
from warpfold.kernels.formats.keyed_arrays import keyed_arrays
from warpfold.kernels.machine.extras import required
from warpfold.kernels.ops import NullPolicy
from warpfold.kernels.parts.keyed import Aggregation, GroupColumn, GroupPlan, GroupTable, KeyedSource


def open_rows(spec: GroupbySpec, folders: Folders, between: tuple[int, int] | None = None) -> KeyedSource:
    """The rows that `spec` reduces; with `between` those of a range of a table's row groups, or a range of rows of
    arrays that are read by position. Raises InvalidInput with the field that is at fault, and Unavailable."""
    if spec.source is None:
        rows = _side_by_side(spec, folders, between)
    else:
        frame = spec.source.open_table(folders)
        rows = _of_table(spec, frame if between is None else frame.between(*between))
    numbers = column_numbers(spec)
    for index, asked in enumerate(spec.aggregations):
        is_float = rows.dtypes[numbers[index]].is_float
        check_multiplies(asked.op, is_float=is_float, where=f"aggregations.{index}.op")
    return rows


def rows_of_frame(spec: GroupbySpec, frame: Frame, *, refuse_nulls: bool = False) -> KeyedSource:
    """The rows of an open table. Raises InvalidInput with the field of the column that is at fault."""
    keys = [Wanted(key.column or "", key.label, f"by.{index}") for index, key in enumerate(spec.by)]
    columns: dict[str, Wanted] = {}
    for index, asked in enumerate(spec.aggregations):
        name = asked.column or ""
        columns.setdefault(name, Wanted(name, asked.label, f"aggregations.{index}.column"))
    return keyed_frame(frame, keys, list(columns.values()), refuse_nulls=refuse_nulls, meant=True)


def _of_table(spec: GroupbySpec, frame: Frame) -> KeyedSource:
    assert spec.source is not None, "the spec names a table"
    refuse = isinstance(spec.source, FileOptions) and spec.source.null_policy == "raise"
    with _called(spec.source.called):
        return rows_of_frame(spec, frame, refuse_nulls=refuse)


def _side_by_side(spec: GroupbySpec, folders: Folders, between: tuple[int, int] | None) -> KeyedSource:
    keys: list[tuple[str, Any, str]] = []
    for index, key in enumerate(spec.by):
        assert key.source is not None, "each key has a source"
        with _in_field(f"by.{index}"):
            named = key.source
            array = named.array() if isinstance(named, GivenKeys) else named.refusing_nulls().open(folders)
        keys.append((key.label, array, f"by.{index}.source"))
    columns: list[tuple[str, Any, str]] = []
    for index in sorted(set(column_numbers(spec))):
        asked = next(
            aggregation
            for aggregation, number in zip(spec.aggregations, column_numbers(spec), strict=True)
            if number == index
        )
        assert asked.source is not None, "each aggregation has a source"
        where = f"aggregations.{spec.aggregations.index(asked)}"
        with _in_field(where):
            columns.append((asked.label, asked.source.in_place().open(folders), f"{where}.source"))
    return keyed_arrays(keys, columns, between)


@contextmanager
def _called(name: str) -> Iterator[None]:
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"{name} {error}", error.field) from None


@contextmanager
def _in_field(where: str) -> Iterator[None]:
    """A source's faults name "source.…": here it is the source of a column."""
    try:
        yield
    except InvalidInput as error:
        field = error.field or "source"
        raise InvalidInput(
            str(error), f"{where}.{field}" if field.startswith("source") else f"{where}.source"
        ) from None


def column_numbers(spec: GroupbySpec) -> list[int]:
    """For each aggregation, the number of the column that it reduces; several aggregations may reduce one column."""
    read: list[object] = []
    numbers = []
    for asked in spec.aggregations:
        column: object = asked.column if spec.source is not None or asked.source is None else asked.source
        if column not in read:
            read.append(column)
        numbers.append(read.index(column))
    return numbers


def plan_of(spec: GroupbySpec) -> GroupPlan:
    """The plan of the reduction of each group's rows."""
    numbered = zip(spec.aggregations, column_numbers(spec), strict=True)
    return GroupPlan(
        aggregations=tuple(
            Aggregation(op, number, name, aggregation.ddof)
            for aggregation, number in numbered
            for name, op in aggregation.columns()
        ),
        keep_nulls=not spec.dropna,
        sort=spec.sort,
        min_count=spec.min_count,
        max_groups=spec.max_groups,
        nan_policy=spec.nan_policy,
        null_policy=NullPolicy.PROPAGATE
        if any(source.propagates_nulls for _, source in spec.sources())
        else NullPolicy.OMIT,
        states=spec.states,
        digits=spec.digits,
    )


def stands(table: GroupTable) -> bool:
    """Whether a result holds all groups, so that they need not be stored."""
    return table.sizes.size <= MOST_RESULTS


def keys_of(table: GroupTable, *, whole: bool = False) -> tuple[GroupKeys, ...]:
    """The keys of all groups, as they stand in a result; with `whole` however many there are."""
    named = zip(table.key_names, table.keys, strict=True)
    return tuple(
        GroupKeys(name=name, dtype=str(array.type), values=key_values(array) if whole or stands(table) else None)
        for name, array in named
    )


def key_values(array: Any) -> tuple[Any, ...]:
    """The keys in an array of pyarrow as values of JSON: dates and timestamps in ISO 8601."""
    pyarrow = required("pyarrow", "tables")
    if not pyarrow.types.is_temporal(array.type):
        return tuple(array.to_pylist())
    zoned = pyarrow.types.is_timestamp(array.type) and array.type.tz is not None
    plain = array.cast(pyarrow.timestamp(array.type.unit)) if zoned else array
    words = plain.cast(pyarrow.string()).to_pylist()
    return tuple(None if word is None else word.replace(" ", "T") + ("Z" if zoned else "") for word in words)


def values_of(spec: GroupbySpec, table: GroupTable, *, whole: bool = False) -> tuple[GroupValues, ...]:
    """The values of all groups, as they stand in a result; with `whole` however many there are. Raises InvalidInput for
    an integer too long to be served."""
    names = [asked.column for asked in spec.aggregations for _ in asked.columns()]
    return column_values(names, table, whole=whole)


def column_values(names: Sequence[str | None], table: GroupTable, *, whole: bool = False) -> tuple[GroupValues, ...]:
    """The values of all groups; `names` are those of the columns that were reduced. Raises as `values_of`."""
    named = zip(names, table.columns, strict=True)
    if not (whole or stands(table)):
        return tuple(
            GroupValues(
                name=column.name, op=column.op, column=name, dtype=column.dtype, values=None, hex=None, counts=None
            )
            for name, column in named
        )
    return tuple(_values(name, column) for name, column in named)


def _values(name: str | None, column: GroupColumn) -> GroupValues:
    values = column.listed()
    for value in values:
        if value is not None:
            check_length(value)
    real = column.dtype in DTYPES and DTYPES[column.dtype].is_float
    return GroupValues(
        name=column.name,
        op=column.op,
        column=name,
        dtype=column.dtype,
        values=tuple(values),
        hex=tuple(None if value is None else hex_of(value) for value in values) if real else None,
        counts=tuple(column.counts.tolist()),
        nans=None if column.nans is None else tuple(column.nans.tolist()),
        words=column.words,
        fractions=column.fractions,
    )

"""Reductions by key: what is asked of a table of rows, how the rows come, and the table of groups that comes out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.backend import Stages
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.formats.dialect import Dialect
from warpfold.kernels.lowering.meaning import Meaning
from warpfold.kernels.machine.extras import required
from warpfold.kernels.ops import NanPolicy, NullPolicy, Op, Value
from warpfold.kernels.ops.empties import with_empties
from warpfold.kernels.parts.grouping import Index
from warpfold.kernels.parts.state_tables import TableOfStates
from warpfold.kernels.source import Source, generator_of
from warpfold.kernels.sources.sequential import FileCount, Remote, Tally

MOST_GROUPS = 1_000_000
"""Groups that a reduction makes unless more are allowed."""


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An op of one of the columns; `name` is the name of the column of its values. Of an op that adds up `state_only`
    wants the states without the values, which then are missing."""

    op: Op
    column: int
    name: str
    ddof: int = 0
    state_only: bool = False


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """What to make of the rows of each group.

    A group is the rows whose keys are equal. With `keep_nulls` nulls are equal keys, else rows with a null key are
    dropped. Groups come sorted by their keys, nulls last, or in the order of their first rows. A value of fewer than
    `min_count` elements is missing, and where nulls propagate, so is one with a null among its elements. With `states`
    the exact state of every value is given, too. A mean or a quantile of integers or decimals is shown to so many
    `digits`.
    """

    aggregations: tuple[Aggregation, ...]
    keep_nulls: bool = False
    sort: bool = True
    min_count: int = 0
    max_groups: int = MOST_GROUPS
    nan_policy: NanPolicy = NanPolicy.PROPAGATE
    null_policy: NullPolicy = NullPolicy.OMIT
    states: bool = False
    digits: int | None = None


@dataclass(frozen=True, slots=True)
class Cells:
    """Elements of a column, shape (rows,), contiguous, native byte order. Where `missing` is set, the element is
    missing."""

    elements: NDArray[Any]
    missing: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """Rows from number `start` on: their keys, an array of pyarrow for each column of keys, and their columns."""

    start: int
    keys: tuple[Any, ...]
    columns: tuple[Cells, ...]


@dataclass(frozen=True, slots=True)
class KeyedPart:
    """Rows start … stop − 1, which `read` gives; several parts may be read at once."""

    start: int
    stop: int
    read: Callable[[], KeyedRows]

    def moved(self, rows: int) -> "KeyedPart":
        """The same part, whose first row has a number that is larger by `rows`. What it reads keeps its numbers, by
        which errors name rows."""
        return KeyedPart(self.start + rows, self.stop + rows, self.read)


@dataclass(frozen=True, slots=True)
class WholeColumns:
    """Rows by position: a column of keys that are integers or truth values without nulls, and the columns. Errors name
    rows by their numbers, of which that of the first row is `first`."""

    key: Source
    columns: tuple[Source, ...]
    first: int = 0

    @property
    def is_generated(self) -> bool:
        """Whether devices make the rows themselves, so that none waits for them."""
        return all(generator_of(source) is not None for source in (self.key, *self.columns))

    def parts(self) -> "Iterator[KeyedPart]":
        """The rows part by part, counted from 0."""
        for start in range(0, self.key.count, PART_ROWS):
            stop = min(start + PART_ROWS, self.key.count)
            yield KeyedPart(start, stop, partial(self._rows, start, stop))

    def _rows(self, start: int, stop: int) -> KeyedRows:
        keys = required("pyarrow", "tables").array(np.ascontiguousarray(self.key.read(start, stop)))
        cells = (Cells(np.ascontiguousarray(column.read(start, stop))) for column in self.columns)
        return KeyedRows(self.first + start, (keys,), tuple(cells))


@dataclass(frozen=True, slots=True)
class KeyedSource:
    """Rows that come in order: the names of the keys and their types of pyarrow, and the names and dtypes of the
    columns. `begin` gives the parts, of at most PART_ROWS rows; `likely` is how many rows there may be. `decodes` says
    that asking for a part takes the time of decoding it; `remotes` are the objects of places that are read, and
    `counts` the rows of several files, once they were read. `whole` has the same rows by position, where there is one
    column of such keys. `meanings` say of each column what its integers stand for, and are empty where all columns hold
    values (`kernels.lowering.reducing`); then each column has its own of `tallies`, too, in which a reader may ask for
    what int64 leaves out of its integers. `files` are the sources of whole arrays, each with its name, of which
    `kernels.sources.file_checks` says whether they stay as they were."""

    key_names: tuple[str, ...]
    key_types: tuple[Any, ...]
    column_names: tuple[str, ...]
    dtypes: tuple[DType, ...]
    begin: Callable[[], Iterator[KeyedPart]]
    likely: int
    decodes: bool = False
    remotes: Callable[[], Sequence[Remote]] = tuple
    counts: Callable[[], Sequence[FileCount]] = tuple
    dialects: Callable[[], tuple[Dialect, ...]] = tuple
    whole: WholeColumns | None = None
    meanings: tuple[Meaning | None, ...] = ()
    tallies: tuple[Tally, ...] = ()
    files: tuple[tuple[str, Source], ...] = ()

    def in_one_group(self) -> "KeyedSource":
        """The same rows, which have no key, with one that is equal in all of them."""
        pyarrow = required("pyarrow", "tables")

        def read(part: KeyedPart) -> KeyedRows:
            rows = part.read()
            return replace(rows, keys=(pyarrow.array(np.zeros(part.stop - part.start, np.int8)),))

        def begin() -> Iterator[KeyedPart]:
            return (KeyedPart(part.start, part.stop, partial(read, part)) for part in self.begin())

        return replace(self, key_names=("",), key_types=(pyarrow.int8(),), begin=begin)


PART_ROWS = 1 << 17
"""Rows at a time: their keys and a column stay in a second-level cache."""


@dataclass(frozen=True, slots=True)
class GroupColumn:
    """The values of an aggregation, one for each group: floats as float64, integers as int64, uint64 or Python
    integers. Where `missing` is set, the value is missing. `counts` says how many elements entered each, and `nans` how
    many NaNs were left out, if that is known. `dtype` is the name of a dtype, or "integer". `states` are the exact
    states of the sums where they were asked for, and for a variance those of the sums of squares, too. `words` are
    decimals in full, or instants and durations in ISO 8601, and `fractions` means and quantiles of decimals exactly."""

    name: str
    op: str
    dtype: str
    values: NDArray[Any]
    missing: NDArray[np.bool_]
    counts: NDArray[np.int64]
    states: tuple[StateColumn, ...] = ()
    words: tuple[str | None, ...] | None = None
    fractions: tuple[Fraction | None, ...] | None = None
    nans: NDArray[np.int64] | None = None

    def listed(self, most: int | None = None) -> list[Value | None]:
        """The values, or the first `most`; None where one is missing."""
        values = self.values[:most].tolist()
        missing = self.missing[:most].tolist()
        return [None if gone else value for value, gone in zip(values, missing, strict=True)]

    def taken(self, order: NDArray[np.int64]) -> "GroupColumn":
        """The same values in this order."""
        return replace(
            self,
            values=self.values[order],
            missing=self.missing[order],
            counts=self.counts[order],
            states=tuple(column.taken(order) for column in self.states),
            words=None if self.words is None else tuple(self.words[at] for at in order.tolist()),
            fractions=None if self.fractions is None else tuple(self.fractions[at] for at in order.tolist()),
            nans=None if self.nans is None else self.nans[order],
        )

    def array(self) -> Any:
        """The values as an array of pyarrow: decimals, and integers that 64 bits do not hold, as decimals of up to 76
        digits or, where these do not hold them, as strings; bfloat16 as float32; instants and durations as their own
        types, which hold int64."""
        pyarrow = required("pyarrow", "tables")
        if self.words is not None and self.dtype in DTYPES:
            try:
                return pyarrow.array([None if word is None else Decimal(word) for word in self.words])
            except pyarrow.ArrowInvalid:  # more than 76 digits
                return pyarrow.array(self.words, pyarrow.string())
        times = self.words is not None and self.dtype not in DTYPES
        if self.dtype not in DTYPES and (self.values.dtype == object or (times and self.values.dtype != np.int64)):
            listed = self.listed()
            digits = max((len(str(abs(value))) for value in listed if value is not None), default=1)
            if digits > 76:
                return pyarrow.array([None if value is None else str(value) for value in listed], pyarrow.string())
            kind = pyarrow.decimal128(38) if digits <= 38 else pyarrow.decimal256(76)
            return pyarrow.array(listed, kind)
        values = self.values
        if self.dtype in DTYPES and DTYPES[self.dtype].is_float:
            values = values.astype(DTYPES[self.dtype].numpy if DTYPES[self.dtype].native else np.float32)
        array = pyarrow.array(values, mask=self.missing if self.missing.any() else None)
        if not times:
            return array
        kind = _arrow_type(self.dtype)
        return (array.cast(pyarrow.int32()) if kind == pyarrow.date32() else array).cast(kind)


@dataclass(frozen=True, slots=True)
class GroupTable:
    """A row for each group: its keys, how many rows it has, and its values. `rows` are the rows of all groups, and
    `dropped` those with a null key, which are in no group. `described` describes the columns of states, if the table
    has such columns, and `kernel` names the kernel that a GPU chose. `dialects` say how the texts are
    written, and `files` the rows of several files, where they were read on this machine."""

    key_names: tuple[str, ...]
    keys: tuple[Any, ...]
    sizes: NDArray[np.int64]
    columns: tuple[GroupColumn, ...]
    dropped: int
    load_ms: float
    kernel_ms: float
    prepare_ms: float = 0.0
    stages: Stages | None = None
    described: TableOfStates | None = None
    kernel: str | None = None
    dialects: tuple[Dialect, ...] = ()
    files: Sequence[FileCount] = ()

    @property
    def rows(self) -> int:
        return int(self.sizes.sum())

    def without_states(self) -> "GroupTable":
        """The same table, which is one of keys and values alone."""
        return replace(self, described=None)

    def table(self) -> Any:
        """The keys and the values as one table of pyarrow: with their states, it is a table of states."""
        pyarrow = required("pyarrow", "tables")
        arrays = [*self.keys, *(column.array() for column in self.columns)]
        names = [*self.key_names, *(column.name for column in self.columns)]
        described = self.described
        if described is None:
            return pyarrow.Table.from_arrays(arrays, names=names)
        if described.sizes is not None:
            arrays.append(pyarrow.array(self.sizes))
            names.append(described.sizes)
        for column, each in zip(self.columns, described.values, strict=True):
            arrays += [states.array() for states in column.states]
            names += each.states
        return pyarrow.Table.from_arrays(arrays, names=names, metadata=described.metadata())


def _arrow_type(name: str) -> Any:
    """The type of pyarrow for instants or durations whose dtype has this name."""
    pyarrow = required("pyarrow", "tables")
    if name.startswith("date32"):
        return pyarrow.date32()
    kind, _, inner = name.rstrip("]").partition("[")
    unit, _, zone = inner.partition(", tz=")
    return pyarrow.duration(unit) if kind == "duration" else pyarrow.timestamp(unit, zone or None)


def check_groups(count: int, most: int | None) -> None:
    """Raise InvalidInput naming "max_groups" where there are more groups than it allows."""
    if most is not None and count > most:
        raise InvalidInput(
            f"the keys make more than {most:,} groups: {count:,} were reached; max_groups may allow more", "max_groups"
        )


def needed_count(asked: Aggregation, min_count: int) -> int:
    """How many elements a value needs at least."""
    return max(min_count, asked.op.least_count(asked.ddof))


def column_of(asked: Aggregation, dtype: DType, values: NDArray[Any], counts: Index, min_count: int) -> GroupColumn:
    """The column of `values` of groups of `counts` elements of `dtype`. The value of a group without elements is
    replaced."""
    op = asked.op
    missing = counts < needed_count(asked, min_count)
    values = with_empties(op, dtype, values, counts)
    return GroupColumn(asked.name, op.name, op.result_dtype(dtype), values, missing, counts)


def column_of_counts(asked: Aggregation, dtype: DType, counts: Index) -> GroupColumn:
    """The column of groups of `counts` elements whose states alone are wanted, still without them."""
    missing = np.ones(counts.size, np.bool_)
    return GroupColumn(asked.name, asked.op.name, asked.op.result_dtype(dtype), np.zeros(counts.size), missing, counts)


def whole_numbers(values: Sequence[int]) -> NDArray[Any]:
    """Integers of any size as int64, uint64 or, where neither holds them, Python integers."""
    for dtype in (np.int64, np.uint64):
        try:
            return np.array(values, dtype)
        except OverflowError:
            continue
    array = np.empty(len(values), object)
    array[:] = values
    return array

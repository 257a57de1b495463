"""Groups by key of decimals beyond int64: their rows are read once more for each word of 64 bits, put in the order of
their groups, and reduced in NumPy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.memory import require
from warpfold.kernels.lowering.long_integers import Beyond
from warpfold.kernels.lowering.wide_runs import Index, Words, reduce_all_runs
from warpfold.kernels.machine.extras import required
from warpfold.kernels.parts.keyed import Aggregation, GroupTable, KeyedSource


@dataclass(frozen=True, slots=True)
class _Column:
    """All rows of a column as words, and which of them are nulls."""

    words: Words
    missing: NDArray[np.bool_]


def values_of_groups(source: KeyedSource, table: GroupTable, asked: Sequence[Aggregation]) -> list[NDArray[Any]]:
    """The values of aggregations of columns that have integers beyond int64, one for each group of `table`: Python
    integers, for a mean the sum, and 0 for a missing value. Raises OutOfMemory where the columns do not fit."""
    columns, groups = _read(source, table, sorted({each.column for each in asked}))
    values = []
    for each in asked:
        column = columns[each.column]
        rows = np.flatnonzero((groups >= 0) & ~column.missing)
        rows = rows[np.argsort(groups[rows], kind="stable")]
        bounds = np.searchsorted(groups[rows], np.arange(table.sizes.size + 1))
        reduced = np.empty(table.sizes.size, object)
        reduced[:] = [
            0 if value is None else value for value in reduce_all_runs(each.op, column.words[:, rows], bounds)
        ]
        if each.op.places:  # a place among the rows of its group stands for a row of the table
            held = np.diff(bounds) > 0
            reduced[held] = rows[bounds[:-1][held] + reduced[held].astype(np.int64)]
        values.append(reduced)
    return values


def _read(source: KeyedSource, table: GroupTable, columns: Sequence[int]) -> tuple[dict[int, _Column], Index]:
    """The columns, and the number of the group of each row; −1 for a row that is in no group."""
    words = max(beyond.words for column in columns if (beyond := source.tallies[column].beyond) is not None)
    made: dict[int, list[NDArray[Any]]] = {column: [] for column in columns}
    missing: dict[int, list[NDArray[np.bool_]]] = {column: [] for column in columns}
    groups: list[Index] = []
    rows = 0
    for word in range(words):
        for column in columns:
            source.tallies[column].beyond = Beyond(word=word)
        parts: dict[int, list[NDArray[Any]]] = {column: [] for column in columns}
        for part in source.begin():
            read = part.read()
            if word == 0:
                rows += part.stop - part.start
                # All words, the rows in the order of their groups, and the elements of a read.
                require(rows * 8 * (2 * words * len(columns) + 4), "the decimals beyond 64 bits of all groups")
                groups.append(_numbers(table.keys, read.keys))
            for column in columns:
                cells = read.columns[column]
                parts[column].append(cells.elements)
                if word == 0:
                    none = np.zeros(cells.elements.size, np.bool_)
                    missing[column].append(none if cells.missing is None else cells.missing)
        for column in columns:
            made[column].append(np.concatenate(parts[column]))
    whole = {column: _Column(np.stack(made[column]), np.concatenate(missing[column])) for column in columns}
    return whole, np.concatenate(groups)


def _numbers(groups: Sequence[Any], rows: Sequence[Any]) -> Index:
    """The number of the group whose keys each row has; −1 where no group has them."""
    compute = required("pyarrow.compute", "tables")
    count, length = len(groups[0]), len(rows[0])
    codes, of_rows = np.zeros(count, np.int64), np.zeros(length, np.int64)
    for of_groups, column in zip(groups, rows, strict=True):
        known, keys = _plain(of_groups), _plain(column)
        distinct = known.unique()
        places = compute.index_in(known, value_set=distinct).to_numpy(zero_copy_only=False)
        indices = (
            compute.index_in(keys.cast(known.type), value_set=distinct).fill_null(-1).to_numpy(zero_copy_only=False)
        )
        combined = codes * len(distinct) + places
        sought = np.where((of_rows < 0) | (indices < 0), -1, of_rows * len(distinct) + indices)
        kept, codes = np.unique(combined, return_inverse=True)  # fewer than groups, so that products stay small
        at = np.minimum(np.searchsorted(kept, sought), max(0, kept.size - 1))
        of_rows = np.where((sought >= 0) & (kept[at] == sought), at, -1) if kept.size else np.full(length, -1)
    numbers = np.empty(count, np.int64)
    numbers[codes] = np.arange(count)
    return np.where(of_rows >= 0, numbers[of_rows], -1) if count else np.full(length, -1, np.int64)


def _plain(keys: Any) -> Any:
    """Keys as one array without a dictionary."""
    pyarrow = required("pyarrow", "tables")
    if isinstance(keys, pyarrow.ChunkedArray):
        keys = keys.combine_chunks()
    return keys.dictionary_decode() if pyarrow.types.is_dictionary(keys.type) else keys

"""Exact reductions by group within flox: each `Aggregation` of this module is a `func` for `flox.groupby_reduce` and
`flox.xarray.xarray_reduce`. Any chunks and any method give the same bits.

flox reindexes what blocks give, and merges it along an axis. So a partial result is one Python integer (`flox_parts`):
merging is addition, for which NumPy has a loop, and what a block lacks is 0. Each value is rounded once.
"""

from collections.abc import Iterator
from functools import partial
from math import isnan
from typing import Any

import numpy as np
from flox.aggregations import Aggregation
from numpy.typing import NDArray

from warpfold.engines.flox_parts import count_of, dtype_of_elements, packed, packed_states, rounded, state
from warpfold.engines.numbered import reduce_groups
from warpfold.kernels.cpu.grouped.partial import PartialResults
from warpfold.kernels.cpu.grouped.together import as_digits
from warpfold.kernels.dtypes import DTYPES, DType, dtype_of
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import deviation, value_of, variance
from warpfold.kernels.keyed import Cells
from warpfold.kernels.ops import INTEGER, Finish, Terms, op_named

_FEW = 32
"""Up to so many values a group, all groups are added up in one pass."""

Parts = NDArray[np.object_]
"""Partial results: Python integers."""


def _parts_of(
    numbers: NDArray[Any],
    array: NDArray[Any],
    op: str = "sum",
    skipna: bool = False,
    *,
    size: int,
    fill_value: Any = None,
    dtype: Any = None,
) -> Parts:
    """The sums that `op` names, of the elements of `array` along its last axis. Element i belongs to group numbers[i],
    of which there are `size`."""
    if type(array) is not np.ndarray:
        raise TypeError(f"blocks are NumPy arrays, not {type(array).__module__}.{type(array).__name__}")
    rows, dtype = _rows_of(array), dtype_of(array.dtype)
    made = np.zeros((int(np.prod(array.shape[:-1])), size), object)
    if rows.shape[0] <= _FEW:
        for row, elements in zip(made, rows, strict=False):
            row[:] = _in_one_pass(np.ascontiguousarray(elements), numbers, op, skipna, size, dtype)
    else:
        for group, members in _members(numbers):
            made[:, group] = _of_columns(rows[:, members], op, skipna, dtype)
    return made.reshape(*array.shape[:-1], size)


def _rows_of(array: NDArray[Any]) -> NDArray[Any]:
    """The rows along the last axis; none of an array without elements."""
    return array.reshape(-1, array.shape[-1]) if array.size else array.reshape(-1, max(1, array.shape[-1]))[:0]


def _members(numbers: NDArray[Any]) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Each group that has elements, and where they are. A negative number belongs to no group."""
    order = np.argsort(numbers, kind="stable")
    present, starts = np.unique(numbers[order], return_index=True)
    for group, members in zip(present.tolist(), np.split(order, starts[1:]), strict=True):
        if group >= 0:
            yield group, members


def _in_one_pass(  # noqa: PLR0917
    elements: NDArray[Any], numbers: NDArray[Any], op: str, skipna: bool, size: int, dtype: DType
) -> list[int]:
    """The parts of all groups of one row."""
    if skipna and dtype_of(elements.dtype).is_float:
        numbers = np.where(np.isnan(elements), -1, numbers)
    states = reduce_groups(Cells(elements), numbers.astype(np.int64), size, op, states=True).states[0]
    return packed_states(states, dtype)


def _of_columns(elements: NDArray[Any], op: str, skipna: bool, dtype: DType) -> list[int]:
    """The parts of one group, for each row of its elements."""
    counts = [elements.shape[1]] * elements.shape[0]
    if skipna and dtype_of(elements.dtype).is_float:
        missing = np.isnan(elements)
        counts = (elements.shape[1] - missing.sum(axis=1)).tolist()
        elements = np.where(missing, elements.dtype.type(-0.0), elements)
    return packed(as_digits(PartialResults.of(elements, (1,), op).sums[0]), counts, dtype)


def _merged(
    first: Any,
    second: Any = None,
    *,
    axis: Any = None,
    keepdims: bool = False,
    size: int = 0,
    fill_value: Any = None,
    dtype: Any = None,
) -> Parts:
    """Parts that are merged along `axis`; or, as flox calls it with the numbers of groups first, those of each group
    along the last axis."""
    if second is None:
        merged: Parts = np.sum(first, axis=axis, keepdims=keepdims)
        return merged
    made = np.zeros((*second.shape[:-1], size), object)
    where: Any = (..., first)
    np.add.at(made, where, second)
    return made


def _rounded(*parts: Parts, op: str, ddof: int = 0) -> NDArray[Any]:
    """The values, each rounded once to the dtype that the op has for these elements."""
    row, flat, none = op_named(op), [each.reshape(-1).tolist() for each in parts], _of_none(op)
    some = next((part for part in flat[0] if part), None)
    if some is None:
        return np.full(parts[0].shape, none)
    elements = dtype_of_elements(some)
    result = row.result_dtype(elements)
    if result != INTEGER and row.finish in {Finish.ITSELF, Finish.MEAN} and len(flat) == 1:
        at_once = rounded(flat[0], row.terms, DTYPES[result], none, mean=row.finish is Finish.MEAN)
        if at_once is not None:
            return _floats(at_once, result).reshape(parts[0].shape)
    values: list[Any] = []
    for each in zip(*flat, strict=True):
        if not each[0] or (row.ddof and count_of(each[0]) <= ddof):
            values.append(none)
        elif len(each) == 1:
            values.append(value_of(row, state(each[0], row.terms), result))
        else:
            finish = variance if row.finish is Finish.VARIANCE else deviation
            values.append(finish(state(each[0], Terms.VALUES), state(each[1], Terms.PRODUCTS), ddof, DTYPES[result]))
    if result != INTEGER:
        return _floats(np.array(values, np.float64), result).reshape(parts[0].shape)
    bounds = np.iinfo(np.uint64 if elements.numpy.kind == "u" else np.int64)
    beyond = [value for value in values if not bounds.min <= value <= bounds.max]
    if beyond:
        raise InvalidInput(f"the sum {beyond[0]} does not fit {bounds.dtype}")
    return np.array(values, bounds.dtype).reshape(parts[0].shape)


def _floats(values: NDArray[np.float64], result: str) -> NDArray[Any]:
    """Values that are rounded to the dtype `result`, in that dtype."""
    return values.astype(DTYPES[result].numpy)


def _of_none(op: str) -> float | int:
    """The value of no elements."""
    return 0 if op_named(op).finish in {Finish.ITSELF, Finish.ROOT} else np.nan


def _values_of(
    numbers: NDArray[Any],
    array: NDArray[Any],
    op: str,
    skipna: bool,
    *,
    ddof: int = 0,
    **asked: Any,
) -> NDArray[Any]:
    """The values of an array in memory."""
    rows = _rows_of(array)
    skips = skipna and dtype_of(array.dtype).is_float and bool(np.isnan(array).any())
    if type(array) is np.ndarray and rows.shape[0] > _FEW and not skips:
        return _of_whole_groups(numbers, rows, op, ddof, asked["size"]).reshape(*array.shape[:-1], asked["size"])
    parts = (_parts_of(numbers, array, sums, skipna, **asked) for sums in _sums(op))
    return _rounded(*parts, op=op, ddof=ddof)


def _of_whole_groups(numbers: NDArray[Any], rows: NDArray[Any], op: str, ddof: int, size: int) -> NDArray[Any]:
    """The values of rows and groups that have all of their elements here, which need no partial results."""
    result = op_named(op).result_dtype(dtype_of(rows.dtype))
    integers = np.dtype(np.uint64 if rows.dtype.kind == "u" else np.int64)
    dtype = integers if result == INTEGER else DTYPES[result].numpy
    made = np.full((rows.shape[0], size), _of_none(op), dtype)
    for group, members in _members(numbers):
        made[:, group] = PartialResults.of(rows[:, members], (1,), op).values(dtype, ddof).reshape(-1)
    return made


def _sums(op: str) -> tuple[str, ...]:
    """The ops whose sums `op` takes."""
    row = op_named(op)
    if row.terms is Terms.MOMENTS:
        return "sum", "sum_squares"
    return (op,) if row.magnitudes else ("sum_squares",) if row.terms is Terms.PRODUCTS else ("sum",)


def aggregation(op: str, *, skipna: bool = False) -> Aggregation:
    """An aggregation for flox; with `skipna` a NaN is left out, and otherwise it makes its value NaN.

    `finalize_kwargs={"ddof": 1}` gives a variance its degrees of freedom. A value has the dtype of the elements; of
    integers it is int64, uint64 or float64. flox's own `dtype` converts rounded values.
    """
    sums, none = _sums(op), _of_none(op)
    floats = op_named(op).result_dtype(DTYPES["int64"]) != INTEGER
    return Aggregation(
        ("nan" if skipna else "") + op,
        numpy=partial(_values_of, op=op, skipna=skipna),
        chunk=tuple(partial(_parts_of, op=each, skipna=skipna) for each in sums),
        combine=(_merged,) * len(sums),
        finalize=partial(_rounded, op=op),
        fill_value=(0,) * len(sums),
        final_fill_value=np.nan if isnan(none) else 0,
        dtypes=(np.dtype(object),) * len(sums),
        final_dtype=np.floating if floats else None,
    )


sum, nansum = (aggregation("sum", skipna=skipna) for skipna in (False, True))
mean, nanmean = (aggregation("mean", skipna=skipna) for skipna in (False, True))
var, nanvar = (aggregation("var", skipna=skipna) for skipna in (False, True))
std, nanstd = (aggregation("std", skipna=skipna) for skipna in (False, True))
norm1, nannorm1 = (aggregation("norm1", skipna=skipna) for skipna in (False, True))
norm2, nannorm2 = (aggregation("norm2", skipna=skipna) for skipna in (False, True))
sum_squares, nansum_squares = (aggregation("sum_squares", skipna=skipna) for skipna in (False, True))

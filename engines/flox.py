"""Exact reductions by group within flox: each `Aggregation` of this module is a `func` for `flox.groupby_reduce` and
`flox.xarray.xarray_reduce`. Any chunks and any method give the same bits.

flox reindexes what blocks give, and merges it along an axis. So a partial result is one Python integer: the units of an
exact state (docs/exact-state.md), and below them its count and its flags, as counts of blocks. Merging is addition, for
which NumPy has a loop, and what a block lacks is 0. Each value is rounded once.
"""

from functools import partial
from math import isnan
from typing import Any

import numpy as np
from flox.aggregations import Aggregation
from numpy.typing import NDArray

from warpfold.engines.numbered import reduce_groups
from warpfold.kernels.cpu.grouped.digits import DIGIT_BITS
from warpfold.kernels.cpu.grouped.partial import PartialResults
from warpfold.kernels.cpu.grouped.two_levels import TwoLevels
from warpfold.kernels.dtypes import DTYPES, dtype_of
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ORIGIN, ExactState, Flags, deviation, value_of, variance
from warpfold.kernels.keyed import Cells
from warpfold.kernels.ops import INTEGER, Finish, Terms, op_named

_FIELD, _MASK = 64, (1 << 64) - 1
"""Bits of a field below the units. No field overflows, because none counts more than the elements or 16 a block."""

_FLAGS = tuple(int(flag) for flag in Flags)
_BLOCKS, _DTYPES, _FIRST_FLAG = 1, 2, 3
"""After the count of elements: how many blocks have elements, the sum of the numbers of their dtypes, and for each flag
how many blocks have it."""

_UNITS = _FIELD * (_FIRST_FLAG + len(_FLAGS))
_NAMES = tuple(DTYPES)

_FEW = 32
"""Up to so many values a group, all groups are added up in one pass, whose states take some microseconds each."""

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
    rows = array.reshape(-1, array.shape[-1]) if array.size else array.reshape(-1, max(1, array.shape[-1]))[:0]
    number = _NAMES.index(dtype_of(array.dtype).name)
    made = np.zeros((int(np.prod(array.shape[:-1])), size), object)
    if rows.shape[0] <= _FEW:
        for row, elements in zip(made, rows, strict=False):
            row[:] = _in_one_pass(np.ascontiguousarray(elements), numbers, op, skipna, size, number)
    else:
        order = np.argsort(numbers, kind="stable")
        present, starts = np.unique(numbers[order], return_index=True)
        for group, members in zip(present.tolist(), np.split(order, starts[1:]), strict=True):
            made[:, group] = _of_columns(rows[:, members], op, skipna, number)
    return made.reshape(*array.shape[:-1], size)


def _in_one_pass(  # noqa: PLR0917
    elements: NDArray[Any], numbers: NDArray[Any], op: str, skipna: bool, size: int, number: int
) -> list[int]:
    """The parts of all groups of one row."""
    if skipna and dtype_of(elements.dtype).is_float:
        numbers = np.where(np.isnan(elements), -1, numbers)
    states = reduce_groups(Cells(elements), numbers.astype(np.int64), size, op, states=True).states[0]
    whole = (ExactState.from_bytes(states[group]) for group in range(size))
    return [_packed(state.units, int(state.flags), state.count, number) for state in whole]


def _of_columns(elements: NDArray[Any], op: str, skipna: bool, number: int) -> list[int]:
    """The parts of one group, for each row of its elements."""
    counts = [elements.shape[1]] * elements.shape[0]
    if skipna and dtype_of(elements.dtype).is_float:
        missing = np.isnan(elements)
        counts = (elements.shape[1] - missing.sum(axis=1)).tolist()
        elements = np.where(missing, elements.dtype.type(-0.0), elements)
    sums = PartialResults.of(elements, (1,), op).sums[0]
    digits = sums.digits() if isinstance(sums, TwoLevels) else sums
    units = np.zeros(len(counts), object)
    for words in digits.digits[::-1]:
        units = (units << DIGIT_BITS) + words.astype(object)
    units <<= digits.exponent - ORIGIN[digits.terms]
    return [
        _packed(unit, flags, count, number)
        for unit, flags, count in zip(units, digits.flags.tolist(), counts, strict=True)
    ]


def _packed(units: int, flags: int, count: int, number: int) -> int:
    if not count:
        return 0
    low = count | 1 << _FIELD * _BLOCKS | number << _FIELD * _DTYPES
    for place, flag in enumerate(_FLAGS, _FIRST_FLAG):
        if flags & flag:
            low |= 1 << _FIELD * place
    return (units << _UNITS) + low


def _state(part: int, terms: Terms) -> ExactState:
    """What a part that is not 0 stands for."""
    flags = 0
    for place, flag in enumerate(_FLAGS, _FIRST_FLAG):
        if part >> _FIELD * place & _MASK:
            flags |= flag
    return ExactState(terms, part >> _UNITS, part & _MASK, Flags(flags))


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
    row, flat = op_named(op), [each.reshape(-1).tolist() for each in parts]
    some = next((part for part in flat[0] if part), None)
    if some is None:
        return np.full(parts[0].shape, _of_none(op))
    elements = DTYPES[_NAMES[(some >> _FIELD * _DTYPES & _MASK) // (some >> _FIELD * _BLOCKS & _MASK)]]
    result = row.result_dtype(elements)
    values: list[Any] = []
    for each in zip(*flat, strict=True):
        if not each[0] or (row.ddof and each[0] & _MASK <= ddof):
            values.append(_of_none(op))
        elif len(each) == 1:
            values.append(value_of(row, _state(each[0], row.terms), result))
        else:
            finish = variance if row.finish is Finish.VARIANCE else deviation
            states = _state(each[0], Terms.VALUES), _state(each[1], Terms.PRODUCTS)
            values.append(finish(*states, ddof, DTYPES[result]))
    if result != INTEGER:
        return np.array(values, np.float64).astype(DTYPES[result].numpy).reshape(parts[0].shape)
    bounds = np.iinfo(np.uint64 if elements.numpy.kind == "u" else np.int64)
    beyond = [value for value in values if not bounds.min <= value <= bounds.max]
    if beyond:
        raise InvalidInput(f"the sum {beyond[0]} does not fit {bounds.dtype}")
    return np.array(values, bounds.dtype).reshape(parts[0].shape)


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
    parts = (_parts_of(numbers, array, sums, skipna, **asked) for sums in _sums(op))
    return _rounded(*parts, op=op, ddof=ddof)


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

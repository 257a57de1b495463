"""Exact reductions by group within flox: each `Aggregation` of this module is a `func` for `flox.groupby_reduce` and
`flox.xarray.xarray_reduce`. Any chunks and any method give the same bits.

flox reindexes what blocks give, and merges it along an axis. So a partial result is one element of an array: of sums
and means a record (`flox_records`), and else, or where records do not hold the sums of a block, one Python integer
(`flox_parts`), which NumPy adds. What a block lacks is 0. Each value is rounded once.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from flox.aggregations import Aggregation
from flox.xrdtypes import NA
from numpy.typing import NDArray

from warpfold.engines import flox_records, flox_values
from warpfold.engines.flox_parts import TIMES, count_of, dtype_of_elements, packed, packed_states, rounded, state
from warpfold.engines.flox_records import CARRIED, NOTHING, RECORD
from warpfold.engines.flox_times import TimesAsTheyAre, are_times, integers_of_times, mark_nats, values_of_times
from warpfold.engines.numbered import reduce_groups
from warpfold.kernels.cpu.grouped.digits import Digits
from warpfold.kernels.cpu.grouped.partial import PartialResults
from warpfold.kernels.cpu.grouped.together import Levels, as_digits
from warpfold.kernels.dtypes import DTYPES, DType, dtype_of
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import value_of
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.ops import INTEGER, Finish, Terms, op_named, terms_of
from warpfold.kernels.parts.keyed import Cells

_FEW = 32
"""Up to so many values a group, all groups are added up in one pass."""

Missing = NDArray[np.bool_] | None
"""Which elements are left out; None where none is."""

Parts = NDArray[Any]
"""Partial results: records or Python integers."""


def _parts_of(
    numbers: NDArray[Any],
    array: NDArray[Any],
    op: str = "sum",
    skipna: bool = False,
    in_records: bool = False,
    *,
    size: int,
    fill_value: Any = None,
    dtype: Any = None,
    of: str = "",
) -> Parts:
    """The sums that `op` names, which are those of the op `of`, of the elements of `array` along its last axis. Element
    i belongs to group numbers[i], of which there are `size`."""
    if type(array) is not np.ndarray:
        raise TypeError(f"blocks are NumPy arrays, not {type(array).__module__}.{type(array).__name__}")
    rows, times, missing = _rows_of(array), are_times(array.dtype), None
    dtype = TIMES if times else dtype_of(array.dtype)
    if times:
        rows, missing = integers_of_times(rows, op_named(of or op))
    elif skipna and dtype.is_float:
        missing = np.isnan(rows)
    shape = int(np.prod(array.shape[:-1])), size
    sums: Iterable[_Sums] = _sums_of(numbers, rows, op, missing if skipna else None, size)
    made: Parts = np.zeros(shape, RECORD if in_records else object)
    if in_records:
        sums = list(sums)
        if not all(each.put(made, dtype) for each in sums):
            made, in_records = np.zeros(shape, object), False
    if not in_records:
        for each in sums:
            made[each.where] = each.packed(dtype)
    if times and not skipna and missing is not None:
        mark_nats(made, numbers, missing)
    return (made.view(CARRIED) if in_records else made).reshape(*array.shape[:-1], size)


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums of some rows and groups, which are to go where `where` says."""

    where: Any
    sums: Digits | Levels | StateColumn
    counts: Any

    def put(self, made: Parts, dtype: DType) -> bool:
        """Write them as records; False where records do not hold them."""
        if isinstance(self.sums, StateColumn):
            return flox_records.put_states(made[self.where], self.sums, dtype)
        return flox_records.put(made[self.where], self.sums, self.counts, dtype)

    def packed(self, dtype: DType) -> list[int]:
        """The same as Python integers."""
        if isinstance(self.sums, StateColumn):
            return packed_states(self.sums, dtype)
        return packed(as_digits(self.sums), self.counts.tolist(), dtype)


def _sums_of(numbers: NDArray[Any], rows: NDArray[Any], op: str, missing: Missing, size: int) -> Iterator[_Sums]:
    """The sums of rows without the elements that are missing."""
    if rows.shape[0] <= _FEW:
        for at, elements in enumerate(rows):
            groups = numbers if missing is None else np.where(missing[at], -1, numbers)
            yield _Sums(at, _in_one_pass(np.ascontiguousarray(elements), groups, op, size), None)
    else:
        for group, members in _members(numbers):
            sums, counts = _of_columns(rows[:, members], op, None if missing is None else missing[:, members])
            yield _Sums((slice(None), group), sums, counts)


def _rows_of(array: NDArray[Any]) -> NDArray[Any]:
    """The rows along the last axis; none of an array without elements."""
    return array.reshape(-1, array.shape[-1]) if array.size else array.reshape(-1, max(1, array.shape[-1]))[:0]


def _members(numbers: NDArray[Any]) -> Iterator[tuple[int, Any]]:
    """Each group that has elements, and where they are: a slice where they are evenly apart, which saves a copy. A
    negative number belongs to no group."""
    order = np.argsort(numbers, kind="stable")
    present, starts = np.unique(numbers[order], return_index=True)
    for group, members in zip(present.tolist(), np.split(order, starts[1:]), strict=True):
        if group < 0:
            continue
        first, last, step = int(members[0]), int(members[-1]), int(members[1] - members[0]) if members.size > 1 else 1
        even = (np.diff(members) == step).all()
        yield group, slice(first, last + 1, step) if even else members


def _in_one_pass(elements: NDArray[Any], numbers: NDArray[Any], op: str, size: int) -> StateColumn:
    """The states of all groups of one row."""
    return reduce_groups(Cells(elements), numbers.astype(np.int64), size, op, states=True).states[0]


def _of_columns(elements: NDArray[Any], op: str, missing: Missing) -> tuple[Digits | Levels, NDArray[np.int64]]:
    """The sums of one group, for each row of its elements, and their counts."""
    counts = np.full(elements.shape[0], elements.shape[1])
    if missing is not None:
        counts -= missing.sum(axis=1)
        elements = np.where(missing, elements.dtype.type(-0.0), elements)
    return PartialResults.of(elements, (1,), op).sums[0], counts


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
        if first.dtype == CARRIED:
            records = flox_records.merged(first.view(RECORD), axis, keepdims=keepdims)
            if records is not None:
                return records.view(CARRIED)
        merged: Parts = np.sum(_integers(first), axis=axis, keepdims=keepdims)
        return merged
    if second.dtype == CARRIED:
        records = flox_records.merged_groups(first, second.view(RECORD), size)
        if records is not None:
            return records.view(CARRIED)
    made = np.zeros((*second.shape[:-1], size), object)
    where: Any = (..., first)
    np.add.at(made, where, _integers(second))
    return made


def _integers(parts: Parts) -> Parts:
    """The same parts as Python integers."""
    all_integers = parts.dtype == object and all(isinstance(part, int) for part in parts.flat)
    return parts if all_integers else flox_values.as_integers(parts)


def _rounded(*parts: Parts, op: str, ddof: int = 0) -> NDArray[Any]:
    """The values, each rounded once to the dtype that the op has for these elements."""
    if parts[0].dtype == CARRIED and (values := _of_records(parts[0].view(RECORD), op)) is not None:
        return values
    row, flat = op_named(op), [_integers(each).reshape(-1).tolist() for each in parts]
    none = row.empty_or_nan
    some = next((part for part in flat[0] if part), None)
    if some is None:
        return np.full(parts[0].shape, none)
    elements = dtype_of_elements(some)
    if elements is TIMES:
        return np.array(values_of_times(flat[0], row), np.int64).reshape(parts[0].shape)
    result = row.result_dtype(elements)
    if result != INTEGER and row.finish in {Finish.ITSELF, Finish.MEAN} and len(flat) == 1:
        at_once = rounded(flat[0], row.terms, DTYPES[result], none, mean=row.finish is Finish.MEAN)
        if at_once is not None:
            return _floats(at_once, result).reshape(parts[0].shape)
    finished: list[Any] = []
    for each in zip(*flat, strict=True):
        if not each[0] or (row.ddof and count_of(each[0]) <= ddof):
            finished.append(none)
        else:
            states = [state(part, terms) for part, terms in zip(each, terms_of(row), strict=True)]
            finished.append(value_of(row, states, result, ddof))
    if result != INTEGER:
        return _floats(np.array(finished, np.float64), result).reshape(parts[0].shape)
    bounds = np.iinfo(np.uint64 if elements.numpy.kind == "u" else np.int64)
    beyond = [value for value in finished if not bounds.min <= value <= bounds.max]
    if beyond:
        raise InvalidInput(f"the sum {beyond[0]} does not fit {bounds.dtype}")
    return np.array(finished, bounds.dtype).reshape(parts[0].shape)


def _of_records(records: Parts, op: str) -> NDArray[Any] | None:
    """The values of records; None where these have to be rounded otherwise."""
    row, elements = op_named(op), flox_values.dtype_of_records(records)
    if elements is None:
        return np.full(records.shape, row.empty_or_nan)
    if elements is TIMES:
        return None
    result = row.result_dtype(elements)
    if result == INTEGER:
        integers = np.dtype(np.uint64 if elements.numpy.kind == "u" else np.int64)
        values = flox_values.whole(records, integers)
    else:
        values = flox_values.rounded(records, DTYPES[result], row.empty_or_nan, mean=row.finish is Finish.MEAN)
    return None if values is None else values.reshape(records.shape)


def _floats(values: NDArray[np.float64], result: str) -> NDArray[Any]:
    """Values that are rounded to the dtype `result`, in that dtype."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return values.astype(DTYPES[result].numpy)


def _values_of(
    numbers: NDArray[Any],
    array: NDArray[Any],
    op: str,
    skipna: bool,
    **asked: Any,
) -> NDArray[Any]:
    """The values of an array in memory. flox gives the elements without a label the last number, and removes what it
    gets for them, but does not say so. So a sum of the last group that does not fit is refused when it is converted."""
    try:
        return _checked_values(numbers, array, op, skipna, **asked)
    except InvalidInput as error:
        if are_times(array.dtype):  # NumPy makes no time of an object
            raise
        last, refused = asked["size"] - 1, _Refused(str(error))
        values = _checked_values(np.where(numbers == last, -1, numbers), array, op, skipna, **asked).astype(object)
    values[..., last] = refused
    return values


@dataclass(frozen=True, slots=True)
class _Refused:
    """A sum that does not fit: to make a number of it raises InvalidInput."""

    why: str

    def __int__(self) -> int:
        raise InvalidInput(self.why)

    def __float__(self) -> float:
        raise InvalidInput(self.why)


def _checked_values(
    numbers: NDArray[Any], array: NDArray[Any], op: str, skipna: bool, *, ddof: int = 0, **asked: Any
) -> NDArray[Any]:
    """The values of an array in memory. Raises InvalidInput where a sum does not fit."""
    if are_times(array.dtype):
        parts = (_parts_of(numbers, array, sums, skipna, of=op, **asked) for sums in _sums(op))
        return _rounded(*parts, op=op, ddof=ddof)
    rows = _rows_of(array)
    skips = skipna and dtype_of(array.dtype).is_float and bool(np.isnan(array).any())
    if type(array) is np.ndarray and rows.shape[0] > _FEW and not skips:
        return _of_whole_groups(numbers, rows, op, ddof, asked["size"]).reshape(*array.shape[:-1], asked["size"])
    parts = (_parts_of(numbers, array, sums, skipna, **asked) for sums in _sums(op))
    return _rounded(*parts, op=op, ddof=ddof)


def _of_whole_groups(numbers: NDArray[Any], rows: NDArray[Any], op: str, ddof: int, size: int) -> NDArray[Any]:
    """The values of rows and groups that have all of their elements here, which need no partial results."""
    row = op_named(op)
    result = row.result_dtype(dtype_of(rows.dtype))
    integers = np.dtype(np.uint64 if rows.dtype.kind == "u" else np.int64)
    dtype = integers if result == INTEGER else DTYPES[result].numpy
    made = np.full((rows.shape[0], size), row.empty_or_nan, dtype)
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
    row, sums = op_named(op), _sums(op)
    in_records = len(sums) == 1 and row.terms is Terms.VALUES
    kind, nothing = (CARRIED, NOTHING) if in_records else (np.dtype(object), 0)
    floats = row.result_dtype(DTYPES["int64"]) != INTEGER
    return TimesAsTheyAre(
        ("nan" if skipna else "") + op,
        numpy=partial(_values_of, op=op, skipna=skipna),
        chunk=tuple(partial(_parts_of, op=each, skipna=skipna, in_records=in_records, of=op) for each in sums),
        combine=(_merged,) * len(sums),
        finalize=partial(_rounded, op=op),
        fill_value=(nothing,) * len(sums),
        final_fill_value=NA if np.isnan(row.empty_or_nan) else row.empty_or_nan,
        dtypes=(kind,) * len(sums),
        final_dtype=np.floating if floats else None,
    )


sum, nansum = (aggregation("sum", skipna=skipna) for skipna in (False, True))
mean, nanmean = (aggregation("mean", skipna=skipna) for skipna in (False, True))
var, nanvar = (aggregation("var", skipna=skipna) for skipna in (False, True))
std, nanstd = (aggregation("std", skipna=skipna) for skipna in (False, True))
norm1, nannorm1 = (aggregation("norm1", skipna=skipna) for skipna in (False, True))
norm2, nannorm2 = (aggregation("norm2", skipna=skipna) for skipna in (False, True))
sum_squares, nansum_squares = (aggregation("sum_squares", skipna=skipna) for skipna in (False, True))

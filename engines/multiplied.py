"""Exact sums of products of two columns whose rows another engine has put into groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.patterns import widened
from warpfold.kernels.cpu.accumulator import accumulator
from warpfold.kernels.cpu.states import encoded
from warpfold.kernels.dtypes import DTYPES, DType, Kind, dtype_of
from warpfold.kernels.errors import InvalidInput, OutOfMemory
from warpfold.kernels.exact import ORIGIN, ExactState, Flags, value_of
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.ops import INTEGER, Terms, op_named
from warpfold.kernels.ops.operands import result_dtype
from warpfold.kernels.parts.keyed import Cells, GroupColumn, whole_numbers

_DOT = op_named("dot")


def multiply_groups(left: Cells, right: Cells, numbers: NDArray[Any], groups: int) -> GroupColumn:
    """Σ left · right of each of `groups` groups, rounded once, and the states of these sums.

    Row i belongs to group numbers[i], from 0 on; a row whose number is negative, or of which either element is missing,
    belongs to no group. The sum of no rows is 0. Raises InvalidInput where one column holds floats and the other does
    not.
    """
    x, y = dtype_of(left.elements.dtype), dtype_of(right.elements.dtype)
    if x.is_float != y.is_float:
        raise InvalidInput(f"a dot product needs two columns of floats or two of integers, not {x.name} and {y.name}")
    kept = numbers >= 0
    for cells in (left, right):
        if cells.missing is not None:
            kept = kept & ~cells.missing
    rows = slice(None) if kept.all() else kept
    elements, result = (left.elements[rows], right.elements[rows]), result_dtype(_DOT, x, y)
    if groups == 1:
        adding = accumulator([x, y], Terms.PRODUCTS)
        adding.add(*elements)
        return _column(result, [adding.state()])
    with _Sums(groups) as sums:
        sums.add(_words(elements[0], x), _words(elements[1], y), numbers[rows], x, y)
        return sums.column(result)


def unsigned_together(columns: Sequence[NDArray[np.int64]], wide: Sequence[bool]) -> bool:
    """Whether the words of both columns are to be multiplied as uint64, where `wide` says which columns hold uint64.
    Raises InvalidInput where one holds more than int64 does, and the other one negative integers."""
    high = [bool((words < 0).any()) for words in columns]  # from 2**63 on, or negative
    unsigned = any(of and above for of, above in zip(wide, high, strict=True))
    if unsigned and any(not of and below for of, below in zip(wide, high, strict=True)):
        raise InvalidInput(
            "one column holds integers of 2**63 and more, and the other one negative integers: no dot product takes "
            "both"
        )
    return unsigned


def exact_floats(integers: NDArray[Any]) -> NDArray[np.float64]:
    """Integers as float64, to be multiplied by floats. Raises InvalidInput where one is no float64."""
    floats = integers.astype(np.float64)
    most = 2.0 ** (8 * integers.itemsize - (integers.dtype.kind == "i"))  # which may be rounded up to
    same = floats < most
    with np.errstate(invalid="ignore"):
        same &= floats.astype(integers.dtype) == integers
    if not same.all():
        raise InvalidInput(
            f"{integers[~same][0]} is no float64, and is multiplied by floats: cast its column to DOUBLE to round it"
        )
    return floats


def _column(result: str, states: list[ExactState]) -> GroupColumn:
    """The values of a few states."""
    values = [value_of(_DOT, [state], result) for state in states]
    parts = [state.to_bytes() for state in states]
    offsets = np.cumsum([0, *map(len, parts)]).astype(np.int64)
    return GroupColumn(
        "dot",
        "dot",
        result,
        whole_numbers([int(value) for value in values]) if result == INTEGER else np.array(values, np.float64),
        np.zeros(len(states), np.bool_),
        np.array([state.count for state in states]),
        (StateColumn(np.frombuffer(b"".join(parts), np.uint8), offsets),),
    )


def _words(elements: NDArray[Any], dtype: DType) -> NDArray[np.int64]:
    """The elements as float64, or as integers, in words of 64 bits."""
    if dtype.is_float:
        with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
            elements = widened(elements, dtype).astype(np.float64, copy=False)
    elif elements.dtype != np.uint64:
        elements = elements.astype(np.int64)
    return np.ascontiguousarray(elements).view(np.int64)


@dataclass
class _Sums:
    """A sum for each group in memory of its own, as `kernels.cpu.windows.scattered` lays them out."""

    groups: int

    def __enter__(self) -> "_Sums":
        from warpfold.kernels.cpu.windows import scattered, scattered_rows

        self._scattered, self._rows = scattered, scattered_rows
        words = scattered.HEAD_WORDS + scattered.PRODUCTS[0]
        self._memory = np.zeros((self.groups, words), np.int64)
        self._places = self._memory.ctypes.data + np.arange(self.groups, dtype=np.int64) * (8 * words)
        return self

    def __exit__(self, *error: object) -> None:
        self._scattered.give_back(self._places.ctypes.data, self.groups, 0)

    def add(self, x: NDArray[np.int64], y: NDArray[np.int64], numbers: NDArray[Any], left: DType, right: DType) -> None:
        """Add the products of rows to the groups of those numbers."""
        states = self._places[numbers]
        at = x.ctypes.data, 0, y.ctypes.data, 0, states.ctypes.data, x.size, 0
        if left.is_float:
            self._rows.add_float_products(*at)
            return
        wide = [dtype.kind is Kind.UINT and dtype.itemsize == 8 for dtype in (left, right)]
        self._rows.add_integer_products(*at, unsigned_together((x, y), wide))

    def column(self, result: str) -> GroupColumn:
        """The values of all groups, and their states."""
        shape = self._scattered.PRODUCTS
        limbs = np.empty((self.groups, shape[1]), np.int64)
        counts, flags = np.empty(self.groups, np.int64), np.empty(self.groups, np.int64)
        self._scattered.sums(self._places.ctypes.data, self.groups, 0, shape, limbs, counts, flags)
        if (flags & self._scattered.NO_MEMORY).any():
            raise OutOfMemory("no memory for the long sums of a group")
        origin, none = ORIGIN[Terms.PRODUCTS], np.zeros(self.groups, np.bool_)
        states = encoded(Terms.PRODUCTS, origin, limbs, flags, counts)
        if result == INTEGER:
            wholes = zip(limbs.tolist(), counts.tolist(), flags.tolist(), strict=True)
            made = (
                ExactState.from_limbs(Terms.PRODUCTS, row, origin, count, Flags(flag)) for row, count, flag in wholes
            )
            values: NDArray[Any] = whole_numbers([int(value_of(_DOT, [state], INTEGER)) for state in made])
        else:
            row, values = DTYPES[result], np.zeros(self.groups)
            form = row.precision, row.min_exponent, row.max_exponent
            self._scattered.round_states(
                self._places.ctypes.data, self.groups, shape, origin, False, form, values, none.copy()
            )
        return GroupColumn("dot", "dot", result, values, none, counts, (states,))

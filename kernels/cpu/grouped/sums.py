"""Sums and means, norms, variances and dot products to many values: exact states of all of them, each rounded once.

A row that holds all elements of its value is rounded as soon as it is added, and needs no state.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import Arrays, Folded
from warpfold.kernels.aggregates.integer_sum import IntegerSum
from warpfold.kernels.aggregates.patterns import readable, widened
from warpfold.kernels.cpu.accumulator import LAYOUTS
from warpfold.kernels.cpu.finishing import ValueFinish
from warpfold.kernels.cpu.grouped.fold import GroupedPart
from warpfold.kernels.cpu.states import ManySums, parts_of
from warpfold.kernels.dtypes import DTYPES, DType, common_float
from warpfold.kernels.exact import ORIGIN, Flags
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.ops import Finish, Op, Terms
from warpfold.kernels.ops.operands import result_dtype
from warpfold.kernels.parts.grouping import Columns, Index, Rows

_MOST_CALLS = 1 << 16
"""Blocks of columns that are added before their limbs are resolved: far fewer than the limbs allow."""

_DIGIT = (1 << 32) - 1


class FloatSums:
    """Limbs for each value, and for its squares where the op needs both. `dtypes` are those of one source, or of two
    whose products are added; `rounded` (float64, shape (values,)) is shared by the folds of all threads."""

    def __init__(
        self,
        op: Op,
        dtypes: Sequence[DType],
        ddof: int,
        rounded: NDArray[np.float64],
        *,
        windows: Sequence[tuple[int, int] | None] | None = None,
        keep: bool = False,
    ) -> None:
        """With `windows`, one for each kind of terms, no row is rounded as soon as it is added, because other parts of
        its value are elsewhere. A window is the exponent of the first limb and the number of limbs; None stands for all
        limbs. With `keep` no row is rounded early either, because its state is wanted."""
        self._op = op
        self._ddof = ddof
        self._result = result_dtype(op, *dtypes)
        self._rounded = rounded
        both = op.terms is Terms.MOMENTS
        kinds = (Terms.VALUES, Terms.PRODUCTS) if both else (op.terms,)
        self._limbs = tuple(
            LimbSums(terms, dtypes, rounded.size, magnitudes=op.magnitudes, window=window)
            for terms, window in zip(kinds, windows or [None] * len(kinds), strict=True)
        )
        self._together = windows is None and not both and op.sources == 1 and op.finish in (Finish.ITSELF, Finish.MEAN)
        self._at_once = self._together and not keep
        self._finish = ValueFinish(op, self._result, ddof)

    def add(self, start: int, part: GroupedPart, *, replaced: bool = False) -> None:
        """Take in a part; with `replaced` some of its elements do not count."""
        for group in part.groups:
            if isinstance(group, Columns) and group.outputs.size == 1 and self._op.sources == 1:
                for limbs in self._limbs:
                    if not limbs.add_columns(group, part.arrays[0]):
                        limbs.add_rows(group.as_rows(), (group.turned(part.arrays[0]),))
                continue
            rows, arrays = next(GroupedPart(part.arrays, (group,)).rows())
            if rows.whole and self._at_once and not replaced:
                mean = self._op.finish is Finish.MEAN
                self._rounded[_places(rows.outputs)] = self._limbs[0].rounded_rows(
                    rows, arrays[0], self._finish.form, mean=mean
                )
            else:
                for limbs in self._limbs:
                    limbs.add_rows(rows, arrays)

    def merge(self, other: "FloatSums") -> None:
        for mine, theirs in zip(self._limbs, other._limbs, strict=True):
            mine.merge(theirs)

    def sums(self) -> list[ManySums]:
        """The sums of all values, for each kind of terms; valid until more is added."""
        return [limbs.resolved() for limbs in self._limbs]

    def states(self, counts: Index) -> list[StateColumn]:
        """The states of all values, for each kind of terms; `counts` are the numbers of elements."""
        return [sums.states(counts) for sums in self.sums()]

    def values(self, counts: Index) -> NDArray[np.float64]:
        used = self._limbs[0].used if self._together else np.ones(counts.size, np.bool_)
        if used.any():  # all others were rounded when they were added
            self._rounded[used] = self._finish.values(self.sums(), np.where(used, counts, 0))[used]
        return self._rounded


def _places(outputs: Index) -> Index | slice:
    """The same places, as a slice where they are neighbours: a slice of many values costs less than an array of
    indices."""
    first, last = int(outputs[0]), int(outputs[-1]) + 1
    return slice(first, last) if last - first == outputs.size and (np.diff(outputs) == 1).all() else outputs


class LimbSums:
    """An exact sum for each value, and the compiled additions that serve its dtypes."""

    def __init__(
        self,
        terms: Terms,
        dtypes: Sequence[DType],
        outputs: int,
        *,
        magnitudes: bool,
        window: tuple[int, int] | None = None,
    ) -> None:
        from warpfold.kernels.cpu.windows import columns, levels, nearest, rows

        self.terms = terms
        self.most_count = nearest.MOST_DIVISOR
        self._rows, self._columns, self._nearest = rows, columns, nearest
        self._dtypes = dtypes
        self._unsigned = magnitudes or (terms is Terms.PRODUCTS and len(dtypes) == 1)
        self._squares = terms is Terms.PRODUCTS
        self._double = common_float(dtypes[0], dtypes[-1]) is DTYPES["float64"]
        origin, limbs = window or (ORIGIN[terms], levels.LIMBS)
        adjusted = origin
        self._shape = outputs, limbs
        self._limbs = np.zeros((0, limbs), np.int64)  # no limbs until an element is added
        self._flags = np.zeros(outputs, np.int64)
        self.used = np.zeros(outputs, np.bool_)
        self.touched = False
        self._calls = 0
        if self._double:
            self._bits = np.dtype(np.int64)
            tiles = [np.empty(levels.TILE64, dtype) for dtype in (np.float64, np.float64, np.int64)]
            fields = tuple(np.zeros(1 << 12, dtype) for dtype in (np.uint64, np.int16))
            self._space: tuple[Any, ...] = (*tiles, fields)
            self._read: Any = 0x7FFFFFFFFFFFFFFF if magnitudes else -1
        else:
            layouts = tuple(LAYOUTS[dtype].read(magnitudes=magnitudes) for dtype in dtypes)
            scales = [LAYOUTS[dtype].scale for dtype in dtypes]
            adjusted -= sum(scales) if len(dtypes) == 2 else scales[0] * (2 if self._squares else 1)
            self._bits = np.dtype(f"int{8 * dtypes[0].itemsize}")
            self._space = (np.empty(levels.TILE32), np.empty(levels.TILE32, self._bits))
            self._read = layouts if len(dtypes) == 2 else layouts[0]
        self._origins = origin, adjusted

    def _words(self, array: NDArray[Any], which: int = 0) -> NDArray[Any]:
        if self._double and len(self._dtypes) == 2:
            with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
                array = widened(array, self._dtypes[which]).astype(np.float64, copy=False)
        return readable(array, np.dtype(f"int{8 * array.itemsize}"))

    def rounded_rows(
        self, rows: Rows, flat: NDArray[Any], form: tuple[int, int, int], *, mean: bool
    ) -> NDArray[np.float64]:
        """The sums or means of whole rows, rounded; 0 of no elements."""
        values = np.zeros(rows.outputs.size)
        space = (np.zeros(self._shape[1], np.int64), *self._space)
        call = self._rows.sum_rows64 if self._double else self._rows.sum_rows32
        call(
            self._words(flat), rows.bounds, self._read, self._squares, self._unsigned, mean, self._origins, form,
            space, values,
        )  # fmt: skip
        return values

    def add_rows(self, rows: Rows, arrays: Arrays) -> None:
        """Add the elements of rows, or the products of pairs."""
        self._use(rows.outputs)
        words = [self._words(array, which) for which, array in enumerate(arrays)]
        common = (self._origins[1], self._limbs, self._flags)
        if len(words) == 2 and self._double:
            rest, other, spare, _ = self._space
            self._rows.add_row_products64(
                *words, rows.bounds, rows.outputs, *common, rest, other, spare, np.empty_like(spare)
            )
        elif len(words) == 2:
            spares = [np.empty(self._space[0].size, word.dtype) for word in words]
            self._rows.add_row_products32(
                *words, rows.bounds, rows.outputs, self._read, *common, self._space[0], *spares
            )
        else:
            call = self._rows.add_rows64 if self._double else self._rows.add_rows32
            call(words[0], rows.bounds, rows.outputs, self._read, self._squares, *common, *self._space)

    def add_columns(self, group: Columns, flat: NDArray[Any]) -> bool:
        """Add the columns of one block without transposing them, and return whether that was possible. It is possible
        for values and magnitudes."""
        if self._squares:
            return False
        first = int(group.outputs[0])
        self._use(slice(first, first + group.width))
        words = self._words(flat[group.start : group.start + group.size])
        width = self._columns.BLOCK_WIDTH
        space = (
            *(np.empty(width, self._bits) for _ in range(2)),
            np.empty(width, np.int64),
            *(np.empty(width) for _ in range(2)),
            np.empty(width, np.int64),
            *(np.empty(width, np.uint64) for _ in range(2)),
        )
        column = np.empty(self._columns.BLOCK_ROWS, self._bits)
        call = self._columns.add_columns64 if self._double else self._columns.add_columns32
        call(
            words, group.rows, group.width, first, self._read, self._origins[1], self._limbs, self._flags, space,
            column, *self._space,
        )  # fmt: skip
        self._calls += -(-group.rows // self._columns.BLOCK_ROWS)
        if self._calls > _MOST_CALLS:
            self._resolve()
        return True

    def _use(self, outputs: Index | NDArray[np.bool_] | slice) -> None:
        self.used[outputs] = True
        if not self.touched:
            self.touched = True
            self._limbs = np.zeros(self._shape, np.int64)

    def _resolve(self) -> None:
        self._nearest.resolve_sums(self._limbs, self.used)
        self._calls = 0

    def merge(self, other: "LimbSums") -> None:
        if not other.touched:
            return
        self._use(other.used)
        self._resolve()
        other._resolve()
        for some in parts_of(other.used.size):  # so that the limbs of all values are not copied
            both = other.used[some]
            self._limbs[some][both] += other._limbs[some][both]
        self._flags |= other._flags
        self._resolve()

    def _flags_of_sums(self) -> Index:
        """The flags of the sums. Squares and magnitudes are neither −0 nor −∞."""
        if not self._unsigned:
            return self._flags
        infinite = (self._flags & int(Flags.POS_INF | Flags.NEG_INF)) != 0
        flags: Index = (
            (self._flags & int(Flags.NAN)) | np.where(infinite, int(Flags.POS_INF), 0) | int(Flags.NOT_NEGATIVE_ZERO)
        )
        return flags

    def resolved(self) -> ManySums:
        """The sums of all values."""
        self._use(slice(0, 0))
        self._resolve()
        return ManySums(self.terms, self._origins[0], self._limbs, self._flags_of_sums())


class IntegerSums:
    """Sums for each value, and of its squares where the op needs both. `dtypes` are those of one source, or of two
    whose products are added."""

    def __init__(self, op: Op, dtypes: Sequence[DType], ddof: int, outputs: int) -> None:
        self._op = op
        self._dtypes = dtypes
        self._ddof = ddof
        kinds = (Terms.VALUES, Terms.PRODUCTS) if op.terms is Terms.MOMENTS else (op.terms,)
        self._sums = tuple(IntegerSum(dtypes, terms, magnitudes=op.magnitudes) for terms in kinds)
        self._folded = tuple(Folded(each, outputs) for each in self._sums)

    def add(self, start: int, part: GroupedPart) -> None:
        for rows, arrays in part.rows():
            for folded in self._folded:
                folded.update(arrays, rows)

    def merge(self, other: "IntegerSums") -> None:
        for mine, theirs in zip(self._folded, other._folded, strict=True):
            mine.merge(theirs.state)

    def sums(self) -> list[ManySums]:
        """The sums as `FloatSums.sums` gives them. The only flag of integers is that they are not −0."""
        return [each.sums(folded.state) for each, folded in zip(self._sums, self._folded, strict=True)]

    def states(self, counts: Index) -> list[StateColumn]:
        """The states as `FloatSums.states` gives them."""
        return [sums.states(counts) for sums in self.sums()]

    def values(self, counts: Index) -> NDArray[Any]:
        return ValueFinish(self._op, result_dtype(self._op, *self._dtypes), self._ddof).values(self.sums(), counts)

"""Sums and means, norms, variances and dot products to many values: exact states of all of them, each rounded once.

A row that holds all elements of its value is rounded as soon as it is added, and needs no state.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import Arrays, Folded, by_rows
from warpfold.kernels.aggregates.by_name import exact_sum
from warpfold.kernels.aggregates.float_words import FloatWords
from warpfold.kernels.cpu.finishing import ValueFinish
from warpfold.kernels.cpu.grouped.fold import GroupedPart
from warpfold.kernels.cpu.grouped.together import rounded
from warpfold.kernels.cpu.grouped.two_levels import TwoLevels
from warpfold.kernels.cpu.states import ManySums
from warpfold.kernels.dtypes import DTYPES, DType, common_float
from warpfold.kernels.exact import ORIGIN, Flags
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.ops import Finish, Op, Terms, terms_of
from warpfold.kernels.ops.operands import result_dtype
from warpfold.kernels.parts.grouping import Columns, Index, Rows

_MOST_CALLS = 1 << 16
"""Blocks of columns that are added before their limbs are resolved: far fewer than the limbs allow."""

MOST_DIVISOR = (1 << 32) - 1
"""The most elements by whose number a compiled function divides."""


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
        kinds = terms_of(op)
        self._sums = tuple(
            ExactSums(terms, dtypes, rounded.size, magnitudes=op.magnitudes, window=window)
            for terms, window in zip(kinds, windows or [None] * len(kinds), strict=True)
        )
        self._plain = windows is None and not both and op.sources == 1 and op.finish in (Finish.ITSELF, Finish.MEAN)
        self._at_once = self._plain and not keep
        self._finish = ValueFinish(op, self._result, ddof)

    def add(self, start: int, part: GroupedPart, *, replaced: bool = False) -> None:
        """Take in a part; with `replaced` some of its elements do not count."""
        for group in part.groups:
            whole = self._sums
            if isinstance(group, Columns) and group.outputs.size == 1 and self._op.sources == 1:
                whole = tuple(sums for sums in whole if not sums.add_columns(group, part.arrays[0]))
            if not whole:
                continue
            rows, arrays = by_rows(part.arrays, group)
            if rows.whole and self._at_once and not replaced:
                mean = self._op.finish is Finish.MEAN
                self._rounded[_places(rows.outputs)] = whole[0].rounded_rows(
                    rows, arrays[0], self._finish.form, mean=mean
                )
            else:
                for sums in whole:
                    sums.add_rows(rows, arrays)

    def merge(self, other: "FloatSums") -> None:
        for mine, theirs in zip(self._sums, other._sums, strict=True):
            mine.merge(theirs)

    def sums(self) -> list[ManySums]:
        """The sums of all values, for each kind of terms; valid until more is added."""
        return [sums.resolved() for sums in self._sums]

    def states(self, counts: Index) -> list[StateColumn]:
        """The states of all values, for each kind of terms; `counts` are the numbers of elements."""
        return [sums.states(counts) for sums in self.sums()]

    def values(self, counts: Index) -> NDArray[np.float64]:
        used = self._sums[0].used if self._plain else np.ones(counts.size, np.bool_)
        if used.any():  # all others were rounded when they were added
            values = self._rounded_levels(counts)
            if values is None:
                values = self._finish.values(self.sums(), np.where(used, counts, 0))
            if used.all():
                return values
            self._rounded[used] = values[used]
        return self._rounded

    def _rounded_levels(self, counts: Index) -> NDArray[np.float64] | None:
        """The values of sums that are all in two levels, where all have as many elements."""
        levels, divisor = self._sums[0].in_levels, int(counts[0])
        if levels is None or not self._plain or not 0 < divisor <= MOST_DIVISOR or (counts != divisor).any():
            return None
        dtype = DTYPES[self._result]
        if not dtype.native:  # NumPy would round twice
            return None
        divisor = divisor if self._op.finish is Finish.MEAN else 1
        values = rounded([levels], dtype, divisor)
        return None if values is None else values.astype(np.float64, copy=False)


def _places(outputs: Index) -> Index | slice:
    """The same places, as a slice where they are neighbours: a slice of many values costs less than an array of
    indices."""
    first, last = int(outputs[0]), int(outputs[-1]) + 1
    return slice(first, last) if last - first == outputs.size and (np.diff(outputs) == 1).all() else outputs


class ExactSums:
    """An exact sum for each value: in two levels of one window where that holds the elements of a block of columns, and
    in limbs where not, and of rows. Both together are the sum."""

    def __init__(
        self,
        terms: Terms,
        dtypes: Sequence[DType],
        outputs: int,
        *,
        magnitudes: bool,
        window: tuple[int, int] | None = None,
    ) -> None:
        from warpfold.kernels.cpu.windows import adding, levels, nearest, rows, two_levels

        self.terms = terms
        self._rows, self._nearest, self._two_levels = rows, nearest, two_levels
        self._magnitudes = magnitudes
        self._unsigned = magnitudes or (terms is Terms.PRODUCTS and len(dtypes) == 1)
        self._squares = terms is Terms.PRODUCTS
        self._double = common_float(dtypes[0], dtypes[-1]) is DTYPES["float64"]
        self._words = tuple(FloatWords(dtype, double=self._double) for dtype in dtypes)
        self._in_window = window is not None
        self._origin, limbs = window or (ORIGIN[terms], levels.LIMBS)
        self._shape = outputs, limbs
        self._limbs = np.zeros((0, limbs), np.int64)  # no limbs until an element is added to them
        self._levels: TwoLevels | None = None
        self._flags = np.zeros(outputs, np.int64)
        self.used = np.zeros(outputs, np.bool_)
        self._calls = 0
        self._width = width = 8 if self._double else 4
        self._keep = adding.mask_of(width, magnitudes=magnitudes)
        self._space = (
            adding.working_space(width)
            if len(dtypes) == 1
            else adding.space_of_products(width, sum(dtype.precision - 1 for dtype in dtypes))
        )

    @property
    def in_levels(self) -> TwoLevels | None:
        """All sums in two levels, where none has limbs."""
        if self._levels is None or self._limbs.size:
            return None
        negative = self._flags_of_sums() == 0
        return replace(self._levels, negative=negative if negative.any() else None)

    def rounded_rows(
        self, rows: Rows, flat: NDArray[Any], form: tuple[int, int, int], *, mean: bool
    ) -> NDArray[np.float64]:
        """The sums or means of whole rows, rounded; 0 of no elements."""
        values = np.zeros(rows.outputs.size)
        self._rows.SUM_ROWS[self._width](
            self._words[0].of(flat), rows.bounds, self._keep, self._squares, self._unsigned, mean, self._origin, form,
            (np.zeros(self._shape[1], np.int64), *self._space), values,
        )  # fmt: skip
        return values

    def add_rows(self, rows: Rows, arrays: Arrays) -> None:
        """Add the elements of rows, or the products of pairs."""
        self.used[rows.outputs] = True
        words = [made.of(array) for made, array in zip(self._words, arrays, strict=True)]
        common = (self._origin, self._held_limbs(), self._flags, *self._space)
        if len(words) == 2:
            self._rows.ADD_ROW_PRODUCTS[self._width](*words, rows.bounds, rows.outputs, *common)
        else:
            add = self._rows.ADD_ROWS[self._width]
            add(words[0], rows.bounds, rows.outputs, self._keep, self._squares, *common)

    def add_columns(self, group: Columns, flat: NDArray[Any]) -> bool:
        """Add the columns of one block without transposing them, and return whether that was possible. It is possible
        for values and magnitudes that a window holds."""
        if self._squares or self._in_window or group.width == 1:  # a single column lies as a row
            return False
        words = self._words[0].of(flat[group.start : group.start + group.size])
        block = words.view(np.float64 if self._double else np.float32).reshape(group.rows, group.width)
        near = None if self._levels is None else self._levels.unit
        levels = TwoLevels.of(block, (0,), magnitudes=self._magnitudes, near=near)
        if levels is None:
            return False
        first = int(group.outputs[0])
        some = slice(first, first + group.width)
        self.used[some] = True
        self._flags[some] |= levels.flags()
        self._add_levels(levels, some)
        return True

    def _add_levels(self, levels: TwoLevels, some: slice) -> None:
        """Add the sums of some neighbouring values."""
        if self._levels is None:
            upper, lower = np.zeros((2, self._shape[0]), np.int64)
            self._levels = TwoLevels(levels.unit, upper, lower, 0, None)
        if not self._levels.added(levels, some):
            self._deposit(levels, some)

    def _deposit(self, levels: TwoLevels, some: slice) -> None:
        limbs = self._held_limbs()
        self._two_levels.levels_to_limbs(levels.upper, levels.lower, levels.unit - self._origin, limbs[some])
        self._calls += 1
        if self._calls > _MOST_CALLS:
            self._resolve()

    def _held_limbs(self) -> NDArray[np.int64]:
        if not self._limbs.size:
            self._limbs = np.zeros(self._shape, np.int64)
        return self._limbs

    def _resolve(self) -> None:
        if self._limbs.size:
            self._nearest.resolve_sums(self._limbs, self.used)
        self._calls = 0

    def merge(self, other: "ExactSums") -> None:
        if not other.used.any():  # its rows were rounded when they were added
            return
        self.used |= other.used
        self._flags |= other._flags
        if other._levels is not None:
            self._add_levels(other._levels, slice(0, self._shape[0]))
        if other._limbs.size:
            both = other.used
            self._held_limbs()
            self._resolve()
            other._resolve()
            self._limbs[both] += other._limbs[both]
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
        if (levels := self.in_levels) is not None:
            return replace(levels.digits().sums(slice(None)), flags=self._flags_of_sums())
        if self._levels is not None:
            self._deposit(self._levels, slice(0, self._shape[0]))
            self._levels = None
        self._held_limbs()
        self._resolve()
        return ManySums(self.terms, self._origin, self._limbs, self._flags_of_sums())


class AggregatedSums:
    """Sums for each value, and of its squares where the op needs both. `dtypes` are those of one source, or of two
    whose products are added: integers or truth values, or of sums that are not `compiled` any."""

    def __init__(self, op: Op, dtypes: Sequence[DType], ddof: int, outputs: int, *, compiled: bool = True) -> None:
        self._finish = ValueFinish(op, result_dtype(op, *dtypes), ddof)
        self._sums = [exact_sum(dtypes, terms, magnitudes=op.magnitudes, compiled=compiled) for terms in terms_of(op)]
        self._folded = [Folded(each, outputs) for each in self._sums]

    def add(self, start: int, part: GroupedPart) -> None:
        for rows, arrays in part.rows():
            for folded in self._folded:
                folded.update(arrays, rows)

    def merge(self, other: "AggregatedSums") -> None:
        for mine, theirs in zip(self._folded, other._folded, strict=True):
            mine.merge(theirs.state)

    def sums(self) -> list[Any]:
        """The sums as `FloatSums.sums` gives them; `PortableSums` of those that are not compiled."""
        return [each.sums(folded.state) for each, folded in zip(self._sums, self._folded, strict=True)]

    def states(self, counts: Index) -> list[StateColumn]:
        """The states as `FloatSums.states` gives them."""
        return [sums.states(counts) for sums in self.sums()]

    def values(self, counts: Index) -> NDArray[Any]:
        return self._finish.values(self.sums(), counts)

"""Exact sums of many groups with NumPy alone, as `portable` has them of one: what adds up before anything is compiled.

Elements of a group and of four neighbouring exponents are added up in float64, which is exact below 2**53; these sums
are put together in Python's integers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DType, common_float
from warpfold.kernels.exact.encoding import ORIGIN, Flags
from warpfold.kernels.exact.portable import DIGIT, SplitTerms, split_products, split_values
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.ops import Terms

_PART = 1 << 20
"""Elements at a time: digits below 2**27, moved up by up to 3 places, sum to below 2**50."""

_TOGETHER = 2
"""Neighbouring exponents that are added up together, as a power of two."""

Ids = NDArray[np.int64]


class GroupSums:
    """The exact sums of groups: of the values of elements, of their magnitudes, or of products. `units` are Python's
    integers in units of 2**ORIGIN[terms], shape (groups,), and `flags` those of `Flags`, shape (groups,)."""

    def __init__(self, groups: int, terms: Terms, *, magnitudes: bool = False) -> None:
        self._terms, self._magnitudes = terms, magnitudes
        self.units: NDArray[Any] = np.zeros(groups, object)
        self.flags: NDArray[np.int64] = np.zeros(groups, np.int64)

    def add(self, arrays: tuple[NDArray[Any], ...], dtypes: tuple[DType, ...], ids: Ids) -> None:
        """Add elements, or the products of those of two arrays, to the groups `ids`; of one array and PRODUCTS their
        squares. Arrays have the shape (n,) and no gaps, and are of floats, or not."""
        add = self._add_floats if dtypes[0].is_float else self._add_integers
        for at in range(0, ids.size, _PART):
            part = slice(at, at + _PART)
            add(tuple(array[part] for array in arrays), dtypes, ids[part])

    def hold(self, groups: int) -> None:
        """Make room for so many groups."""
        more = max(0, groups - self.flags.size)
        self.units = np.concatenate([self.units, np.zeros(more, object)])
        self.flags = np.concatenate([self.flags, np.zeros(more, np.int64)])

    def merge(self, other: "GroupSums", ids: Ids | slice = slice(None)) -> None:
        """Take in all that `other` added up, whose group i is group ids[i] here."""
        self.units[ids] += other.units
        self.flags[ids] |= other.flags

    def states(self, counts: Ids) -> list[ExactState]:
        """The states of all groups, of so many terms each."""
        each = zip(self.units.tolist(), counts.tolist(), self.flags.tolist(), strict=True)
        return [
            ExactState(self._terms, units, count, Flags(flags)) if count else ExactState.empty(self._terms)
            for units, count, flags in each
        ]

    def _add_floats(self, arrays: tuple[NDArray[Any], ...], dtypes: tuple[DType, ...], ids: Ids) -> None:
        if self._terms is Terms.VALUES:
            split, unit = split_values(arrays[0], dtypes[0], magnitudes=self._magnitudes), dtypes[0].min_exponent
        else:
            dtype = common_float(*dtypes) if len(dtypes) > 1 else dtypes[0]
            with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
                x, *others = (array.astype(dtype.numpy) for array in arrays)
            [y] = others or [x]
            split, unit = split_products(x, y, dtype), 2 * dtype.min_exponent
        self._note(split, ids)
        self._gather(split, unit - ORIGIN[self._terms], ids)

    def _note(self, split: SplitTerms, ids: Ids) -> None:
        nonzero = ~(split.zero & split.negative)
        marks = (
            (Flags.NAN, split.nan),
            (Flags.POS_INF, split.infinite & ~split.negative),
            (Flags.NEG_INF, split.infinite & split.negative),
            (Flags.NOT_NEGATIVE_ZERO, nonzero),
        )
        for flag, mask in marks:
            if mask.any():
                self.flags[np.bincount(ids[mask], minlength=self.flags.size) > 0] |= int(flag)

    def _gather(self, split: SplitTerms, shift: int, ids: Ids) -> None:
        coarse = split.exponent >> _TOGETHER
        least = int(coarse.min(initial=0))
        span = int(coarse.max(initial=0)) - least + 1
        places, inverse = np.unique(ids * span + (coarse - least), return_inverse=True)
        groups, exponents = np.divmod(places, span)
        moved = split.exponent & ((1 << _TOGETHER) - 1)
        signs = np.where(split.negative, -1.0, 1.0)
        for place, digit in enumerate(split.digits):
            sums = np.bincount(inverse.reshape(-1), weights=signs * (digit << moved)).astype(np.int64)
            where = np.flatnonzero(sums)
            up = ((exponents[where] + least) << _TOGETHER) + DIGIT * place + shift
            np.add.at(self.units, groups[where], sums[where].astype(object) << up.astype(object))

    def _add_integers(self, arrays: tuple[NDArray[Any], ...], dtypes: tuple[DType, ...], ids: Ids) -> None:
        x, y = (array.astype(np.int64 if array.dtype == np.bool_ else array.dtype) for array in (arrays[0], arrays[-1]))
        terms: NDArray[Any] = x.astype(object)
        if self._terms is Terms.PRODUCTS:
            terms = terms * y.astype(object)
        elif self._magnitudes:
            terms = _each(abs, terms)
        np.add.at(self.units, ids, terms << -ORIGIN[self._terms])
        self.flags[np.bincount(ids, minlength=self.flags.size) > 0] |= int(Flags.NOT_NEGATIVE_ZERO)


def _each(function: Callable[[Any], Any], array: NDArray[Any]) -> NDArray[Any]:
    return np.frompyfunc(function, 1, 1)(array)  # type: ignore[no-any-return]

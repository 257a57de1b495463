"""Exact states of many values from what a GPU leaves of them: totals of floats, or words of integers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.states import ManySums, encoded
from warpfold.kernels.cuda.exact import HEAD, SumKind, digits_of, flags_of_heads, nans_of_heads
from warpfold.kernels.exact import ORIGIN, Flags
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.ops import Op, Terms, terms_of
from warpfold.kernels.parts.grouping import Index

_CARRIES = 2
"""Digits above those of unresolved sums, for what is carried out of them."""


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums of many values: Σ digits[v, k] · 2**(32 (first + k)) units, not resolved (int64, shape (values, digits))."""

    terms: Terms
    first: int
    digits: NDArray[np.int64]

    def states(self, flags: Index, counts: Index) -> StateColumn:
        from warpfold.kernels.cpu.windows import nearest

        limbs = np.zeros((counts.size, self.digits.shape[1] + _CARRIES), np.int64)
        limbs[:, : self.digits.shape[1]] = self.digits
        nearest.resolve_sums(limbs, np.ones(counts.size, np.bool_))
        return encoded(self.terms, ORIGIN[self.terms] + 32 * self.first, limbs, flags, counts)


@dataclass(frozen=True, slots=True)
class KeptTotals:
    """Totals of `kind` on the host: of each value the limbs before the digits, `heads` (int64, shape (values, HEAD)),
    and its sums, without the digits that are 0 for all values."""

    kind: SumKind
    heads: NDArray[np.int64]
    sums: tuple[_Sums, ...]

    @classmethod
    def fetched(cls, kind: SumKind, limbs: Any) -> Self:
        """The totals whose limbs are a CuPy array of int64, of shape (values, limbs). This waits for the GPU."""
        sums = []
        for terms, place in digits_of(kind):
            digits = limbs[:, place]
            used = np.flatnonzero((digits != 0).any(axis=0).get())
            first, stop = (int(used[0]), int(used[-1]) + 1) if used.size else (0, 1)
            sums.append(_Sums(terms, first, digits[:, first:stop].get()))
        return cls(kind, limbs[:, :HEAD].get(), tuple(sums))

    def omitted(self) -> Index:
        """How many NaNs each value has, which may be left out."""
        return nans_of_heads(self.heads)

    def states(self, counts: Index, *, omit_nan: bool) -> tuple[StateColumn, ...]:
        """The states of all values, of which each has so many elements, as columns of each kind of terms."""
        return tuple(sums.states(flags, counts) for sums, flags in zip(self.sums, self._flags(omit_nan), strict=True))

    def _flags(self, omit_nan: bool) -> Iterator[Index]:
        flags = flags_of_heads(self.heads, signed=self.kind.signed, omit_nan=omit_nan)
        yield flags
        if self.kind is SumKind.MOMENTS:  # squares of both infinities are +∞, and no square is −0
            infinite = (flags & int(Flags.POS_INF | Flags.NEG_INF)) != 0
            rest = flags & ~int(Flags.NEG_INF) | int(Flags.NOT_NEGATIVE_ZERO)
            yield rest | int(Flags.POS_INF) * infinite


def sums_of_integers(op: Op, words: Sequence[NDArray[np.uint64]]) -> tuple[ManySums, ...]:
    """Sums of integers. `words` has for each kind of terms the sums as two's complement, lowest word first, in shape
    (values, words)."""
    flags = np.full(words[0].shape[0], int(Flags.NOT_NEGATIVE_ZERO))
    return tuple(ManySums(terms, 0, _digits(each), flags) for terms, each in zip(terms_of(op), words, strict=True))


def _digits(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The same integers in digits of 32 bits, of which the last has the sign."""
    digits = np.ascontiguousarray(words).view("<u4").astype(np.int64)
    digits[:, -1] -= (digits[:, -1] >> 31) << 32
    return digits

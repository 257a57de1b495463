"""Totals in the GPU's memory, which `../include/exact_total.cuh` keeps, as exact states.

A total is a vector of 64-bit integers, its *limbs*: how many terms were added, how many of them had a NaN, how many
blocks saw each of the four flags, and the sum of the finite terms in digits of 32 bits whose carries are not resolved.
All of them are sums. So totals of several GPUs, processes or hosts are put together by adding them limb by limb, as
NCCL's all-reduce of int64 does, and every order gives the same state.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.exact.encoding import DIGIT_BITS, DIGIT_MASK, ORIGIN, Flags
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.ops import Terms

HEAD = 6
"""Limbs of a total before its digits."""

_COUNT, _NANS, _FLAGS, _DIGITS = 0, 1, 2, HEAD

_LIMBS: Mapping[Terms, int] = MappingProxyType({Terms.VALUES: _DIGITS + 72, Terms.PRODUCTS: _DIGITS + 138})

MOST_ADDED = 1 << 25
"""Numbers below 2**32 that may be added to one limb on a GPU before carries must be resolved."""

MOST_GPUS = 32
"""How many GPUs' limbs may be added up: MOST_ADDED · 2**32 · MOST_GPUS = 2**62, so no limb overflows."""


def limbs_of(kind: SumKind) -> int:
    """How many limbs the total of a kind has. Those of moments are the values' and, behind them, the squares'."""
    return sum(_LIMBS.values()) if kind is SumKind.MOMENTS else _LIMBS[kind.terms]


def digits_of(kind: SumKind) -> tuple[tuple[Terms, slice], ...]:
    """The terms of the sums of a total, and where their digits lie among its limbs."""
    values = _LIMBS[Terms.VALUES]
    if kind is not SumKind.MOMENTS:
        return ((kind.terms, slice(_DIGITS, _LIMBS[kind.terms])),)
    return ((Terms.VALUES, slice(_DIGITS, values)), (Terms.PRODUCTS, slice(values + _DIGITS, limbs_of(kind))))


def flags_of_heads(heads: NDArray[np.int64], *, signed: bool, omit_nan: bool = False) -> NDArray[np.int64]:
    """The flags of many totals, of which `heads` (shape (totals, HEAD)) are the limbs before the digits. `signed` says
    whether a term may be −0. A total of no terms may get NOT_NEGATIVE_ZERO."""
    flags = np.zeros(heads.shape[0], np.int64)
    for place in range(4):
        flags |= (heads[:, _FLAGS + place] != 0).astype(np.int64) << place
    if not omit_nan:
        flags |= (heads[:, _NANS] != 0) * int(Flags.NAN)
    complete: NDArray[np.int64] = flags | int(Flags.NOT_NEGATIVE_ZERO) * ((flags != 0) | (not signed))
    return complete


def nans_of_heads(heads: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many terms of each of many totals are NaN."""
    return heads[:, _NANS]


def states_of_limbs(kind: SumKind, limbs: NDArray[Any], *, omit_nan: bool = False) -> tuple[ExactState, ...]:
    """The state of the terms of a total of `kind`, or of several totals whose `limbs` (int64) were added up; for
    moments the states of values and of squares. Terms that are NaN are left out and not counted if `omit_nan`."""
    nans, flags = int(limbs[_NANS]), Flags.NONE
    count = int(limbs[_COUNT]) - (nans if omit_nan else 0)
    for place in range(4):
        flags |= Flags(bool(limbs[_FLAGS + place]) << place)
    if nans and not omit_nan:
        flags |= Flags.NAN
    first = _state(kind, _sum(limbs[: _LIMBS[kind.terms]]), count, flags)
    if kind is not SumKind.MOMENTS:
        return (first,)
    if flags & Flags.NEG_INF:  # its square is +∞
        flags = flags & ~Flags.NEG_INF | Flags.POS_INF
    return first, _state(SumKind.SQUARES, _sum(limbs[_LIMBS[kind.terms] :]), count, flags)


def carried(kind: SumKind, limbs: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same total with its carries resolved: every digit but the last in [0, 2**32), every flag 0 or 1."""
    kept = limbs.copy()
    starts = (0, _LIMBS[Terms.VALUES]) if kind is SumKind.MOMENTS else (0,)
    for start, stop in zip(starts, (*starts[1:], limbs.size), strict=True):
        kept[start + _FLAGS : start + _DIGITS] = limbs[start + _FLAGS : start + _DIGITS] != 0
        units = _sum(limbs[start:stop])
        for place in range(start + _DIGITS, stop - 1):
            kept[place] = units & DIGIT_MASK
            units >>= DIGIT_BITS
        kept[stop - 1] = units
    return kept


def _sum(limbs: NDArray[Any]) -> int:
    """The finite terms, in units of the state's origin."""
    units = 0
    for digit in reversed(limbs[_DIGITS:].tolist()):
        units = (units << DIGIT_BITS) + digit
    return units


def _state(kind: SumKind, units: int, count: int, flags: Flags) -> ExactState:
    if flags or (count and not kind.signed):  # a sum with any other flag is not −0
        flags |= Flags.NOT_NEGATIVE_ZERO
    return ExactState.from_limbs(kind.terms, (units,), ORIGIN[kind.terms], count, flags)


class Limbs:
    """The limbs of a total of `kind`, zero at first: `array`, a CuPy array of int64 on the current device."""

    def __init__(self, kind: SumKind) -> None:
        import cupy

        self.kind = kind
        self.array = cupy.zeros(limbs_of(kind), dtype=np.int64)
        self._added = 0

    def make_room(self, added: int) -> None:
        """Call this before a launch that may add so many numbers below 2**32 to one limb. It resolves the carries where
        a limb could overflow, which waits for the work before."""
        if self._added + added > MOST_ADDED:
            self.array.set(carried(self.kind, self.array.get()))
            self._added = 1
        self._added += added

"""Exact states as vectors of int64 that may be added up: their sum is the vector of all terms together.

As on a GPU (`kernels.cuda.exact.total`): how many terms, how many states had each of the four flags, and the digits of
the sum, whose carries are resolved only at the end.
"""

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.exact.encoding import MAX_DIGITS
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.exact.terms import DIGIT_BITS, DIGIT_MASK, ORIGIN, Flags
from warpfold.kernels.ops import Terms

_COUNT, _FLAGS, _DIGITS = 0, 1, 5

LIMBS = _DIGITS + MAX_DIGITS[Terms.VALUES] + 1


def limbs_of(state: ExactState) -> NDArray[np.int64]:
    """The vector of a state of values, shape (LIMBS,)."""
    limbs = np.zeros(LIMBS, dtype=np.int64)
    limbs[_COUNT] = state.count
    for place in range(4):
        limbs[_FLAGS + place] = bool(state.flags & Flags(1 << place))
    units = state.units
    for place in range(_DIGITS, LIMBS - 1):
        limbs[place] = units & DIGIT_MASK
        units >>= DIGIT_BITS
    limbs[-1] = units  # has the sign
    return limbs


def state_of(limbs: NDArray[np.int64]) -> ExactState:
    """The state of a vector, or of the sum of up to 2**31 of them."""
    units = 0
    for digit in reversed(limbs[_DIGITS:].tolist()):
        units = (units << DIGIT_BITS) + digit
    flags = Flags.NONE
    for place in range(4):
        flags |= Flags(int(limbs[_FLAGS + place] != 0) << place)
    return ExactState.from_limbs(Terms.VALUES, (units,), ORIGIN[Terms.VALUES], int(limbs[_COUNT]), flags)

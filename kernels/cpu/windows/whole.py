"""Exact sums that are whole numbers, compiled: as words of 64 bits, without Python integers."""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np

from warpfold.kernels.cpu.windows.levels import DIGIT
from warpfold.kernels.jit import jit


@jit
def digit_of(limbs: Any, at: Any) -> Any:
    """The digit of 32 bits at place `at` of a sum in resolved limbs, which has a digit at every place: 0 below the
    limbs, and above them what the sign says."""
    last = limbs.size - 1
    if at < 0:
        return np.int64(0)
    if at < last:
        return limbs[at]
    # The last limb may be longer than a digit.
    return (limbs[last] >> min(32 * (at - last), np.int64(63))) & DIGIT


@jit
def whole_sums(limbs: Any, origin: Any, counts: Any, words: Any, large: Any, left: Any) -> None:
    """words[i] (int64) = the pattern of the sum in limbs[i], for every i with counts[i] > 0; large[i] says whether it
    is 2**63 or more. `limbs` (shape (values, limbs)), resolved, count 2**origin. left[i] is set where the sum is no
    whole number, or fits neither an int64 nor a uint64."""
    start, shift = (-origin) >> 5, (-origin) & 31  # where the bit that counts 1 stands
    above = np.int64(limbs.shape[1]) + 1 - start  # digits from that bit on, with all that limbs have
    for i in range(words.size):
        if counts[i] <= 0:
            continue
        row = limbs[i]
        sign = row[row.size - 1] >> 63
        fits = digit_of(row, start) & ((np.int64(1) << shift) - 1) == 0
        for k in range(min(start, row.size + 1)):
            fits &= digit_of(row, k) == 0
        word = np.int64(0)
        for place in range(max(above, 2)):
            below, over = digit_of(row, start + place), digit_of(row, start + place + 1)
            digit = ((below >> shift) | (over << (32 - shift))) & DIGIT
            if place < 2:
                word |= digit << (32 * place)
            else:
                fits &= digit == sign & DIGIT
        words[i], large[i], left[i] = word, sign == 0 and word < 0, not fits or (sign < 0 and word >= 0)

"""Additions in a prescribed order, compiled: one rounding an operation, in the arithmetic of the elements' dtype.

Arrays are float32 or float64. float16 and bfloat16 come widened to float32, with a `grain`, the number of significand
bits that they lack: every float32 result is then rounded to the narrow format at once. That is the narrow format's own
arithmetic: a float32 has 24 ≥ 2p + 2 bits, so that a sum, difference or product that is rounded twice is rounded once
(Figueroa 1995); a float16 product is even exact, and so is a bfloat16 one above float32's subnormals.

`grain` and `product` are None or a number. Numba compiles a version for each type, so that an argument that is None
costs nothing. Nothing is reordered or contracted, because fastmath is off.
"""

from typing import Any

import numpy as np

from warpfold.kernels.machine.jit import jit

BLOCK = 128
"""Elements that `pairwise` adds first to last before its tree begins, as many as NumPy."""

_SIGN = np.uint32(0x80000000)
_MAGNITUDE = np.uint32(0x7FFFFFFF)
_INFINITY = np.uint32(0x7F800000)
_ONE = np.uint32(1)
_FLOAT16 = np.uint32(13)  # 24 − 11 bits
_FLOAT16_OVERFLOW = np.uint32(0x47800000)  # 2**16
_FLOAT16_NORMAL = np.uint32(0x38800000)  # 2**-14
_FLOAT16_ANCHOR = np.float32(0.75)  # float32 is spaced 2**-24 here, as subnormals of float16 are


@jit
def _rounded(x: Any, grain: Any) -> Any:
    """x to nearest, ties to even, with `grain` fewer significand bits, and float16's narrower range of exponents."""
    if grain is None:
        return x
    bits = np.float32(x).view(np.uint32)
    magnitude = bits & _MAGNITUDE
    if magnitude >= _INFINITY:
        return x
    kept = ((magnitude + ((_ONE << (grain - _ONE)) - _ONE) + ((magnitude >> grain) & _ONE)) >> grain) << grain
    if grain == _FLOAT16:
        if kept >= _FLOAT16_OVERFLOW:
            kept = _INFINITY
        elif magnitude < _FLOAT16_NORMAL:
            small = np.uint32(magnitude).view(np.float32)
            kept = np.float32((small + _FLOAT16_ANCHOR) - _FLOAT16_ANCHOR).view(np.uint32)
    return np.uint32(kept | (bits & _SIGN)).view(np.float32)


@jit
def _joined(a: Any, b: Any, grain: Any, product: Any) -> Any:
    if product is None:
        return _rounded(a + b, grain)
    return _rounded(a * b, grain)


@jit
def chain(t: Any, grain: Any, product: Any) -> Any:
    """The sum ((t[0] + t[1]) + t[2]) + …, or the product in the same order."""
    total = t[0]
    for i in range(1, t.size):
        total = _joined(total, t[i], grain, product)
    return total


@jit
def tree(t: Any, grain: Any, product: Any) -> Any:
    """Neighbours in pairs, level by level; an odd one at the end waits for the next level."""
    size = t.size
    level = np.empty((size + 1) // 2, dtype=t.dtype)
    for i in range(size // 2):
        level[i] = _joined(t[2 * i], t[2 * i + 1], grain, product)
    if size % 2:
        level[size // 2] = t[size - 1]
    size = (size + 1) // 2
    while size > 1:
        for i in range(size // 2):
            level[i] = _joined(level[2 * i], level[2 * i + 1], grain, product)
        if size % 2:
            level[size // 2] = level[size - 1]
        size = (size + 1) // 2
    return level[0]


@jit
def pairwise(t: Any, grain: Any, product: Any) -> Any:
    """Blocks of BLOCK by `chain`, then `tree` over what the blocks gave."""
    blocks = np.empty((t.size + BLOCK - 1) // BLOCK, dtype=t.dtype)
    for k in range(blocks.size):
        blocks[k] = chain(t[k * BLOCK : (k + 1) * BLOCK], grain, product)
    return tree(blocks, grain, product)


@jit
def kahan(t: Any, grain: Any) -> Any:
    """Compensated summation (Kahan 1965): what an addition lost is taken from the next element."""
    total = t[0]
    lost = total - total
    for i in range(1, t.size):
        y = _rounded(t[i] - lost, grain)
        following = _rounded(total + y, grain)
        lost = _rounded(_rounded(following - total, grain) - y, grain)
        total = following
    return total


@jit
def neumaier(t: Any, grain: Any) -> Any:
    """Kahan and Babuška's summation as Neumaier (1974) mended it: an addition keeps the larger of the two."""
    total = t[0]
    lost = total - total
    for i in range(1, t.size):
        x = t[i]
        following = _rounded(total + x, grain)
        if abs(total) >= abs(x):
            error = _rounded(_rounded(total - following, grain) + x, grain)
        else:
            error = _rounded(_rounded(x - following, grain) + total, grain)
        lost = _rounded(lost + error, grain)
        total = following
    return _rounded(total + lost, grain)


@jit
def wide_chain(t: Any, product: Any) -> Any:
    """`chain` in float64, whatever the elements are."""
    total = np.float64(t[0])
    for i in range(1, t.size):
        total = _joined(total, np.float64(t[i]), None, product)
    return total


_DIGIT = 11  # bits: 2048 counters stay in the first-level cache
_BUCKETS = 1 << _DIGIT
_LAST_DIGIT = np.uint64(_BUCKETS - 1)


@jit
def _digit(bits: Any, magnitude: Any, flip: Any, shift: Any) -> Any:
    return np.int64((((np.uint64(bits) & magnitude) ^ flip) >> shift) & _LAST_DIGIT)


@jit
def by_magnitude(bits: Any, magnitude: Any, flip: Any) -> Any:
    """A stable sort of float patterns (uint32 or uint64) by `(bits & magnitude) ^ flip`: flip = 0 is ascending,
    flip = magnitude descending, both uint64. A radix sort, last digit first (Knuth 5.2.5)."""
    source, target = bits.copy(), np.empty_like(bits)
    counts = np.empty(_BUCKETS, dtype=np.int64)
    for place in range(0, 8 * bits.itemsize, _DIGIT):
        shift = np.uint64(place)
        counts[:] = 0
        for i in range(source.size):
            counts[_digit(source[i], magnitude, flip, shift)] += 1
        start = np.int64(0)
        for k in range(_BUCKETS):
            count = counts[k]
            counts[k] = start
            start += count
        for i in range(source.size):
            digit = _digit(source[i], magnitude, flip, shift)
            target[counts[digit]] = source[i]
            counts[digit] += 1
        source, target = target, source
    return source


@jit
def deal(t: Any, hands: Any, count: Any, out: Any) -> Any:
    """Copy t to out: the elements of hand 0 first, then those of hand 1, …; returns where each of `count` hands
    starts."""
    starts = np.zeros(count + 1, dtype=np.int64)
    for i in range(t.size):
        starts[hands[i] + 1] += 1
    for k in range(count):
        starts[k + 1] += starts[k]
    at = starts[:-1].copy()
    for i in range(t.size):
        out[at[hands[i]]] = t[i]
        at[hands[i]] += 1
    return starts


@jit
def shuffle(part: Any, words: Any) -> None:
    """Permute `part` in place by the random 32-bit `words`, one an element (Fisher and Yates; Knuth 3.4.2 P)."""
    for i in range(part.size - 1, 0, -1):
        j = np.int64((np.uint64(words[i]) * np.uint64(i + 1)) >> np.uint64(32))
        kept = part[i]
        part[i] = part[j]
        part[j] = kept

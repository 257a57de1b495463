"""Exact sums of floats by key, compiled: element i is added to the sum of group ids[i].

All groups share anchors, 2 or 4 levels (`levels`) that lie PLACES binary places apart, so that an element costs one
pass and a group a few integers: its levels, lowest first, what they carry, and its count. With |d| < 2**(b + PLACES)
for the highest anchor's b, an element adds at most 2**PLACES to a level; a group carries every 2**(62 − PLACES)
elements, so that no level passes 2**63. An element that is NaN or infinite, or outside of the levels, is left for
`add_wild`, which adds it to limbs of its group. Group 0 takes what is dropped.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.windows.float64 import SPLITTER, each64_squared
from warpfold.kernels.cpu.windows.levels import (
    NAN,
    NEG_INF,
    NOT_NEGATIVE_ZERO,
    POS_INF,
    clamped_exponent,
    deposit,
    resolve,
)
from warpfold.kernels.cpu.windows.vectors import COPIES, WIDE, scatter_levels
from warpfold.kernels.machine.jit import jit

PLACES = 41
_CARRY = (1 << (62 - PLACES)) - 1
_SPARE = 4
_BLOCK = (1 << 13) - WIDE
_INFINITY = np.int64(0x7FF0000000000000)
_MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)
_U = np.uint64  # Numba wraps signed indices, which takes longer than all else


@jit
def extent(words: Any) -> Any:
    """The bounds of patterns (int32 or int64), as `levels.bounds` gives them, and whether a −0 is among them."""
    word = words.dtype.type
    magnitude = word(np.iinfo(words.dtype).max)
    most, least, lowest = word(0), magnitude, magnitude
    for i in range(words.size):
        a = word(words[i] & magnitude)
        most = a if a > most else most
        c = word(word(a - word(1)) & magnitude)
        least = c if c < least else least
        lowest = words[i] if words[i] < lowest else lowest
    return np.int64(most), np.int64(least), lowest == np.iinfo(words.dtype).min


@jit
def _carry(state: Any, g: Any, levels: Any) -> None:
    for level in range(levels):
        carry = state[g, level] >> PLACES
        state[g, level] -= carry << PLACES
        state[g, level + 1] += carry


@jit
def merge_groups(theirs: Any, ids: Any, mine: Any) -> None:
    """Add group g of `theirs` to group ids[g] of `mine`, both of one number of levels."""
    levels = mine.shape[1] - 2
    for g in range(ids.size):
        to = ids[g]
        _carry(theirs, g, levels)
        _carry(mine, to, levels)
        for column in range(levels + 2):
            mine[to, column] += theirs[g, column]


@jit
def _into(pattern: Any, anchor: Any) -> Any:
    return np.float64(pattern).view(np.int64) - np.float64(anchor).view(np.int64)


@jit
def add_two(elements: Any, ids: Any, state: Any, anchors: Any, weight: Any) -> None:
    """Add all elements. `state` has the shape (groups, 4), and each element adds `weight` to the count of its group."""
    first, second = anchors[1], anchors[0]
    for i in range(elements.size):
        g = _U(ids[i])
        d = np.float64(elements[i])
        t = d + first
        state[g, _U(1)] += _into(t, first)
        state[g, _U(0)] += _into((d - (t - first)) + second, second)
        count = state[g, _U(3)] + weight
        state[g, _U(3)] = count
        if count & _CARRY == 0:
            _carry(state, np.int64(g), 2)


@jit
def add_four(elements: Any, ids: Any, state: Any, anchors: Any, weight: Any) -> None:
    """Do what `add_two` does with four levels and a state of shape (groups, 6)."""
    m3, m2, m1, m0 = anchors[3], anchors[2], anchors[1], anchors[0]
    for i in range(elements.size):
        g = _U(ids[i])
        d = np.float64(elements[i])
        t = d + m3
        state[g, _U(3)] += _into(t, m3)
        d -= t - m3
        t = d + m2
        state[g, _U(2)] += _into(t, m2)
        d -= t - m2
        t = d + m1
        state[g, _U(1)] += _into(t, m1)
        state[g, _U(0)] += _into((d - (t - m1)) + m0, m0)
        count = state[g, _U(5)] + weight
        state[g, _U(5)] = count
        if count & _CARRY == 0:
            _carry(state, np.int64(g), 4)


@jit
def _is_held(words: Any, held: Any) -> bool:
    """Whether the levels hold all of a block, of whose magnitudes' patterns they hold `held[0]` … `held[1]` − 1, and no
    −0 is in it. `held[2]` says that this is known, and nothing is looked at."""
    if held[2]:
        return True
    most, least, negative_zeros = extent(words)
    return (most == 0 or (held[0] <= least + 1 and most < held[1])) and not negative_zeros


@jit
def add_few(elements: Any, words: Any, held: Any, ids: Any, state: Any, anchors: Any, weight: Any, table: Any) -> Any:
    """Do what `add_two` or `add_four` does for few groups: `table`, zeros of the shape (groups, COPIES, levels),
    gathers a block of elements, which then goes to `state`. `anchors` are those of `lowered`. Returns how many elements
    were added: the last few are not added, nor any block from the first on that `_is_held` refuses, where `words` are
    the patterns of the elements."""
    size = elements.size // WIDE * WIDE
    for at in range(0, size, _BLOCK):
        part = slice(at, min(at + _BLOCK, size))
        if not _is_held(words[part], held):
            return at
        scatter_levels(elements[part], ids[part], table, anchors)
        _gather(table, anchors, weight, state)
    return size


def lowered(anchors: NDArray[np.float64]) -> tuple[float, ...]:
    """The anchors of `add_few`, the highest first: all but the lowest lie _SPARE places below those of the state."""
    return (*(float(anchor) * 2.0**-_SPARE for anchor in anchors[:0:-1]), float(anchors[0]))


@jit
def _gather(table: Any, anchors: Any, weight: Any, state: Any) -> None:
    """Move what each group has in its rows of `table` to its state.

    These rows have together Σ bits(t) of n < 2**13 elements at each level, modulo 2**64: n·bits(M) + Σ k. All levels
    but the lowest lie _SPARE places below those of the state, so that at the lowest |k| ≤ 2**(PLACES − 1 − _SPARE) and
    |Σ k| < 2**50. As bits(M) is an odd multiple of 2**51, n stands in the upper 13 bits of that sum.
    """
    last = len(anchors) - 1
    bits = np.float64(anchors[last]).view(np.uint64)
    odd = bits >> _U(51)
    inverse = odd * (_U(2) - odd * odd)  # modulo 2**6, as odd itself is modulo 2**3
    inverse *= _U(2) - odd * inverse
    inverse *= _U(2) - odd * inverse  # modulo 2**24
    for g in range(table.shape[0]):
        lowest = _taken(table, g, last)
        n = (((lowest + _U(1 << 50)) >> _U(51)) * inverse) & _U((1 << 13) - 1)
        if n == 0:
            continue
        state[g, 0] += np.int64(lowest - n * bits)
        for level in range(1, last + 1):
            anchor = np.float64(anchors[last - level]).view(np.uint64)
            k = np.int64(_taken(table, g, last - level) - n * anchor)
            state[g, level] += k >> _SPARE
            state[g, level - 1] += (k & ((1 << _SPARE) - 1)) << (PLACES - _SPARE)
        state[g, last + 2] += np.int64(n) * weight
        _carry(state, g, last + 1)


@jit
def _taken(table: Any, g: Any, column: Any) -> Any:
    """The sum of a column of a group's rows, which becomes 0."""
    total = _U(0)
    for copy in range(COPIES):
        total += _U(table[g, copy, column])
        table[g, copy, column] = 0
    return total


@jit
def outside(words: Any, least: Any, most: Any, positions: Any) -> Any:
    """Write to `positions` the places of the patterns that are not zero and whose magnitudes are not in
    least … most − 1; returns how many there are."""
    magnitude = np.iinfo(words.dtype).max
    n = 0
    for i in range(words.size):
        a = np.int64(words[i] & magnitude)
        positions[n] = i
        n += a != 0 and (a < least or a >= most)
    return n


@jit
def count_negative_zeros(words: Any, ids: Any, counts: Any) -> None:
    """counts[ids[i]] += 1 wherever words[i] is the pattern of −0."""
    for i in range(words.size):
        counts[_U(ids[i])] += words[i] == np.iinfo(words.dtype).min


@jit
def give_slots(words: Any, ids: Any, slots: Any, used: Any) -> Any:
    """Number those groups of finite elements that have no limbs yet, from `used` + 1 on; returns the last number."""
    for i in range(words.size):
        g = ids[i]
        if slots[g] == 0 and words[i] & _MAGNITUDE < _INFINITY:
            used += 1
            slots[g] = used
    return used


@jit
def finite_places(words: Any, squares: Any) -> Any:
    """The exponents of the lowest and of the highest last place of finite elements, whose patterns are `words`, or of
    their squares; the first is larger than the second where no element is finite."""
    low, high = np.int64(2046), np.int64(0)
    for i in range(words.size):
        field = (words[i] & _MAGNITUDE) >> 52
        if field < 2047:
            low = min(low, clamped_exponent(field))
            high = max(high, clamped_exponent(field))
    if high == 0:
        return np.int64(1), np.int64(0)
    times = 2 if squares else 1
    return times * (low - 1075), times * (high - 1075)


@jit
def add_wild(words: Any, ids: Any, squares: Any, origin: Any, slots: Any, limbs: Any, flags: Any) -> None:
    """Add float64 elements, whose patterns are `words`, to the limbs of their groups, or their squares; limbs take
    2**28 before they are resolved. The first limb counts 2**origin. Specials set flags."""
    for i in range(words.size):
        g = ids[i]
        a = words[i] & _MAGNITUDE
        if a > _INFINITY:
            flags[g] |= NAN
        elif a == _INFINITY:
            flags[g] |= NEG_INF if words[i] < 0 and not squares else POS_INF
        elif squares:
            each64_squared(words[i : i + 1], origin, limbs[slots[g]])
        else:
            field = a >> 52
            significand = (a & np.int64(0x000FFFFFFFFFFFFF)) | (np.int64(field > 0) << 52)
            place = clamped_exponent(field) - 1075 - origin
            deposit(limbs[slots[g]], -significand if words[i] < 0 else significand, place)


@jit
def resolve_all(limbs: Any) -> None:
    """Carry in every row of `limbs`."""
    for slot in range(limbs.shape[0]):
        resolve(limbs[slot])


@jit
def split_squares(elements: Any, squares: Any, errors: Any) -> None:
    """x² = squares + errors, exactly (Dekker 1971), where |x| is 0 or in 2**−480 … 2**500."""
    for i in range(elements.size):
        d = elements[i]
        c = SPLITTER * d
        high = c - (c - d)
        low = d - high
        p = d * d
        squares[i] = p
        errors[i] = ((high * high - p) + 2.0 * high * low) + low * low


@jit
def merge_limbs(theirs: Any, from_rows: Any, place: Any, mine: Any, to_rows: Any) -> None:
    """mine[to_rows[i], place + k] += theirs[from_rows[i], k], for every i and k."""
    for i in range(from_rows.size):
        row, other = mine[to_rows[i]], theirs[from_rows[i]]
        for k in range(other.size):
            row[place + k] += other[k]


@jit
def group_limbs(
    state: Any,
    levels: Any,
    unit: Any,
    negative_zeros: Any,
    flags: Any,
    slots: Any,
    limbs: Any,
    place: Any,
    start: Any,
    origin: Any,
    sums: Any,
    row_flags: Any,
) -> None:
    """Write the sums of the groups from `start` on to the rows of `sums`, as resolved limbs of which the first counts
    2**origin and the last takes the carries, and their flags to `row_flags`.

    Level k counts 2**(unit + PLACES · k). Row slots[g] of `limbs` is added from limb `place` on. `negative_zeros`,
    `slots` and `flags` may end before the last group, where no more groups have any.
    """
    for row in range(row_flags.size):
        g = start + row
        count = state[g, levels + 1]
        flag = np.int64(0)
        if g < flags.size:
            flag = flags[g]
        if count and (negative_zeros.size <= g or negative_zeros[g] < count):
            flag |= NOT_NEGATIVE_ZERO
        row_flags[row] = flag
        sums[row] = 0
        if g < slots.size and slots[g]:
            for k in range(limbs.shape[1]):
                sums[row, place + k] = limbs[slots[g], k]
        for level in range(levels + 1):
            deposit(sums[row], state[g, level], unit + PLACES * level - origin)
        resolve(sums[row])

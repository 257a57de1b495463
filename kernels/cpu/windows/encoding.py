"""The bytes of very many exact states, compiled: the encoding that `kernels.exact.encoding` defines, in a few tens of
nanoseconds a state.

States are written from limbs and read into limbs: digits of 32 bits in int64, of which the last has the sign.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np

from warpfold.kernels.cpu.windows.levels import DIGIT, NOT_NEGATIVE_ZERO
from warpfold.kernels.exact.encoding import HEADER, MAGIC, VERSION
from warpfold.kernels.machine.jit import jit

HEAD = HEADER.size
_MAGIC = tuple(MAGIC)
_KNOWN_FLAGS = 15
SIGN = np.int64(0x80000000)


@jit
def _put(data: Any, at: Any, value: Any, count: Any) -> None:
    for place in range(count):
        data[at + place] = (value >> (8 * place)) & 0xFF


@jit
def word_at(data: Any, at: Any, count: Any) -> Any:
    """The integer of `count` bytes from data[at] on, of which the first is the lowest."""
    value = np.uint64(0)
    for place in range(count):
        value |= np.uint64(data[at + place]) << np.uint64(8 * place)
    return np.int64(value)


@jit
def encode(limbs: Any, shift: Any, counts: Any, flags: Any, code: Any, data: Any, offsets: Any) -> None:
    """Write the states of sums to `data` (uint8), state i from offsets[i] to offsets[i + 1]; offsets[0] is set.

    Row i of `limbs` (shape (states, limbs)), resolved, is Σ limbs[k] · 2**(32 k + shift) units. `data` has room for
    HEAD + 4 · (limbs + 3) bytes a state. `code` is that of the terms. A state without terms is that of nothing.
    """
    skipped, places = shift >> 5, shift & 31
    width = limbs.shape[1]
    digits = np.zeros(width + 2, np.int64)
    for i in range(counts.size):
        below = np.int64(0)
        for k in range(width):
            digits[k] = ((limbs[i, k] << places) | below) & DIGIT
            below = (limbs[i, k] & DIGIT) >> (32 - places) if places else np.int64(0)
        # The last limb may be longer than a digit.
        above = limbs[i, width - 1] >> (32 - places)
        digits[width] = above & DIGIT
        digits[width + 1] = (above >> 32) & DIGIT
        extension = DIGIT if above < 0 else np.int64(0)
        stop = width + 2
        while stop > 1 and digits[stop - 1] == extension and (digits[stop - 2] & SIGN) == (extension & SIGN):
            stop -= 1
        first = 0
        while first < stop and digits[first] == 0:
            first += 1
        stored = stop - first
        if counts[i] == 0:
            stored = 0
        at = offsets[i]
        for place in range(4):
            data[at + place] = _MAGIC[place]
        data[at + 4] = VERSION
        data[at + 5] = code
        data[at + 6] = flags[i] if counts[i] else 0
        data[at + 7] = 0
        _put(data, at + 8, counts[i], 8)
        _put(data, at + 16, first + skipped if stored else 0, 2)
        _put(data, at + 18, stored, 2)
        _put(data, at + 20, 0, 4)
        for k in range(stored):
            _put(data, at + HEAD + 4 * k, digits[first + k], 4)
        offsets[i + 1] = at + HEAD + 4 * stored


@jit
def look(data: Any, offsets: Any, code: Any, most_digits: Any, doubtful: Any) -> Any:
    """Look at states: the index of the lowest digit and behind the highest one of all, and in how many a Python reader
    is to look for what is wrong; doubtful[i] is set for these. Their sums reach no further than `most_digits` digits,
    as any sum does that a single term can have."""
    low, end, doubts = np.int64(1 << 16), np.int64(0), 0
    for i in range(offsets.size - 1):
        at = offsets[i]
        length = offsets[i + 1] - at
        sound = length >= HEAD
        if sound:
            for place in range(4):
                sound &= data[at + place] == _MAGIC[place]
            first, stored = word_at(data, at + 16, 2), word_at(data, at + 18, 2)
            flags, count = np.int64(data[at + 6]), word_at(data, at + 8, 8)
            sound &= data[at + 4] == VERSION and data[at + 5] == code and data[at + 7] == 0
            sound &= word_at(data, at + 20, 4) == 0 and length == HEAD + 4 * stored and flags <= _KNOWN_FLAGS
            sound &= first + stored <= most_digits and count >= 0
            sound &= count > 0 or (flags == 0 and stored == 0)
            sound &= (flags & NOT_NEGATIVE_ZERO) != 0 or (flags == 0 and stored == 0)
            sound &= stored > 0 or first == 0
            if sound and stored > 0:
                top = word_at(data, at + HEAD + 4 * (stored - 1), 4)
                sound &= word_at(data, at + HEAD, 4) != 0
                if stored > 1:
                    next_sign = word_at(data, at + HEAD + 4 * (stored - 2), 4) & SIGN
                    sound &= not (top == 0 and next_sign == 0) and not (top == DIGIT and next_sign != 0)
                low, end = min(low, first), max(end, first + stored)
        doubtful[i] = not sound
        doubts += not sound
    return low, end, doubts


@jit
def add(data: Any, offsets: Any, ids: Any, low: Any, limbs: Any, counts: Any, flags: Any) -> Any:
    """Add state i, which is sound, to row ids[i] of `limbs`, whose first digit has the index `low`, to its count and
    its flags. Limbs take 2**30 states before they are resolved. Returns the index of the first state with which a
    count passes 2**63, −1 if no count does."""
    for i in range(ids.size):
        at, g = offsets[i], ids[i]
        count = counts[g] + word_at(data, at + 8, 8)
        if count < 0:
            return i
        counts[g] = count
        flags[g] |= data[at + 6]
        stored = word_at(data, at + 18, 2)
        first = word_at(data, at + 16, 2) - low
        for k in range(stored):
            digit = word_at(data, at + HEAD + 4 * k, 4)
            if k == stored - 1 and digit & SIGN:
                digit -= DIGIT + 1
            limbs[g, first + k] += digit
    return -1

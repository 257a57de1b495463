"""Exact sums whose states lie at addresses that another program gives out, such as a database for its aggregates.

A state is HEAD_WORDS words of 8 bytes and those of a window, all zero at first: how many terms it has, its flags with
the place of its window, the address of its long limbs, and the limbs of the window. The first term other than zero puts
the window around itself; a term that reaches outside goes to long limbs from the C library. So a state of values takes
72 bytes where the elements of a group have exponents near each other, and holds every float64 all the same.

A `shape` is how many limbs the window has, and how many the long ones: VALUES for sums of values, PRODUCTS for sums of
products. Where a program needs both, that of the products lies behind that of the values.

A limb is a digit of 32 bits in an int64, in units of 2**(32 k) of the smallest value or product. A deposit adds less
than 2**33 to a limb, and limbs are carried every CARRY + 1 terms of at most 6 deposits. The window's last limb takes
what is carried; a deposit adds less than 2**21 to it, so that it holds 2**38 terms.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from warpfold.kernels.cpu.windows.encoding import HEAD, word_at
from warpfold.kernels.cpu.windows.levels import DIGIT, deposit, resolve
from warpfold.kernels.cpu.windows.nearest import MOST_DIVISOR, rounded_limbs
from warpfold.kernels.machine.jit import jit

VALUES = (6, 72)
PRODUCTS = (14, 140)
HEAD_WORDS = 3
VALUES_ORIGIN, PRODUCTS_ORIGIN = -1074, -2148
"""The binary exponents of the units."""

NO_MEMORY = 0x80
"""Set among the flags of a state for which the C library had no long limbs."""

OF_VALUES, OF_PRODUCTS = 0x20, 0x40
"""Set among the flags of a state into which states of that kind were merged."""

TERM_FLAGS = 0x0F
"""The flags that the bytes of a state have."""

COUNT, META, LONG_AT, FIRST = 0, 1, 2, HEAD_WORDS
CARRY = (1 << 25) - 1
FLAGS = 0xFF

_calloc: Any = types.ExternalFunction("calloc", types.int64(types.int64, types.int64))
_free: Any = types.ExternalFunction("free", types.void(types.int64))


def _words_at(context: Any, address: Any) -> Any:
    """The int64 words from an address on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    pointer: Any = types.CPointer(types.int64)  # type: ignore[no-untyped-call]
    return pointer(types.int64), generate


words_at: Any = intrinsic(_words_at)


@jit
def is_null(validity: Any, i: Any) -> Any:
    """Whether bit i at `validity` is not set; where that is 0 there are no nulls."""
    return validity != 0 and (words_at(validity)[i >> 6] >> (i & 63)) & 1 == 0


@jit
def _base(meta: Any, lowest: Any, shape: Any) -> Any:
    """Where the window of a state begins, or would begin if its first term has its lowest limb there."""
    return (meta >> 8) - 1 if meta >> 8 else max(lowest - (shape[0] - 2) // 2, np.int64(0))


@jit
def _deposit(state: Any, at: Any, value: Any, place: Any, shape: Any) -> Any:
    """Add value · 2**place to the window if it reaches from limb `at` to at + 2; whether it does."""
    base = _base(state[META], at, shape)
    inside = at - base
    if inside < 0 or inside > shape[0] - 3:
        return False
    if state[META] >> 8 == 0:
        state[META] |= (base + 1) << 8
    shift = place & 31
    low, high = (value & DIGIT) << shift, (value >> 32) << shift
    state[FIRST + inside] += low & DIGIT
    state[FIRST + inside + 1] += (low >> 32) + (high & DIGIT)
    state[FIRST + inside + 2] += high >> 32
    return True


@jit
def carry(state: Any, shape: Any) -> None:
    """Bring the limbs back to digits."""
    for k in range(FIRST, FIRST + shape[0] - 1):
        over = state[k] >> 32
        state[k] &= DIGIT
        state[k + 1] += over
    if state[LONG_AT] != 0:
        long = words_at(state[LONG_AT])
        for k in range(shape[1] - 1):
            over = long[k] >> 32
            long[k] &= DIGIT
            long[k + 1] += over


@jit
def add(state: Any, value: Any, place: Any, shape: Any) -> None:
    """Add value · 2**place units to a state."""
    at = place >> 5
    if not _deposit(state, at, value, place, shape):
        long = long_of(state, shape)
        if long != 0:
            _into_long(words_at(long), value, place)


@jit
def long_of(state: Any, shape: Any) -> Any:
    """The address of the long limbs of a state, which are made if the state lacks them; 0 where memory is exhausted."""
    if state[LONG_AT] == 0:
        state[LONG_AT] = _calloc(np.int64(shape[1]), np.int64(8))
        if state[LONG_AT] == 0:
            state[META] |= NO_MEMORY
    return state[LONG_AT]


@jit
def _into_long(long: Any, value: Any, place: Any) -> None:
    at, shift = place >> 5, place & 31
    low, high = (value & DIGIT) << shift, (value >> 32) << shift
    long[at] += low & DIGIT
    long[at + 1] += (low >> 32) + (high & DIGIT)
    long[at + 2] += high >> 32


@jit
def combine(sources: Any, targets: Any, count: Any, offset: Any, shape: Any) -> None:
    """Add each state that lies `offset` bytes behind those at `sources`, and stays as it is, to that of `targets`."""
    froms, tos = words_at(sources), words_at(targets)
    window = np.zeros(shape[0], np.int64)
    for i in range(count):
        source, target = words_at(froms[i] + offset), words_at(tos[i] + offset)
        target[COUNT] += source[COUNT]
        target[META] |= source[META] & FLAGS
        window_at, target_window_at = source[META] >> 8, target[META] >> 8
        if window_at != 0:
            for k in range(shape[0]):
                window[k] = source[FIRST + k]
            resolve(window)
            if target_window_at == 0:
                target[META] |= window_at << 8
            if target_window_at in (0, window_at):
                for k in range(shape[0]):
                    target[FIRST + k] += window[k]
            elif long_of(target, shape) != 0:
                for k in range(shape[0]):
                    _into_long(words_at(target[LONG_AT]), window[k], 32 * (window_at - 1 + k))
        if source[LONG_AT] != 0 and long_of(target, shape) != 0:
            long, theirs = words_at(target[LONG_AT]), words_at(source[LONG_AT])
            for k in range(shape[1]):
                long[k] += theirs[k]
        carry(target, shape)


@jit
def clear(address: Any, words: Any) -> None:
    """Make a state of so many words the state of no terms."""
    state = words_at(address)
    for k in range(words):
        state[k] = 0


@jit
def give_back(states: Any, count: Any, offset: Any) -> None:
    """Free the long limbs of the states that lie `offset` bytes behind those at `states`."""
    addresses = words_at(states)
    for i in range(count):
        state = words_at(addresses[i] + offset)
        if state[LONG_AT] != 0:
            _free(state[LONG_AT])
            state[LONG_AT] = 0


@jit
def sums(states: Any, count: Any, offset: Any, shape: Any, limbs: Any, counts: Any, flags: Any) -> None:
    """Write the sums to the rows of `limbs` (one for each state, as wide as the long limbs of the shape), resolved, the
    first limb in units of the smallest term, with the numbers of their terms and their flags."""
    addresses = words_at(states)
    for i in range(count):
        state = words_at(addresses[i] + offset)
        counts[i], flags[i] = state[COUNT], state[META] & FLAGS
        limbs[i] = 0
        if state[LONG_AT] != 0:
            long = words_at(state[LONG_AT])
            for k in range(shape[1]):
                limbs[i, k] = long[k]
        base = (state[META] >> 8) - 1
        if base >= 0:
            for k in range(shape[0]):
                deposit(limbs[i], state[FIRST + k], 32 * (base + k))
        resolve(limbs[i])


@jit
def round_states(
    states: Any, count: Any, shape: Any, origin: Any, mean: Any, form: Any, values: Any, missing: Any
) -> Any:
    """values[i] = the sum of each state, or its mean, rounded once; missing[i] where it has no terms. The units are
    2**origin. Returns −1, or the index of the first state that has too many terms to be divided by them here, or that
    got no memory: from that state on nothing is written."""
    addresses = words_at(states)
    window = np.zeros(shape[0], np.int64)
    whole = np.zeros((1, shape[1]), np.int64)
    counts, flags = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for i in range(count):
        state = words_at(addresses[i])
        missing[i] = state[COUNT] == 0
        if missing[i]:
            continue
        if state[META] & NO_MEMORY or (mean and state[COUNT] > MOST_DIVISOR):
            return i
        divisor = state[COUNT] if mean else np.int64(1)
        if state[LONG_AT] == 0:
            for k in range(shape[0]):
                window[k] = state[FIRST + k]
            resolve(window)
            base = max((state[META] >> 8) - 1, np.int64(0))
            values[i] = rounded_limbs(window, origin + 32 * base, state[META] & TERM_FLAGS, divisor, form)
        else:
            sums(states + 8 * i, 1, 0, shape, whole, counts, flags)
            values[i] = rounded_limbs(whole[0], origin, flags[0] & TERM_FLAGS, divisor, form)
    return -1


@jit
def merge(data: Any, offsets: Any, targets: Any, states: Any, shape: Any, kind: Any) -> None:
    """Add the states of `kind` (OF_VALUES or OF_PRODUCTS) whose bytes are data[offsets[j]] … data[offsets[j + 1] − 1],
    which are sound, to the states at rows targets[j] of `states`."""
    addresses = words_at(states)
    for j in range(offsets.size - 1):
        at, state = offsets[j], words_at(addresses[targets[j]])
        state[COUNT] += word_at(data, at + 8, 8)
        state[META] |= data[at + 6] | kind
        first, stored = word_at(data, at + 16, 2), word_at(data, at + 18, 2)
        if stored == 0:
            continue
        base = (state[META] >> 8) - 1
        if base < 0 and stored < shape[0] and first <= shape[1] - shape[0] - 2:
            base = first
            state[META] |= (base + 1) << 8
        if base >= 0 and first >= base and first + stored < base + shape[0]:
            for k in range(stored):
                state[FIRST + first - base + k] += _digit(data, at, k, stored)
        elif long_of(state, shape) != 0:
            long = words_at(state[LONG_AT])
            for k in range(stored):
                long[first + k] += _digit(data, at, k, stored)
        carry(state, shape)


@jit
def _digit(data: Any, at: Any, k: Any, stored: Any) -> Any:
    digit = word_at(data, at + HEAD + 4 * k, 4)
    if k == stored - 1 and digit >> 31:
        digit -= DIGIT + 1
    return digit


@jit
def blobs(values: Any, validity: Any, count: Any, rows: Any, lengths: Any, places: Any) -> Any:
    """The rows, lengths and addresses of those strings at `values`, as DuckDB lays them out, that are no nulls; returns
    how many there are. A string of up to 12 bytes lies behind its length."""
    words, number = words_at(values), 0
    for i in range(count):
        if is_null(validity, i):
            continue
        length = words[2 * i] & DIGIT
        rows[number], lengths[number] = i, length
        places[number] = words[2 * i + 1] if length > 12 else values + 16 * i + 4
        number += 1
    return number

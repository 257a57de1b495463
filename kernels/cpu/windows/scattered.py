"""Exact sums whose states lie at addresses that another program gives out, such as a database for its aggregates.

A state is WORDS words of 8 bytes, all zero at first: how many elements it has, its flags with the place of its window,
the address of its long limbs, and the WINDOW limbs of the window. The first element other than zero puts the window
around itself; an element that reaches outside goes to long limbs, LONG words from the C library. So a state takes 72
bytes where the elements of a group have exponents near each other, and holds every float64 all the same.

A limb is a digit of 32 bits in an int64, in units of 2**(32 k − 1074). A deposit adds less than 2**33 to a limb, and
limbs are carried every 2**28 elements. The window's last limb takes what is carried; a deposit adds less than 2**21 to
it, so that it holds 2**41 elements.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np
from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import intrinsic

from warpfold.kernels.cpu.windows.encoding import HEAD, _word
from warpfold.kernels.cpu.windows.float64 import FIELDS64, add_float64
from warpfold.kernels.cpu.windows.levels import (
    DIGIT,
    NAN,
    NEG_INF,
    NOT_NEGATIVE_ZERO,
    POS_INF,
    TILE64,
    clamped_exponent,
    deposit,
    resolve,
)
from warpfold.kernels.cpu.windows.nearest import MOST_DIVISOR, rounded_limbs
from warpfold.kernels.jit import jit

WORDS = 9
LONG = 72
WINDOW = 6
ORIGIN = -1074
NO_MEMORY = 0x80
"""Set among the flags of a state for which the C library had no long limbs."""

_MANY = 512
"""Elements of one state for which the loops of single sums are faster."""

_COUNT, _META, _LONG_AT, _FIRST = 0, 1, 2, 3
_CARRY = (1 << 28) - 1
_FLAGS = 0xFF
_MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)
_INFINITY = np.int64(0x7FF0000000000000)
_NEGATIVE_ZERO = np.int64(-0x8000000000000000)
_ONE_AT = -ORIGIN
_LAST_BASE = LONG - WINDOW - 2
"""A window that is deposited in long limbs begins no later."""

_calloc: Any = types.ExternalFunction("calloc", types.int64(types.int64, types.int64))
_free: Any = types.ExternalFunction("free", types.void(types.int64))


def _words_at(context: Any, address: Any) -> Any:
    """The int64 words from an address on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    pointer: Any = types.CPointer(types.int64)  # type: ignore[no-untyped-call]
    return pointer(types.int64), generate


_at: Any = intrinsic(_words_at)


@jit
def _is_null(validity: Any, i: Any) -> Any:
    return validity != 0 and (_at(validity)[i >> 6] >> (i & 63)) & 1 == 0


@jit
def _window(meta: Any, lowest: Any) -> Any:
    """Where the window of a state begins, or would begin if its first element has its lowest limb there."""
    return (meta >> 8) - 1 if meta >> 8 else max(lowest - 2, np.int64(0))


@jit
def _deposit(state: Any, at: Any, value: Any, place: Any) -> Any:
    """Add value · 2**place to the window if it reaches from limb `at` to at + 2; whether it does."""
    base = _window(state[_META], at)
    inside = at - base
    if inside < 0 or inside > WINDOW - 3:
        return False
    if state[_META] >> 8 == 0:
        state[_META] |= (base + 1) << 8
    shift = place & 31
    low, high = (value & DIGIT) << shift, (value >> 32) << shift
    state[_FIRST + inside] += low & DIGIT
    state[_FIRST + inside + 1] += (low >> 32) + (high & DIGIT)
    state[_FIRST + inside + 2] += high >> 32
    return True


@jit
def _carry(state: Any) -> None:
    for k in range(_FIRST, _FIRST + WINDOW - 1):
        carry = state[k] >> 32
        state[k] &= DIGIT
        state[k + 1] += carry
    if state[_LONG_AT] != 0:
        long = _at(state[_LONG_AT])
        for k in range(LONG - 1):
            carry = long[k] >> 32
            long[k] &= DIGIT
            long[k + 1] += carry


@jit
def _add(state: Any, value: Any, place: Any) -> None:
    """Add value · 2**place to a state."""
    at = place >> 5
    if not _deposit(state, at, value, place):
        long = _long(state)
        if long != 0:
            _into_long(_at(long), value, place)


@jit
def _long(state: Any) -> Any:
    """The address of the long limbs of a state, which it gets if it has none; 0 where there is no memory."""
    if state[_LONG_AT] == 0:
        state[_LONG_AT] = _calloc(np.int64(LONG), np.int64(8))
        if state[_LONG_AT] == 0:
            state[_META] |= NO_MEMORY
    return state[_LONG_AT]


@jit
def _have_one_state(addresses: Any, count: Any) -> Any:
    same = addresses[0] == addresses[count - 1]
    i = 1
    while same and i < count:
        same = addresses[i] == addresses[0]
        i += 1
    return same


@jit
def _add_all(bits: Any, state: Any, count: Any) -> Any:
    """Add all elements to the long limbs of one state by the loops of single sums; whether there is memory for them."""
    if _long(state) == 0:
        return False
    rest, other, spare = np.empty(TILE64), np.empty(TILE64), np.empty(TILE64, np.int64)
    fields = np.zeros(FIELDS64, np.uint64), np.zeros(FIELDS64, np.int16)
    limbs = carray(_at(state[_LONG_AT]), LONG)
    flags = add_float64(carray(bits, count), -1, False, ORIGIN, limbs, rest, other, spare, fields)
    state[_COUNT] += count
    state[_META] |= flags
    _carry(state)
    return True


@jit
def add_floats(values: Any, validity: Any, states: Any, count: Any) -> None:
    """Add the float64 at `values` to the states whose addresses are at `states`, but those whose bit at `validity`
    (unless that is 0) is not set."""
    bits, addresses = _at(values), _at(states)
    alone = validity == 0 and count >= _MANY and _have_one_state(addresses, count)
    if alone and _add_all(bits, _at(addresses[0]), count):
        return
    for i in range(count):
        if _is_null(validity, i):
            continue
        word, state = bits[i], _at(addresses[i])
        state[_COUNT] += 1
        if word == _NEGATIVE_ZERO:
            continue
        magnitude = word & _MAGNITUDE
        if magnitude >= _INFINITY:
            special = NAN if magnitude > _INFINITY else (NEG_INF if word < 0 else POS_INF)
            state[_META] |= special | NOT_NEGATIVE_ZERO
            continue
        state[_META] |= NOT_NEGATIVE_ZERO
        if magnitude != 0:
            value, place = _parts(word)
            _add(state, value, place)
        if state[_COUNT] & _CARRY == 0:
            _carry(state)


@jit
def _parts(word: Any) -> Any:
    """The significand with its sign, and the place of its last bit, of a finite float64 that is not zero."""
    field = (word & _MAGNITUDE) >> 52
    significand = (word & np.int64(0x000FFFFFFFFFFFFF)) | (np.int64(field > 0) << 52)
    return -significand if word < 0 else significand, clamped_exponent(field) - 1


@jit
def _into_long(long: Any, value: Any, place: Any) -> None:
    at, shift = place >> 5, place & 31
    low, high = (value & DIGIT) << shift, (value >> 32) << shift
    long[at] += low & DIGIT
    long[at + 1] += (low >> 32) + (high & DIGIT)
    long[at + 2] += high >> 32


@jit
def add_integers(values: Any, validity: Any, states: Any, count: Any, unsigned: Any) -> None:
    """As `add_floats`, of int64, or uint64 if `unsigned`."""
    words, addresses = _at(values), _at(states)
    for i in range(count):
        if _is_null(validity, i):
            continue
        word, state = words[i], _at(addresses[i])
        state[_COUNT] += 1
        state[_META] |= NOT_NEGATIVE_ZERO
        if unsigned:
            _add(state, word & DIGIT, np.int64(_ONE_AT))
            _add(state, (word >> 32) & DIGIT, np.int64(_ONE_AT + 32))
        else:
            _add(state, word, np.int64(_ONE_AT))
        if state[_COUNT] & _CARRY == 0:
            _carry(state)


@jit
def combine(sources: Any, targets: Any, count: Any) -> None:
    """Add each state of `sources`, which stays as it is, to that of `targets`."""
    froms, tos = _at(sources), _at(targets)
    window = np.zeros(WINDOW, np.int64)
    for i in range(count):
        source, target = _at(froms[i]), _at(tos[i])
        target[_COUNT] += source[_COUNT]
        target[_META] |= source[_META] & _FLAGS
        here, there = source[_META] >> 8, target[_META] >> 8
        if here != 0:
            for k in range(WINDOW):
                window[k] = source[_FIRST + k]
            resolve(window)
            if there == 0:
                target[_META] |= here << 8
            if there in (0, here):
                for k in range(WINDOW):
                    target[_FIRST + k] += window[k]
            elif _long(target) != 0:
                for k in range(WINDOW):
                    _into_long(_at(target[_LONG_AT]), window[k], 32 * (here - 1 + k))
        if source[_LONG_AT] != 0 and _long(target) != 0:
            long, theirs = _at(target[_LONG_AT]), _at(source[_LONG_AT])
            for k in range(LONG):
                long[k] += theirs[k]
        _carry(target)


@jit
def clear(address: Any) -> None:
    """Make a state that of nothing."""
    state = _at(address)
    for k in range(WORDS):
        state[k] = 0


@jit
def give_back(states: Any, count: Any) -> None:
    """Free the long limbs of states."""
    addresses = _at(states)
    for i in range(count):
        state = _at(addresses[i])
        if state[_LONG_AT] != 0:
            _free(state[_LONG_AT])
            state[_LONG_AT] = 0


@jit
def sums(states: Any, count: Any, limbs: Any, counts: Any, flags: Any) -> None:
    """Write the sums to the rows of `limbs` (shape (count, LONG)), resolved, the first limb in units of 2**ORIGIN, with
    the numbers of their elements and their flags."""
    addresses = _at(states)
    for i in range(count):
        state = _at(addresses[i])
        counts[i], flags[i] = state[_COUNT], state[_META] & _FLAGS
        limbs[i] = 0
        if state[_LONG_AT] != 0:
            long = _at(state[_LONG_AT])
            for k in range(LONG):
                limbs[i, k] = long[k]
        base = (state[_META] >> 8) - 1
        if base >= 0:
            for k in range(WINDOW):
                deposit(limbs[i], state[_FIRST + k], 32 * (base + k))
        resolve(limbs[i])


@jit
def round_states(states: Any, count: Any, mean: Any, form: Any, values: Any, missing: Any) -> Any:
    """values[i] = the sum of each state, or its mean, rounded once; missing[i] where it has no elements. Returns
    the first state that has more elements than are divided by here, or no memory: from it on nothing is written; −1 if
    there is none."""
    addresses = _at(states)
    window = np.zeros(WINDOW, np.int64)
    whole = np.zeros((1, LONG), np.int64)
    counts, flags = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for i in range(count):
        state = _at(addresses[i])
        missing[i] = state[_COUNT] == 0
        if missing[i]:
            continue
        if state[_META] & NO_MEMORY or (mean and state[_COUNT] > MOST_DIVISOR):
            return i
        divisor = state[_COUNT] if mean else np.int64(1)
        if state[_LONG_AT] == 0:
            for k in range(WINDOW):
                window[k] = state[_FIRST + k]
            resolve(window)
            base = max((state[_META] >> 8) - 1, np.int64(0))
            values[i] = rounded_limbs(window, ORIGIN + 32 * base, state[_META] & _FLAGS, divisor, form)
        else:
            sums(states + 8 * i, 1, whole, counts, flags)
            values[i] = rounded_limbs(whole[0], ORIGIN, flags[0], divisor, form)
    return -1


@jit
def merge(data: Any, offsets: Any, targets: Any, states: Any) -> None:
    """Add the states of sums of values whose bytes are data[offsets[j]] … data[offsets[j + 1] − 1], which are sound, to
    the states at rows targets[j] of `states`."""
    addresses = _at(states)
    for j in range(offsets.size - 1):
        at, state = offsets[j], _at(addresses[targets[j]])
        state[_COUNT] += _word(data, at + 8, 8)
        state[_META] |= data[at + 6]
        first, stored = _word(data, at + 16, 2), _word(data, at + 18, 2)
        if stored == 0:
            continue
        base = (state[_META] >> 8) - 1
        if base < 0 and stored < WINDOW and first <= _LAST_BASE:
            base = first
            state[_META] |= (base + 1) << 8
        if base >= 0 and first >= base and first + stored < base + WINDOW:
            for k in range(stored):
                state[_FIRST + first - base + k] += _digit(data, at, k, stored)
        elif _long(state) != 0:
            long = _at(state[_LONG_AT])
            for k in range(stored):
                long[first + k] += _digit(data, at, k, stored)
        _carry(state)


@jit
def _digit(data: Any, at: Any, k: Any, stored: Any) -> Any:
    digit = _word(data, at + HEAD + 4 * k, 4)
    if k == stored - 1 and digit >> 31:
        digit -= DIGIT + 1
    return digit


@jit
def blobs(values: Any, validity: Any, count: Any, rows: Any, lengths: Any, places: Any) -> Any:
    """The rows, lengths and addresses of those strings at `values`, as DuckDB lays them out, that are no nulls; returns
    how many there are. A string of up to 12 bytes lies behind its length."""
    words, number = _at(values), 0
    for i in range(count):
        if _is_null(validity, i):
            continue
        length = words[2 * i] & DIGIT
        rows[number], lengths[number] = i, length
        places[number] = words[2 * i + 1] if length > 12 else values + 16 * i + 4
        number += 1
    return number

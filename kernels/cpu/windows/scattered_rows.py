"""Rows of a column, or of two, are added to states that another program holds (`scattered.py`).

`values` is the address of the elements and `validity` that of a bit for each, or 0; a row without an element is left
out. `states` is the address of the addresses of `count` states, one for each row.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from warpfold.kernels.cpu.windows.float64 import FIELDS64, add_float64
from warpfold.kernels.cpu.windows.levels import (
    DIGIT,
    NAN,
    NEG_INF,
    NOT_NEGATIVE_ZERO,
    POS_INF,
    TILE64,
    clamped_exponent,
)
from warpfold.kernels.cpu.windows.rows import unsigned_flags
from warpfold.kernels.cpu.windows.scattered import (
    CARRY,
    COUNT,
    LONG_AT,
    META,
    PRODUCTS,
    PRODUCTS_ORIGIN,
    VALUES,
    VALUES_ORIGIN,
    add,
    carry,
    is_null,
    long_of,
    words_at,
)
from warpfold.kernels.machine.jit import jit
from warpfold.kernels.machine.machine_code import read_only

WITHOUT_SIGN = 0x7FFFFFFFFFFFFFFF

_MANY = 512
"""Elements of one state for which the loops of single sums are faster."""

_INFINITY = np.int64(0x7FF0000000000000)
_NEGATIVE_ZERO = np.int64(-0x8000000000000000)
_FRACTION = np.int64(0x001FFFFFFFFFFFFF)
_VALUE_OF_ONE, _PRODUCT_OF_ONE = -VALUES_ORIGIN, -PRODUCTS_ORIGIN


@jit
def _have_one_state(addresses: Any, count: Any) -> Any:
    same = addresses[0] == addresses[count - 1]
    i = 1
    while same and i < count:
        same = addresses[i] == addresses[0]
        i += 1
    return same


@jit
def _add_all(bits: Any, state: Any, count: Any, keep: Any, squares: Any, shape: Any, origin: Any) -> Any:
    """Add all elements to the long limbs of one state by the loops of single sums; whether there is memory for them."""
    if long_of(state, shape) == 0:
        return False
    rest, other, spare = np.empty(TILE64), np.empty(TILE64), np.empty(TILE64, np.int64)
    fields = np.zeros(FIELDS64, np.uint64), np.zeros(FIELDS64, np.int16)
    limbs = carray(words_at(state[LONG_AT]), shape[1])
    flags = add_float64(read_only(carray(bits, count)), keep, squares, origin, limbs, rest, other, spare, fields)
    state[COUNT] += count
    state[META] |= flags if keep == -1 else unsigned_flags(flags)
    carry(state, shape)
    return True


@jit
def add_floats(values: Any, validity: Any, states: Any, count: Any, keep: Any) -> None:
    """Add float64 elements, or with `keep` WITHOUT_SIGN their magnitudes, to states of values; else it is −1."""
    bits, addresses = words_at(values), words_at(states)
    alone = validity == 0 and count >= _MANY and _have_one_state(addresses, count)
    if alone and _add_all(bits, words_at(addresses[0]), count, keep, False, VALUES, VALUES_ORIGIN):
        return
    for i in range(count):
        if is_null(validity, i):
            continue
        word, state = bits[i] & keep, words_at(addresses[i])
        state[COUNT] += 1
        if word == _NEGATIVE_ZERO:
            continue
        magnitude = word & WITHOUT_SIGN
        if magnitude >= _INFINITY:
            special = NAN if magnitude > _INFINITY else (NEG_INF if word < 0 else POS_INF)
            state[META] |= special | NOT_NEGATIVE_ZERO
            continue
        state[META] |= NOT_NEGATIVE_ZERO
        if magnitude != 0:
            significand, place = _parts(magnitude)
            add(state, -significand if word < 0 else significand, place, VALUES)
        if state[COUNT] & CARRY == 0:
            carry(state, VALUES)


@jit
def _parts(magnitude: Any) -> Any:
    """The significand, and the place of its last bit, of a finite positive float64."""
    field = magnitude >> 52
    significand = (magnitude & np.int64(0x000FFFFFFFFFFFFF)) | (np.int64(field > 0) << 52)
    return significand, clamped_exponent(field) - 1


@jit
def add_float_products(
    lefts: Any, left_validity: Any, rights: Any, right_validity: Any, states: Any, count: Any, offset: Any
) -> None:
    """Add the products of two columns of float64, or of one with itself, to the states of products that lie `offset`
    bytes behind `states`."""
    left, right, addresses = words_at(lefts), words_at(rights), words_at(states)
    squares = lefts == rights
    if squares and left_validity == 0 and count >= _MANY and _have_one_state(addresses, count):
        state = words_at(addresses[0] + offset)
        if _add_all(left, state, count, WITHOUT_SIGN, True, PRODUCTS, PRODUCTS_ORIGIN):
            return
    for i in range(count):
        if is_null(left_validity, i) or is_null(right_validity, i):
            continue
        x, y = left[i] & WITHOUT_SIGN, right[i] & WITHOUT_SIGN
        negative, state = (left[i] ^ right[i]) < 0, words_at(addresses[i] + offset)
        state[COUNT] += 1
        if x >= _INFINITY or y >= _INFINITY:
            special = NEG_INF if negative else POS_INF
            if x > _INFINITY or y > _INFINITY or x == 0 or y == 0:
                special = NAN
            state[META] |= special | NOT_NEGATIVE_ZERO
            continue
        if x == 0 or y == 0:
            state[META] |= 0 if negative else NOT_NEGATIVE_ZERO
            continue
        state[META] |= NOT_NEGATIVE_ZERO
        (factor, place), (other, further) = _parts(x), _parts(y)
        low, high = _product(factor, other)
        add(state, -low if negative else low, place + further, PRODUCTS)
        add(state, -high if negative else high, place + further + 53, PRODUCTS)
        if state[COUNT] & CARRY == 0:
            carry(state, PRODUCTS)


@jit
def _product(x: Any, y: Any) -> Any:
    """The product of y significands as low + high · 2**53."""
    # 27 bits below and 26 above: no sum of partial products takes more than 63 bits.
    below, above = x & np.int64(0x7FFFFFF), x >> 27
    low_below, low_above = y & np.int64(0x7FFFFFF), y >> 27
    middle = below * low_above + above * low_below
    low = below * low_below + ((middle & np.int64(0x3FFFFFF)) << 27)
    return low & _FRACTION, ((above * low_above) << 1) + (middle >> 26) + (low >> 53)


@jit
def add_integers(values: Any, validity: Any, states: Any, count: Any, unsigned: Any, magnitudes: Any) -> None:
    """Add int64, or uint64 if `unsigned`, or with `magnitudes` theirs, to states of values."""
    elements, addresses = words_at(values), words_at(states)
    for i in range(count):
        if is_null(validity, i):
            continue
        word, state = elements[i], words_at(addresses[i])
        state[COUNT] += 1
        state[META] |= NOT_NEGATIVE_ZERO
        if unsigned or magnitudes:
            word = word if unsigned or word >= 0 else -word  # the lowest int64 stays, and is read as 2**63
            add(state, word & DIGIT, np.int64(_VALUE_OF_ONE), VALUES)
            add(state, (word >> 32) & DIGIT, np.int64(_VALUE_OF_ONE + 32), VALUES)
        else:
            add(state, word, np.int64(_VALUE_OF_ONE), VALUES)
        if state[COUNT] & CARRY == 0:
            carry(state, VALUES)


@jit
def add_integer_products(
    lefts: Any, left_validity: Any, rights: Any, right_validity: Any, states: Any, count: Any, offset: Any,
    unsigned: Any,
) -> None:  # fmt: skip
    """Do what `add_float_products` does for int64, or for uint64 if `unsigned`."""
    left, right, addresses = words_at(lefts), words_at(rights), words_at(states)
    for i in range(count):
        if is_null(left_validity, i) or is_null(right_validity, i):
            continue
        x, y, state = left[i], right[i], words_at(addresses[i] + offset)
        state[COUNT] += 1
        state[META] |= NOT_NEGATIVE_ZERO
        negative = not unsigned and (x ^ y) < 0
        x, y = x if unsigned or x >= 0 else -x, y if unsigned or y >= 0 else -y
        for k in range(2):
            for m in range(2):
                part = ((x >> (32 * k)) & DIGIT) * ((y >> (32 * m)) & DIGIT)
                place = np.int64(_PRODUCT_OF_ONE + 32 * (k + m))
                low, high = part & DIGIT, (part >> 32) & DIGIT
                add(state, -low if negative else low, place, PRODUCTS)
                add(state, -high if negative else high, place + 32, PRODUCTS)
        if state[COUNT] & CARRY == 0:
            carry(state, PRODUCTS)

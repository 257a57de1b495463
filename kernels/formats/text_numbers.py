"""Numbers in text, compiled. A word is read from the memory that it lies in, up to its first byte that is of no number.

A decimal w · 10**q becomes the nearest float64. Where w ≤ 2**53 and |q| ≤ 22, both are floats and one operation rounds
(Clinger, "How to read floating point numbers accurately", PLDI 1990). Other decimals of up to 19 digits are rounded by
a product of 128 bits (Lemire, "Number parsing at a gigabyte per second", Software: Practice and Experience 51, 2021).
Where that does not tell, as for subnormal numbers, no number is read.
"""

from typing import Any

import numba
import numpy as np
from llvmlite import ir

from warpfold.kernels.machine.jit import intrinsic, jit

_types: Any = numba.types
_I128 = ir.IntType(128)

LEAST_POWER, MOST_POWER = -342, 308
"""Outside of these powers of ten a decimal of 19 digits is 0 or infinite."""

MOST_DIGITS = 19
"""Any decimal of so many digits is an integer below 2**64."""

MOST_INTEGER_DIGITS = 18
"""Any integer of so many digits is below 2**63."""

_TEN, _LARGE = np.uint64(10), np.uint64(1 << 53)
_SIGN = np.int64(-(1 << 63))
_TENS = np.array([float(10**power) for power in range(23)])


def _powers() -> Any:
    """The first 128 bits of 10**q for each q, as two words, the higher first, rounded as the article says: up from
    q = −27 to −1, and down elsewhere."""
    rows = []
    for power in range(LEAST_POWER, MOST_POWER + 1):
        if power >= 0:
            value = 10**power
            bits = (value << 128) >> value.bit_length()
        else:
            divisor = 10**-power
            bits = (1 << (divisor.bit_length() + 127)) // divisor + (power >= -27)
        rows.append((bits >> 64, bits & 0xFFFFFFFFFFFFFFFF))
    return np.array(rows, np.uint64)


_POWERS = _powers()


@intrinsic
def _product(context: Any, left: Any, right: Any) -> Any:
    """The higher and the lower word of the product of two words."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = builder.mul(builder.zext(arguments[0], _I128), builder.zext(arguments[1], _I128))
        word = arguments[0].type
        high = builder.trunc(builder.lshr(wide, ir.Constant(_I128, 64)), word)
        return context.make_tuple(builder, signature.return_type, (high, builder.trunc(wide, word)))

    return _types.UniTuple(_types.uint64, 2)(_types.uint64, _types.uint64), generate


@intrinsic
def _leading_zeros(context: Any, word: Any) -> Any:
    """How many zeros stand before the first bit of a word that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return _types.uint64(_types.uint64), generate


@intrinsic
def byte(context: Any, address: Any) -> Any:
    """A byte of memory."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(builder.inttoptr(arguments[0], ir.IntType(8).as_pointer()))

    return _types.uint8(_types.int64), generate


@intrinsic
def _bits(context: Any, value: Any) -> Any:
    """The bits of a float64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return _types.int64(_types.float64), generate


@jit
def nearest(digits: Any, power: Any) -> Any:
    """The bits of the float64 that is nearest to digits · 10**power, as an int64; −1 where this does not tell.

    `digits` is a uint64 other than 0. The names of the steps are those of the article by Lemire.
    """
    if power < LEAST_POWER or power > MOST_POWER:
        return np.int64(-1)
    zeros = _leading_zeros(digits)
    normal = digits << zeros
    at = power - LEAST_POWER
    high, low = _product(normal, _POWERS[at, 0])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):  # more bits may carry into those that count
        above, _ = _product(normal, _POWERS[at, 1])
        low += above
        if low < above:
            high += np.uint64(1)
        if low == np.uint64(0xFFFFFFFFFFFFFFFF) and (power < -27 or power > 55):
            return np.int64(-1)
    upper = high >> np.uint64(63)
    shift = upper + np.uint64(9)
    significand = high >> shift  # with a bit more than the float has
    exponent = ((217706 * power) >> 16) + 63 + np.int64(upper) - np.int64(zeros) + 1023
    if exponent <= 0:
        return np.int64(-1)
    exact = significand << shift == high
    if low <= np.uint64(1) and -4 <= power <= 23 and significand & np.uint64(3) == np.uint64(1) and exact:
        significand &= ~np.uint64(1)  # a tie goes to the even float
    significand = (significand + (significand & np.uint64(1))) >> np.uint64(1)
    if significand >> np.uint64(53):
        significand >>= np.uint64(1)
        exponent += 1
    if exponent >= 2047:
        return np.int64(-1)
    return (exponent << 52) | np.int64(significand & np.uint64((1 << 52) - 1))


@jit
def _digit(text: Any, at: Any) -> Any:
    """The digit at `at`; more than 9 where none is there."""
    return np.uint64(np.uint8(byte(text + at) - np.uint8(48)))


@jit
def _more_digits(text: Any, at: Any, digits: Any) -> Any:
    """Where the digits end that begin at `at`, and the number that they make behind `digits`, as far as 64 bits hold
    it."""
    while _digit(text, at) < 10:
        digits = digits * _TEN + _digit(text, at)
        at += 1
    return at, digits


@jit
def integer(text: Any, at: Any) -> Any:
    """Where the reading of a word ended that begins at `at`, whether an integer was read, and the integer."""
    negative = byte(text + at) == 45
    at += np.int64(negative)
    first = at
    at, digits = _more_digits(text, at, np.uint64(0))
    value = np.int64(digits)
    plain = 0 < at - first <= MOST_INTEGER_DIGITS and not (negative and digits == 0)
    return at, plain, -value if negative else value


@jit
def decimal(text: Any, at: Any, mark: Any) -> Any:
    """Where the reading of a word ended that begins at `at`, whether a decimal number was read, and the bits of its
    nearest float64. `mark` is the byte before a fraction."""
    negative = byte(text + at) == 45
    at += np.int64(negative)
    first = at
    at, digits = _more_digits(text, at, np.uint64(0))
    count, power = at - first, 0
    plain = count > 0
    if byte(text + at) == mark:
        at += 1
        point = at
        at, digits = _more_digits(text, at, digits)
        power = point - at
        count -= power
        plain = plain and power < 0
    if count > MOST_DIGITS:  # zeros before other digits do not count
        zero = first
        while byte(text + zero) == 48 or byte(text + zero) == mark:
            count -= np.int64(byte(text + zero) == 48)
            zero += 1
        plain = plain and 0 < count <= MOST_DIGITS
    if plain and (byte(text + at) == 101 or byte(text + at) == 69):
        at += 1
        below = byte(text + at) == 45
        at += np.int64(below or byte(text + at) == 43)
        start: Any = at
        exponent: Any = 0
        while _digit(text, at) < 10 and at - start < 4:
            exponent = exponent * 10 + np.int64(_digit(text, at))
            at += 1
        plain = at > start
        power += -exponent if below else exponent
    if digits == 0:
        bits = np.int64(0)
    elif digits <= _LARGE and -22 <= power <= 22:
        value = np.float64(digits)
        bits = _bits(value / _TENS[-power] if power < 0 else value * _TENS[power])
    else:
        bits = nearest(digits, power) if plain else np.int64(-1)
        plain = bits >= 0
    return at, plain, bits | _SIGN if negative else bits

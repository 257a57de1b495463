"""The element formulas of `kernels.generate.plan` once more, one element at a time in Python numbers.

Python's float operations are those of IEEE 754 float64, each rounded by itself: what every backend must give.
"""

import math
import struct
from collections.abc import Callable, Mapping
from fractions import Fraction

from warpfold.kernels.dtypes import DType
from warpfold.kernels.generate import Formula, Plan
from warpfold.kernels.ops import reference

Words = tuple[int, int, int, int]
LN2_HIGH = float.fromhex("0x1.62e42feep-1")
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")


def philox4x32(counter: Words, key: tuple[int, int], rounds: int = 10) -> Words:
    """Philox4x32 as in Salmon et al. 2011."""
    c, k = list(counter), list(key)
    for _ in range(rounds):
        high0, low0 = divmod(0xD2511F53 * c[0], 1 << 32)
        high1, low1 = divmod(0xCD9E8D57 * c[2], 1 << 32)
        c = [high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0]
        k = [(k[0] + 0x9E3779B9) % (1 << 32), (k[1] + 0xBB67AE85) % (1 << 32)]
    return c[0], c[1], c[2], c[3]


def words(seed: int, index: int) -> Words:
    return philox4x32((index % (1 << 32), index >> 32, 0, 0), (seed % (1 << 32), seed >> 32))


def unit(high: int, low: int) -> float:
    return float((high << 32 | low) >> 11) * 2.0**-53


def log(v: float) -> float:
    bits: int = struct.unpack("<q", struct.pack("<d", v))[0]
    m: float = struct.unpack("<d", struct.pack("<q", bits & 0xFFFFFFFFFFFFF | 0x3FF0000000000000))[0]
    e = float((bits >> 52) - 1023)
    if m >= math.sqrt(2.0):
        m, e = m * 0.5, e + 1.0
    f = m - 1.0
    s = f / (2.0 + f)
    t = s * s
    p = 1.0 / 21
    for k in range(19, 0, -2):
        p = 1.0 / k + t * p
    return e * math.log(2.0) + (s + s) * p


def cos_turn(u: float) -> float:
    x = 2.0 * math.pi * (abs(u - 0.5) - 0.25)
    t = x * x
    p = 1.0 / math.factorial(21)
    for k in range(19, 2, -2):
        p = (-1.0) ** (k // 2) / math.factorial(k) + t * p
    return x + x * (t * p)


def exp(y: float) -> float:
    k = (y * (1.0 / math.log(2.0)) + 1.5 * 2.0**52) - 1.5 * 2.0**52
    r = (y - k * LN2_HIGH) - k * LN2_LOW
    p = 1.0 / math.factorial(14)
    for n in range(13, -1, -1):
        p = 1.0 / math.factorial(n) + r * p
    half = int(k) >> 1
    return math.ldexp(math.ldexp(p, half), int(k) - half)


def gauss(seed: int, index: int) -> float:
    w0, w1, w2, w3 = words(seed, index)
    v = float(((w2 << 32 | w3) >> 11) + 1) * 2.0**-53
    return math.sqrt(-2.0 * log(v)) * cos_turn(unit(w0, w1))


def uniform(plan: Plan, index: int) -> float:
    w0, w1, _, _ = words(plan.seed, index)
    return min(plan.a + plan.b * unit(w0, w1), plan.c)


def mixed(plan: Plan, index: int) -> float:
    w0, w1, _, w3 = words(plan.seed, index)
    return 1e6 + plan.a * unit(w0, w1) if w3 & 1 else 1e-3 + plan.b * unit(w0, w1)


def ill_conditioned(plan: Plan, index: int) -> float:
    minus = plan.third <= index < 2 * plan.third
    w0, w1, _, _ = words(plan.seed, index - plan.third if minus else index)
    x = 1.0 + unit(w0, w1)
    if index < plan.third:
        return plan.a * x
    return -(plan.a * x) if minus else x


REAL: Mapping[Formula, Callable[[Plan, int], float]] = {
    Formula.CONSTANT: lambda plan, index: plan.a,
    Formula.ARANGE: lambda plan, index: float(index),
    Formula.MODULO: lambda plan, index: (index % plan.period) * plan.a,
    Formula.UNIFORM: uniform,
    Formula.NORMAL: lambda plan, index: plan.a + plan.b * gauss(plan.seed, index),
    Formula.LOGNORMAL: lambda plan, index: exp(plan.a + plan.b * gauss(plan.seed, index)),
    Formula.MIXED: mixed,
    Formula.PATHOLOGICAL: lambda plan, index: (1e8, 1.0, -1e8)[index % 3],
    Formula.ILL_CONDITIONED: ill_conditioned,
}


def whole(plan: Plan, index: int) -> int:
    """The formula of an element that is not a float, before it is cast."""
    w0, w1, _, _ = words(plan.seed, index)
    span = plan.span or 1 << 64
    return {
        Formula.CONSTANT: plan.low,
        Formula.ARANGE: index,
        Formula.MODULO: index % plan.period * plan.low,
        Formula.UNIFORM: plan.low + ((w0 << 32 | w1) * span >> 64),
        Formula.PATHOLOGICAL: (10**8, 1, -(10**8))[index % 3],
    }[plan.formula]


def bits(plan: Plan, index: int) -> int:
    """The pattern of element `index`."""
    dtype: DType = plan.dtype
    if not dtype.is_float:
        return whole(plan, index) % (1 << 8 * dtype.itemsize)
    if plan.formula is Formula.ALL_EXPONENTS:
        w0, w1, w2, w3 = words(plan.seed, index)
        fraction = dtype.precision - 1
        significand = (w2 << 32 | w3) % (1 << fraction)
        return w1 >> 31 << 8 * dtype.itemsize - 1 | (w0 * plan.span >> 32) << fraction | significand
    value = REAL[plan.formula](plan, index)
    rounded = reference.nearest(Fraction(value), dtype)
    return reference.pattern(math.copysign(rounded, value), dtype)

"""Plans: the numbers of a source's formula, which the host checks once for every backend.

The formulas (i is the element's index, w0…w3 its Philox words with stream 0, all arithmetic in float64 unless said):

    u = ((w0·2³² + w1) >> 11) · 2⁻⁵³ in [0, 1)        v = (((w2·2³² + w3) >> 11) + 1) · 2⁻⁵³ in (0, 1]
    z = sqrt(−2 ln v) · cos(2π u)                      (Box and Muller 1958)

| formula         | float element, rounded once to the dtype        | other element (mod 2⁶⁴, then cast) |
|-----------------|-------------------------------------------------|------------------------------------|
| CONSTANT        | a                                               | low                                |
| ARANGE          | i                                               | i                                  |
| MODULO          | (i mod period) · a                              | (i mod period) · low               |
| UNIFORM         | min(a + b·u, c)                                 | low + ⌊(w0·2³² + w1) · span / 2⁶⁴⌋  |
| NORMAL          | a + b·z                                         |                                    |
| LOGNORMAL       | exp(a + b·z)                                    |                                    |
| MIXED           | bit 0 of w3 ? 1e6 + a·u : 1e-3 + b·u            |                                    |
| PATHOLOGICAL    | (1e8, 1, −1e8)[i mod 3]                         | the same                           |
| ALL_EXPONENTS   | bits: sign w1 >> 31, exponent ⌊w0·span / 2³²⌋,   |                                    |
|                 | significand the low bits of w2·2³² + w3         |                                    |
| ILL_CONDITIONED | i < third: a·(1 + u(i));                        |                                    |
|                 | i < 2·third: −a·(1 + u(i − third)); else 1 + u  |                                    |

A span of 0 stands for 2⁶⁴ (the word itself). No operation is contracted to a fused multiply-add.
"""

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Protocol

from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.generate.distributions import Distribution, distribution_named
from warpfold.kernels.lowering.conversion import narrowed_number


class Generated(Protocol):
    """An array of `count` elements that a distribution, its parameters and a seed name: `kernels.source` has it."""

    @property
    def distribution(self) -> str: ...

    @property
    def count(self) -> int: ...

    @property
    def seed(self) -> int: ...

    @property
    def dtype(self) -> DType: ...

    @property
    def parameters(self) -> Mapping[str, float]: ...


MAX_COUNT = 1 << 53
"""Indices up to here are exact in float64."""

MAX_NORMAL = 8.6
"""No |z| is larger: sqrt(−2 ln 2⁻⁵³) = 8.57…"""


class Formula(IntEnum):
    """The element formula; the numbers are shared with the CUDA generator."""

    CONSTANT = 0
    ARANGE = 1
    MODULO = 2
    UNIFORM = 3
    NORMAL = 4
    LOGNORMAL = 5
    MIXED = 6
    PATHOLOGICAL = 7
    ALL_EXPONENTS = 8
    ILL_CONDITIONED = 9


@dataclass(frozen=True, slots=True)
class Plan:
    """The formula of a source and its numbers: floats a, b, c; integers low (signed), span, period, third."""

    formula: Formula
    dtype: DType
    seed: int
    a: float = 0.0
    b: float = 0.0
    c: float = 0.0
    low: int = 0
    span: int = 0
    period: int = 1
    third: int = 0


def plan(source: Generated) -> Plan:
    """The plan of `source`.

    Raises InvalidInput naming the field: an unknown distribution, a dtype it cannot fill, an unknown, NaN, infinite or
    out-of-range parameter, a seed outside 0 … 2⁶⁴−1, a negative or too large n, or elements that would overflow the
    dtype (every generated element is finite).
    """
    row = distribution_named(source.distribution)
    dtype = source.dtype
    if dtype.name not in row.dtypes:
        raise InvalidInput(
            f"distribution {row.name!r} cannot fill {dtype.name}; it can fill {', '.join(row.dtypes)}",
            "source.distribution",
        )
    if not 0 <= source.seed < 1 << 64:
        raise InvalidInput(f"the seed must be in 0 … 2**64 − 1, not {source.seed}", "source.seed")
    if not 0 <= source.count <= MAX_COUNT:
        raise InvalidInput(f"n must be in 0 … 2**53, not {source.count}", "source.n")
    numbers = _Numbers(row, dtype, source.parameters)
    return _PLANNERS[row.name](source, numbers)


class _Numbers:
    """The parameters of one source, defaults filled in, each checked to be finite."""

    def __init__(self, row: Distribution, dtype: DType, values: Mapping[str, float]) -> None:
        self.dtype = dtype
        self._values = {parameter.name: parameter.default for parameter in row.parameters}
        for name, value in values.items():
            if name not in self._values:
                known = ", ".join(self._values) or "none"
                raise InvalidInput(f"{row.name} has no parameter {name!r}; known: {known}", f"source.parameters.{name}")
            if not isinstance(value, int) and not math.isfinite(value):
                raise InvalidInput(f"{name} must be finite, not {value}", f"source.parameters.{name}")
            self._values[name] = value

    def real(self, name: str, least: float = -math.inf, most: float = math.inf) -> float:
        value = self._values[name]
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not least <= number <= most or math.isinf(number):
            raise InvalidInput(f"{name} must be in {least:g} … {most:g}, not {value}", f"source.parameters.{name}")
        return number

    def whole(self, name: str, least: int, most: int) -> int:
        value = self._values[name]
        if value != int(value):
            raise InvalidInput(f"{name} must be a whole number for {self.dtype.name}", f"source.parameters.{name}")
        if not least <= int(value) <= most:
            raise InvalidInput(f"{name} must be in {least} … {most}, not {value}", f"source.parameters.{name}")
        return int(value)


def largest(dtype: DType) -> float:
    """The largest finite value of a float dtype."""
    return math.ldexp(2.0 - math.ldexp(1.0, 1 - dtype.precision), dtype.max_exponent - 1)


def _constant(source: Generated, numbers: _Numbers) -> Plan:
    dtype = source.dtype
    if dtype.is_float:
        top = largest(dtype)
        return Plan(Formula.CONSTANT, dtype, source.seed, a=narrowed_number(numbers.real("value", -top, top), dtype))
    return Plan(Formula.CONSTANT, dtype, source.seed, low=numbers.whole("value", *dtype.bounds))


def _zeros(source: Generated, numbers: _Numbers) -> Plan:
    return Plan(Formula.CONSTANT, source.dtype, source.seed)


def _arange(source: Generated, numbers: _Numbers) -> Plan:
    dtype = source.dtype
    top = largest(dtype) if dtype.is_float else dtype.bounds[1]
    if source.count - 1 > top:
        raise InvalidInput(
            f"arange of {source.count} elements exceeds {dtype.name}, whose largest is {top}", "source.n"
        )
    return Plan(Formula.ARANGE, dtype, source.seed)


def _modulo(source: Generated, numbers: _Numbers) -> Plan:
    dtype = source.dtype
    period = numbers.whole("m", 1, MAX_COUNT)
    if dtype.is_float:
        if period > 1 << dtype.precision:  # every residue is exact, so one rounding of the product is the dtype's own
            limit = 1 << dtype.precision
            raise InvalidInput(f"m must be at most {limit} for {dtype.name}, not {period}", "source.parameters.m")
        bound = largest(dtype) / max(1, period - 1) * (1 - 2.0**-6)  # room for the rounding of scale and product
        scale = narrowed_number(numbers.real("scale", -bound, bound), dtype)
        return Plan(Formula.MODULO, dtype, source.seed, a=scale, period=period)
    low, high = dtype.bounds
    step = max(1, period - 1)
    # ceil of a negative quotient, written with floors, so that step · low' ≥ low
    whole = numbers.whole("scale", -(-low // step), high // step)
    return Plan(Formula.MODULO, dtype, source.seed, low=whole, period=period)


def _uniform(source: Generated, numbers: _Numbers) -> Plan:
    dtype = source.dtype
    if not dtype.is_float:
        least = numbers.whole("low", *dtype.bounds)
        most = numbers.whole("high", least, dtype.bounds[1])
        return Plan(Formula.UNIFORM, dtype, source.seed, low=least, span=(most - least + 1) % (1 << 64))
    top = largest(dtype)
    low = numbers.real("low", -top, top)
    high = numbers.real("high", low, top)
    if math.isinf(high - low):
        raise InvalidInput("high − low must be finite", "source.parameters.high")
    return Plan(Formula.UNIFORM, dtype, source.seed, a=low, b=high - low, c=high)


def _normal(source: Generated, numbers: _Numbers) -> Plan:
    top = largest(source.dtype) * (1 - 2.0**-6)
    mean = numbers.real("mean", -top, top)
    std = numbers.real("std", 0.0, (top - abs(mean)) / MAX_NORMAL)
    return Plan(Formula.NORMAL, source.dtype, source.seed, a=mean, b=std)


def _lognormal(source: Generated, numbers: _Numbers) -> Plan:
    top = math.log(largest(source.dtype)) - 2.0**-6
    mean = numbers.real("mean", -1000.0, top)
    sigma = numbers.real("sigma", 0.0, (top - mean) / MAX_NORMAL)
    return Plan(Formula.LOGNORMAL, source.dtype, source.seed, a=mean, b=sigma)


def _mixed(source: Generated, numbers: _Numbers) -> Plan:
    return Plan(Formula.MIXED, source.dtype, source.seed, a=1e8 - 1e6, b=1e-1 - 1e-3)


def _pathological(source: Generated, numbers: _Numbers) -> Plan:
    return Plan(Formula.PATHOLOGICAL, source.dtype, source.seed)


def _all_exponents(source: Generated, numbers: _Numbers) -> Plan:
    # Biased exponents 0 (subnormals) … 2·bias, and max_exponent = bias + 1.
    return Plan(Formula.ALL_EXPONENTS, source.dtype, source.seed, span=2 * source.dtype.max_exponent - 1)


def _ill_conditioned(source: Generated, numbers: _Numbers) -> Plan:
    third = source.count // 3
    # Σ|x| / |Σx| = (2·third·a + rest) / rest in the mean, whatever the common mean of 1 + u.
    rest = source.count - 2 * third
    # With these, neither an element overflows nor (condition − 1) · rest.
    most = min(largest(source.dtype) / 8, sys.float_info.max / max(1, rest))
    condition = numbers.real("condition", 1.0, most)
    scale = (condition - 1.0) * rest / (2 * third) if third else 0.0
    return Plan(Formula.ILL_CONDITIONED, source.dtype, source.seed, a=scale, third=third)


_PLANNERS: Mapping[str, Callable[[Generated, _Numbers], Plan]] = MappingProxyType(
    {
        "constant": _constant,
        "zeros": _zeros,
        "arange": _arange,
        "modulo": _modulo,
        "uniform": _uniform,
        "normal": _normal,
        "lognormal": _lognormal,
        "mixed": _mixed,
        "pathological": _pathological,
        "all_exponents": _all_exponents,
        "ill_conditioned": _ill_conditioned,
    }
)

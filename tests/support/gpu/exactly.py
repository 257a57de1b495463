"""The right value of an op, by exact arithmetic on Python numbers, and the error that a strategy may have."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from warpfold.kernels.cuda.strategies.registry import own_strategies
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.ops import Finish, Op, Terms, Value
from warpfold.kernels.strategy import EXACT

Number = int | float


@dataclass(frozen=True, slots=True)
class Expected:
    """The true value as a fraction, or an IEEE special or selected element in `value`; Σ|term| in `size`."""

    value: Value | None
    exact: Fraction = Fraction(0)
    size: Fraction = Fraction(0)


def expected(op: Op, elements: Sequence[Number], *, omit_nan: bool = False) -> Expected | None:
    """None where the op of these elements is undefined."""
    kept = [i for i, x in enumerate(elements) if not (omit_nan and math.isnan(x))]
    if not kept:
        return None
    values = [elements[i] for i in kept]
    nans = [i for i in kept if math.isnan(elements[i])]
    if op.name in ("argmin", "argmax"):
        best = min(values) if op.name == "argmin" else max(values)
        return Expected(nans[0] if nans else kept[values.index(best)])
    if op.name in _TESTS:
        return Expected(_TESTS[op.name](values))
    if op.name in _SELECTIONS:
        return Expected(math.nan if nans else _SELECTIONS[op.name](values))
    assert op.adds or op.name == "prod", f"no value of {op.name} in tests/support/gpu/exactly.py"
    if all(map(math.isfinite, values)):
        return _computed(op, values)
    return Expected(math.nan if nans else _special(op, values))


def _computed(op: Op, values: Sequence[Number]) -> Expected:
    if not op.adds:
        product = Fraction(math.prod(map(Fraction, values)))
        return Expected(None, product, abs(product))
    terms = [_term(op, Fraction(x)) for x in values]
    divisor = len(values) if op.finish is Finish.MEAN else 1
    return Expected(None, sum(terms, Fraction(0)) / divisor, sum(map(abs, terms), Fraction(0)) / divisor)


def _term(op: Op, x: Fraction) -> Fraction:
    if op.terms is Terms.PRODUCTS:
        return x * x
    return abs(x) if op.magnitudes else x


def _special(op: Op, values: Sequence[Number]) -> float:
    if not op.adds:
        return float(math.prod(math.copysign(1.0, x) if x and math.isfinite(x) else x for x in values))
    signed = op.terms is Terms.VALUES and not op.magnitudes
    return float(sum(x for x in values if math.isinf(x))) if signed else math.inf


def _in_order(x: Number) -> tuple[Number, float]:
    return x, math.copysign(1.0, x)  # −0 is below +0


_TESTS: Mapping[str, Callable[[Sequence[Number]], Value]] = {
    "count_nonzero": lambda values: sum(x != 0 for x in values),
    "any": lambda values: any(x != 0 for x in values),
    "all": lambda values: all(x != 0 for x in values),
}
_SELECTIONS: Mapping[str, Callable[[Sequence[Number]], Value]] = {
    "min": lambda values: min(values, key=_in_order),
    "max": lambda values: max(values, key=_in_order),
    "norm_inf": lambda values: max(map(abs, values)),
}


def unit_of_accumulator(op: Op, dtype: DType, strategy: str) -> Fraction:
    """u of the precision in which a strategy adds: ours as their catalogue texts say, others in that of the dtype."""
    if strategy not in own_strategies():
        return Fraction(1, 2**dtype.precision)
    squares = op.terms is Terms.PRODUCTS and dtype.name in ("bfloat16", "float32")
    wide = dtype.name == "float64" or squares or strategy == "float64_accumulator"
    return Fraction(1, 2**53) if wide else Fraction(1, 2**24)


def tolerance(op: Op, dtype: DType, strategy: str, count: int, want: Expected) -> Fraction:
    """The largest error of a real sum or product that the strategy's catalogue text allows, before the last rounding
    and in the terms of the op (for norm2: of the sum of squares)."""
    if strategy == EXACT:
        return Fraction(0)
    u = unit_of_accumulator(op, dtype, strategy)
    if strategy == "compensated":
        return u * abs(want.exact) + _gamma(count, u) ** 2 * want.size
    steps = math.ceil(math.log2(count)) + 22 if strategy == "pairwise" and op.adds else count
    return _gamma(steps, u) * want.size


def _gamma(n: int, u: Fraction) -> Fraction:
    return n * u / (1 - n * u)


def agrees(got: Value, want: Expected, op: Op, dtype: DType, *, strategy: str, count: int) -> bool:
    """Whether `got` is the right value, of the right type, within what the strategy may lose."""
    if want.value is not None:
        return _same(got, want.value)
    if not dtype.is_float and op.finish is Finish.ITSELF:
        return type(got) is int and got == want.exact
    if not isinstance(got, float) or math.isnan(got):
        return False
    result = dtype if dtype.is_float else DTYPES["float64"]
    allowed = tolerance(op, dtype, strategy, count, want) if dtype.is_float else Fraction(0)
    unit, least = Fraction(1, 2**result.precision), Fraction(2) ** result.min_exponent
    reach = abs(want.exact) + allowed
    root = op.finish is Finish.ROOT
    if math.isinf(got):  # right where the last rounding overflows
        limit = Fraction(2) ** result.max_exponent * (1 - unit / 2)
        return reach >= (limit**2 if root else limit)
    if root:  # compare squares: (r (1 + u) + least)² is within 3 u r² + …
        return abs(Fraction(got) ** 2 - want.exact) <= allowed + 3 * unit * reach + 3 * least * (1 + reach)
    return abs(Fraction(got) - want.exact) <= allowed + unit * reach + least


def _same(got: Value, want: Value) -> bool:
    if type(got) is not type(want):
        return False
    if isinstance(want, float) and isinstance(got, float):
        return math.isnan(got) if math.isnan(want) else got == want and math.copysign(1, got) == math.copysign(1, want)
    return got == want

"""Every reduction by its definition: slow, in exact fractions, and with no arithmetic of the code that it judges.

Elements come as patterns of bits (Python integers), as conformance vectors hold them. This module uses neither NumPy
nor an operation on floats nor `kernels.exact`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from warpfold.kernels.dtypes import DTYPES, DType, Kind
from warpfold.kernels.ops import INTEGER, Finish, NanPolicy, Op, Terms, Value
from warpfold.kernels.ops.deviations import DEFINITIONS, Pairs
from warpfold.kernels.ops.operands import result_dtype


@dataclass(frozen=True, slots=True)
class Element:
    """One element: its exact value, or which special it is. A zero has a sign too."""

    value: Fraction
    negative: bool
    nan: bool = False
    infinite: bool = False


@dataclass(frozen=True, slots=True)
class SummedTerms:
    """An exact sum: the sum of the finite terms, and which special terms there were besides."""

    finite: Fraction
    count: int
    nan: bool
    positive_infinity: bool
    negative_infinity: bool
    all_negative_zero: bool


@lru_cache(1 << 14)  # the same elements are asked for by op after op
def element(bits: int, dtype: DType) -> Element:
    """The element whose pattern is `bits` (IEEE 754-2019, 3.4; two's complement; 0 or 1 for bool)."""
    if not dtype.is_float:
        low, high = dtype.bounds
        value = bits - (1 << 8 * dtype.itemsize) if bits > high else bits
        assert low <= value <= high, f"{bits:#x} is no {dtype.name}"
        return Element(Fraction(value), value < 0)
    width = 8 * dtype.itemsize
    fraction_bits = dtype.precision - 1
    negative = bits >> (width - 1) == 1
    exponent = bits >> fraction_bits & (1 << (width - dtype.precision)) - 1
    fraction = bits & (1 << fraction_bits) - 1
    if exponent == (1 << (width - dtype.precision)) - 1:
        return Element(Fraction(0), negative, nan=fraction != 0, infinite=fraction == 0)
    significand = fraction if exponent == 0 else fraction + (1 << fraction_bits)
    power = max(exponent, 1) - 1 + dtype.min_exponent
    signed = -significand if negative else significand
    return Element(Fraction(signed << power) if power >= 0 else Fraction(signed, 1 << -power), negative)


def product(a: Element, b: Element) -> Element:
    """a·b, exactly, with the specials of IEEE 754."""
    negative = a.negative != b.negative
    if a.nan or b.nan or (a.infinite and is_zero(b)) or (b.infinite and is_zero(a)):
        return Element(Fraction(0), False, nan=True)
    if a.infinite or b.infinite:
        return Element(Fraction(0), negative, infinite=True)
    return Element(a.value * b.value, negative)


def is_zero(x: Element) -> bool:
    """Whether x is 0 or −0."""
    return x.value == 0 and not x.nan and not x.infinite


def magnitude(x: Element) -> Element:
    """|x|."""
    return Element(abs(x.value), False, x.nan, x.infinite)


def total(terms: Sequence[Element], dtype: DType) -> SummedTerms:
    """The exact sum of `terms`; only floats have a −0."""
    return SummedTerms(
        finite=exact_sum([term.value for term in terms]),
        count=len(terms),
        nan=any(term.nan for term in terms),
        positive_infinity=any(term.infinite and not term.negative for term in terms),
        negative_infinity=any(term.infinite and term.negative for term in terms),
        all_negative_zero=dtype.is_float and all(is_zero(term) and term.negative for term in terms),
    )


def exact_sum(values: Sequence[Fraction]) -> Fraction:
    """Σ values, whose denominators are powers of two."""
    unit = max((value.denominator for value in values), default=1)
    return Fraction(sum(value.numerator * (unit // value.denominator) for value in values), unit)


def terms_of(op: Op, elements: Sequence[Element]) -> list[Element]:
    """The terms that `op` adds up."""
    if op.terms is Terms.PRODUCTS:
        return [product(x, x) for x in elements]
    return [magnitude(x) for x in elements] if op.magnitudes else list(elements)


def special(summed: SummedTerms) -> float | None:
    """A sum that is not finite, else None."""
    if summed.nan or (summed.positive_infinity and summed.negative_infinity):
        return math.nan
    if summed.positive_infinity:
        return math.inf
    return -math.inf if summed.negative_infinity else None


def nearest(x: Fraction, dtype: DType) -> float:
    """x rounded to `dtype`, to nearest, ties to even, as Fraction rounds to an integer."""
    if x == 0:
        return 0.0
    quantum = _quantum(abs(x), dtype)
    rounded = round(abs(x) / quantum) * quantum
    result = math.inf if rounded >= Fraction(2) ** dtype.max_exponent else float(rounded)
    return result if x > 0 else -result


def nearest_root(x: Fraction, dtype: DType, degree: int = 2) -> float:
    """The root of x of a degree, rounded to `dtype`: the integer n for which the root lies between (n − ½) and (n + ½)
    quanta. It has the sign of x."""
    if x <= 0:
        return -nearest_root(-x, dtype, degree) if x else 0.0
    # 2**(degree · k) ≤ x < 2**(degree · (k + 1)), so that the root has the exponent k.
    quantum = Fraction(2) ** max(_floor_log2(x) // degree + 1 - dtype.precision, dtype.min_exponent)
    # (n + ½)**degree ≤ x in quanta, where both sides are multiplied by 2**degree.
    doubled = math.floor(x / (quantum / 2) ** degree)
    n, above = 0, 2 ** (dtype.precision + 1)
    while n < above:
        middle = (n + above) // 2
        edge = (2 * middle + 1) ** degree
        exactly = edge == doubled and edge * (quantum / 2) ** degree == x
        if edge < doubled or (edge == doubled and not exactly) or (exactly and middle % 2):
            n = middle + 1
        else:
            above = middle
    rounded = n * quantum
    return math.inf if rounded >= Fraction(2) ** dtype.max_exponent else float(rounded)


def _floor_log2(x: Fraction) -> int:
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if Fraction(2) ** guess <= x else guess - 1


def _quantum(x: Fraction, dtype: DType) -> Fraction:
    """The spacing of `dtype` at x > 0."""
    return Fraction(2) ** max(_floor_log2(x) + 1 - dtype.precision, dtype.min_exponent)


@dataclass(frozen=True, slots=True)
class Undefined:
    """The op has no value for these elements; `reason` says why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A value of the op's result dtype over `count` elements."""

    value: Value
    count: int


def reduce(op: Op, dtype: DType, bits: Sequence[int], nan_policy: NanPolicy, *, ddof: int = 0) -> Answer | Undefined:
    """`op`, an op of one source, over the elements whose patterns are `bits`."""
    elements = list(enumerate(element(pattern, dtype) for pattern in bits))
    if nan_policy is NanPolicy.RAISE and any(x.nan for _, x in elements):
        return Undefined("a NaN")
    if nan_policy is NanPolicy.OMIT:
        elements = [(index, x) for index, x in elements if not x.nan]
    if len(elements) < (op.least_count(ddof) if op.picks else 1):
        if op.empty is None:
            return Undefined("too few elements")
        return Answer(float(op.empty) if op.result_dtype(dtype) in _FLOATS else op.empty, 0)
    if op.ddof or op.terms is Terms.TOTALS:
        return _of_deviations(op, dtype, [x for _, x in elements], ddof)
    if op.name == "prod" and dtype.is_float:
        return Undefined("rounded at every step")
    return Answer(_value(op, dtype, elements), len(elements))


Patterns = tuple[DType, Sequence[int]]
"""Elements with their dtype."""


def of_pairs(op: Op, first: Patterns, second: Patterns, nan_policy: NanPolicy, *, ddof: int = 0) -> Answer | Undefined:
    """`op`, an op of two sources, over those of one length."""
    (left, bits), (right, others) = first, second
    pairs = [(element(x, left), element(y, right)) for x, y in zip(bits, others, strict=True)]
    if nan_policy is NanPolicy.RAISE and any(x.nan or y.nan for x, y in pairs):
        return Undefined("a NaN")
    if nan_policy is NanPolicy.OMIT:
        pairs = [(x, y) for x, y in pairs if not (x.nan or y.nan)]
    if op.terms is Terms.TOTALS:
        return _of_totals(op, pairs, ddof, DTYPES[result_dtype(op, left, right)])
    summed = dot_total(pairs, left)
    if not left.is_float:
        return Answer(int(summed.finite), summed.count)
    value = special(summed)
    if value is None and summed.count and summed.all_negative_zero:
        value = -0.0
    to = DTYPES[result_dtype(op, left, right)]
    return Answer(nearest(summed.finite, to) if value is None else value, summed.count)


def dot_total(pairs: Sequence[tuple[Element, Element]], dtype: DType) -> SummedTerms:
    """The exact sum of the products of `pairs`; only floats have a −0."""
    return total([product(x, y) for x, y in pairs], dtype)


def _of_deviations(op: Op, dtype: DType, present: Sequence[Element], ddof: int) -> Answer | Undefined:
    if op.terms is Terms.TOTALS:
        return _of_totals(op, [(x, x) for x in present], ddof, DTYPES[op.result_dtype(dtype)])
    return _spread(op, dtype, present, ddof)


def _spread(op: Op, dtype: DType, present: Sequence[Element], ddof: int) -> Answer | Undefined:
    """Variance, or its root, by the deviations from the mean: Σ (n x − Σ x)² / (n² (n − ddof))."""
    n = len(present)
    if n <= ddof:
        return Undefined("n − ddof is not positive")
    if any(x.nan or x.infinite for x in present):
        return Answer(math.nan, n)
    # Whole numbers of 2**−1074.
    units = [x.value.numerator * ((1 << 1074) // x.value.denominator) for x in present]
    whole = sum(units)
    exact = Fraction(sum((n * unit - whole) ** 2 for unit in units), n * n * (n - ddof) << 2148)
    to = DTYPES[op.result_dtype(dtype)]
    return Answer(nearest(exact, to) if op.finish is Finish.VARIANCE else nearest_root(exact, to), n)


def _of_totals(op: Op, pairs: Sequence[tuple[Element, Element]], ddof: int, to: DType) -> Answer | Undefined:
    """An op of several totals of x or, of two sources, of pairs of x and y: by its definition in
    `kernels.ops.deviations`."""
    n = len(pairs)
    if n < op.least_count(ddof):
        return Undefined("too few elements")
    used = [x for pair in pairs for x in pair]
    if any(x.nan or x.infinite for x in used):
        infinite = op.limit is not None and not any(x.nan for x in used)
        return Answer(math.inf if infinite else math.nan, n)
    xs, ys = ([x.value for x in side] for side in zip(*pairs, strict=True))
    exact = DEFINITIONS[op.name](Pairs(xs, ys, ddof))
    if exact is None:
        return Answer(math.nan, n)
    value, degree = exact
    return Answer(nearest(value, to) if degree == 1 else nearest_root(value, to, degree), n)


def _value(op: Op, dtype: DType, elements: Sequence[tuple[int, Element]]) -> Value:
    present = [x for _, x in elements]
    if op.terms is not Terms.NONE:
        return _sum_value(op, dtype, total(terms_of(op, present), dtype))
    if op.selects or op.extreme is not None or op.fold in ("picked", "mode", "span", "histogram"):
        from warpfold.kernels.ops import reference_order  # which is made of this file's elements

        return reference_order.value(op, dtype, elements)
    if op.name == "prod":
        return math.prod(int(x.value) for x in present)
    if op.name == "nunique":  # the value of a zero has no sign
        return len({(x.nan, x.infinite, x.infinite and x.negative, x.value) for x in present})
    nonzero = sum(1 for x in present if not is_zero(x))
    tests: dict[str, Value] = {
        "count": len(present),
        "count_nonzero": nonzero,
        "any": nonzero > 0,
        "all": nonzero == len(present),
    }
    return tests[op.name]


_FLOATS = tuple(row.name for row in DTYPES.values() if row.is_float)


def _sum_value(op: Op, dtype: DType, summed: SummedTerms) -> Value:
    result = op.result_dtype(dtype)
    if result == INTEGER:
        return int(summed.finite)
    to = DTYPES[result]
    value = special(summed)
    if value is not None:
        return value
    if op.finish is Finish.ROOT:
        return nearest_root(summed.finite, to)
    if summed.all_negative_zero:
        return -0.0
    return nearest(summed.finite / summed.count if op.finish is Finish.MEAN else summed.finite, to)


_FACTORS = {Terms.VALUES: 1, Terms.PRODUCTS: 2, Terms.TRIPLES: 3, Terms.QUADRUPLES: 4}


def state_bytes(summed: SummedTerms, terms: Terms) -> bytes:
    """The canonical bytes of an exact state, version 1, written down a second time from `docs/exact-state.md`."""
    first, digits = digits_of(summed.finite, terms)
    flags = summed.nan | summed.positive_infinity << 1 | summed.negative_infinity << 2
    flags |= (summed.count > 0 and not summed.all_negative_zero) << 3
    parts = [
        b"WFXS",
        bytes([1, _FACTORS[terms] - 1, flags, 0]),
        summed.count.to_bytes(8, "little"),
        first.to_bytes(2, "little"),
        len(digits).to_bytes(2, "little"),
        bytes(4),
        *(digit.to_bytes(4, "little") for digit in digits),
    ]
    return b"".join(parts)


def digits_of(finite: Fraction, terms: Terms) -> tuple[int, list[int]]:
    """The index of the first stored digit of a sum, and the digits: two's complement, 32 bits each, trimmed."""
    scaled = finite * Fraction(2) ** (1074 * _FACTORS[terms])
    assert scaled.denominator == 1, "finer than the unit"
    rest = scaled.numerator
    digits: list[int] = []
    # Done once what is left is only sign, and the last digit written has that sign in its highest bit.
    while rest not in (0, -1) or not digits or (digits[-1] >> 31 == 1) != (rest == -1):
        rest, digit = divmod(rest, 1 << 32)
        digits.append(digit)
    first = 0
    while digits and digits[0] == 0:
        digits.pop(0)
        first += 1
    return (first, digits) if digits else (0, [])


def pattern(value: float | int | bool, dtype: DType) -> int:
    """The bits of a value that `dtype` holds exactly; of NaN, the quiet one without sign or payload."""
    width = 8 * dtype.itemsize
    if dtype.kind is not Kind.FLOAT:
        return int(value) % (1 << width)
    sign = (1 if math.copysign(1.0, value) < 0 else 0) << (width - 1)
    infinity = ((1 << (width - dtype.precision)) - 1) << (dtype.precision - 1)
    if math.isnan(value):
        return infinity | 1 << (dtype.precision - 2)
    if math.isinf(value):
        return sign | infinity
    if value == 0:
        return sign
    exact = abs(Fraction(value))
    exponent = max(_floor_log2(exact), dtype.min_exponent + dtype.precision - 1)
    significand = exact / Fraction(2) ** (exponent + 1 - dtype.precision)
    assert significand.denominator == 1, f"{value!r} is no {dtype.name}"
    field = exponent - (dtype.min_exponent + dtype.precision - 1) + 1
    hidden = 1 << (dtype.precision - 1)
    if significand < hidden:
        return sign | int(significand)
    return sign | field << (dtype.precision - 1) | int(significand) - hidden

"""A-priori bounds: what the absolute error of a sum cannot exceed, in exact fractions.

With u = 2⁻ᵖ and γ_m = m u / (1 − m u), over the terms t that are added:

    additions   γ_h Σ|t|, no term going through more than h of them (Higham, Accuracy and Stability of Numerical
                Algorithms, 2nd ed., 2002, 4.2 and problem 4.3): h = n − 1 first to last, ⌈log₂ n⌉ in a tree.
                Where m u ≥ 1 leaves γ undefined, h u Σ|t| for h ≥ n − 1, which holds in any order and for every n
                (Jeannerod and Rump, SIAM J. Matrix Anal. Appl. 34, 2013, 338-344).
    kahan       (u |Σt| + (2u + 8 n u²) Σ|t|) / (1 − 2u) while 2u + 8 n u² ≤ ¼: Goldberg's (2u + O(n u²)) Σ|t| (ACM
                Computing Surveys 23, 1991, theorem 8; Higham 4.3) of what the loop holds in its two numbers, with the
                constant worked out in docs/accuracy.md, and u for the second, which is dropped at the end.
    neumaier    u |Σt| + (1 + u) ((n − 1) u)² Σ|t|: Ogita, Rump and Oishi (SIAM J. Sci. Comput. 26, 2005, proposition
                4.5) with Jeannerod and Rump's (n − 1) u in place of γ.
    exact       half a unit in the last place.

Terms that are products rounded by 1 + v add v Σ|t| + n η, and the rest is then of (1 + v) Σ|t| + n η, where η, the
smallest number of the dtype, is for products that underflow (Higham 2.8); sums lose nothing there. A mean divides all
by n; the root of a sum s within B is within B / (√s + √max(s − B, 0)). A product has a relative error of γ_n in
whatever order, as long as no partial product leaves the range. Each rounding at the end adds a unit roundoff of the
result and η.
"""

from dataclasses import dataclass
from fractions import Fraction

from warpfold.kernels.accuracy.arithmetic import Arithmetic, Scheme
from warpfold.kernels.accuracy.exactly import Truth, root, ulp
from warpfold.kernels.dtypes import DType

_SLACK = Fraction(1) + Fraction(1, 1 << 200)
"""True roots and products are known to more bits than that."""

_KAHAN_MOST = Fraction(1, 4)


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound on the absolute error, spelt out; `value` None where it does not apply, and `reason` why."""

    value: Fraction | None
    formula: str
    reason: str | None = None


class _NotApplicable(Exception):
    """A premise does not hold."""


def gamma(m: int, u: Fraction) -> Fraction:
    """γ_m = m u / (1 − m u), for m u < 1."""
    return m * u / (1 - m * u)


def bound_of(op: str, arithmetic: Arithmetic, truth: Truth) -> Bound:
    """The bound on the error of a finite result of `op`."""
    if arithmetic.scheme is Scheme.EXACT:
        return Bound(ulp(truth.value, truth.dtype) / 2, "½ ulp")
    writer = _Writer(op, arithmetic)
    try:
        value = _product(arithmetic, truth, writer) if op == "prod" else _sum(op, arithmetic, truth, writer)
    except _NotApplicable as error:
        return Bound(None, writer.formula, str(error))
    return Bound(value, writer.formula)


class _Writer:
    """Spells a bound out as it is put together."""

    def __init__(self, op: str, arithmetic: Arithmetic) -> None:
        self.terms = {"sum": "Σ|x|", "mean": "Σ|x|", "dot": "Σ|xy|", "norm2": "Σx²", "prod": "|Πx|"}[op]
        self.total = {"dot": "|Σxy|", "norm2": "Σx²"}.get(op, "|Σx|")
        self._u = f"u = 2^-{arithmetic.precision}"
        self._parts = ""
        self._notes = ""

    @property
    def formula(self) -> str:
        return f"{self._parts}, {self._u}{self._notes}"

    def begin(self, text: str) -> None:
        self._parts = text

    def wrap(self, text: str) -> None:
        self._parts = text.format(self._parts)

    def name(self, name: str, text: str) -> None:
        """Give the formula so far a name, by which `text` refers to it."""
        self.note(f"{name} = {self._parts}")
        self._parts = text

    def note(self, text: str) -> None:
        self._notes += f"; {text}"


def _sum(op: str, arithmetic: Arithmetic, truth: Truth, writer: _Writer) -> Fraction:
    magnitude, forming = truth.magnitude, Fraction(0)
    if arithmetic.terms is not None:
        forming = _roundoff(arithmetic.terms) * magnitude
        forming += truth.count * _smallest(truth.dtype) if magnitude else 0
    bound = forming + _added(arithmetic, truth.count, abs(truth.total) + forming, magnitude + forming, writer)
    if arithmetic.terms is not None:
        writer.wrap(f"v {writer.terms} + n η + (1 + v)({{}})")
        writer.note(f"v = 2^-{arithmetic.terms}, η = 2^{truth.dtype.min_exponent}")
    if op == "mean":
        bound /= truth.count
        writer.wrap("({}) / n")
    if op == "norm2" and magnitude:
        bound /= truth.value + root(max(truth.total - bound, Fraction(0)))
        bound *= _SLACK
        writer.name("B", "B / (√s + √max(s − B, 0))")
        writer.note("s = Σx²")
    return _finished(arithmetic, truth, bound, writer)


def _finished(arithmetic: Arithmetic, truth: Truth, bound: Fraction, writer: _Writer) -> Fraction:
    """The bound with the roundings that finish a value."""
    if not arithmetic.roundings:
        return bound
    writer.note(f"then rounded {'once' if arithmetic.roundings == 1 else 'twice'} to {truth.dtype.name}")
    growth = (1 + _roundoff(truth.dtype.precision)) ** arithmetic.roundings
    coarse = arithmetic.roundings * growth * _smallest(truth.dtype)
    return growth * bound + (growth - 1) * abs(truth.value) * _SLACK + coarse


def _added(arithmetic: Arithmetic, n: int, total: Fraction, magnitude: Fraction, writer: _Writer) -> Fraction:
    """The error of the additions alone."""
    u, h = _roundoff(arithmetic.precision), arithmetic.height
    match arithmetic.scheme:
        case Scheme.KAHAN:
            writer.begin(f"(u {writer.total} + (2u + 8n u²) {writer.terms}) / (1 − 2u)")
            factor = 2 * u + 8 * n * u * u
            if factor > _KAHAN_MOST:
                raise _NotApplicable("2u + 8n u² is above ¼: there are too many elements for the dtype")
            return (u * total + factor * magnitude) / (1 - 2 * u)
        case Scheme.NEUMAIER:
            writer.begin(f"u {writer.total} + (1 + u)({_factor(h, n)} u)² {writer.terms}")
            return u * total + (1 + u) * (h * u) ** 2 * magnitude
    if h * u < 1:
        writer.begin(f"γ_{{{_of(h, n)}}} {writer.terms}")
        return gamma(h, u) * magnitude
    writer.begin(f"{_factor(h, n)} u {writer.terms}")
    if h < n - 1:
        raise _NotApplicable("the additions of an element are too many for the dtype")
    return h * u * magnitude


def _product(arithmetic: Arithmetic, truth: Truth, writer: _Writer) -> Fraction:
    u, n = _roundoff(arithmetic.precision), truth.count
    writer.begin(f"γ_{{n}} {writer.terms}")
    if truth.value == 0:
        return Fraction(0)
    lowest = truth.dtype.min_exponent + truth.dtype.precision
    if truth.lowest < lowest or truth.highest > truth.dtype.max_exponent - 1:
        raise _NotApplicable("partial products may leave the range of the dtype")
    if n * u >= 1:
        raise _NotApplicable("n u is not below 1: there are too many elements for the dtype")
    return _finished(arithmetic, truth, gamma(n, u) * truth.magnitude * _SLACK, writer)


def _smallest(dtype: DType) -> Fraction:
    """η: the smallest number of `dtype`, which a rounding in the subnormal range does not exceed."""
    return Fraction(2) ** dtype.min_exponent


def _of(h: int, n: int) -> str:
    """The number of additions, by the formula that gives it."""
    return {n - 1: "n−1", n: "n"}.get(h, str(h))


def _factor(h: int, n: int) -> str:
    return "(n−1)" if h == n - 1 else _of(h, n)


def _roundoff(precision: int) -> Fraction:
    return Fraction(1, 1 << precision)

"""No method's error is ever beyond its bound, on arrays of any kind."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from tests.support.kernels.study_arrays import arrays, row
from warpfold.kernels.accuracy.arithmetic import Arithmetic, Scheme, arithmetic_of
from warpfold.kernels.accuracy.axes import OPS
from warpfold.kernels.accuracy.bounds import bound_of, gamma
from warpfold.kernels.accuracy.exactly import Truth, truth
from warpfold.kernels.accuracy.looped import looped
from warpfold.kernels.accuracy.point import AccuracyCase
from warpfold.kernels.cpu.backend import CPU_STRATEGIES
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import NanPolicy, op_named
from warpfold.kernels.ops.operands import operands
from warpfold.kernels.source import ArraySource

METHODS = ("sequential", "reverse", "tree", "pairwise", "sorted_ascending", "sorted_descending", "kahan", "neumaier",
           "float64_accumulator", "numpy")  # fmt: skip
FLOAT32 = DTYPES["float32"]


def by_numpy(op: str, x: NDArray[Any], y: NDArray[Any] | None) -> float:
    reduce = CPU_STRATEGIES["numpy"].reduce

    other = None if y is None else ArraySource(y)
    row_of_op = op_named(op)
    taken = operands(row_of_op, ArraySource(x), other)
    return float(reduce(taken, row_of_op, NanPolicy.PROPAGATE, None).value)


def computed(method: str, op: str, x: NDArray[Any], y: NDArray[Any] | None) -> float:
    if method == "numpy":
        return by_numpy(op, x, y)
    return looped(method, op, (x,) if y is None else (x, y), row(x))


def within(method: str, op: str, x: NDArray[Any], y: NDArray[Any] | None, true: Truth) -> bool:
    """Whether the error is within the bound; also where there is none."""
    case = AccuracyCase(method, op, "any", row(x).name, x.size)
    bound = bound_of(op, arithmetic_of(case, "cpu"), true)
    value = computed(method, op, x, y)
    if bound.value is None or not math.isfinite(value):
        return True
    return abs(Fraction(value) - true.value) <= bound.value


# All methods meet the same arrays: the truth of one takes longer than all of its sums.
@given(arrays)
def test_an_error_keeps_its_bound(x: NDArray[Any]) -> None:
    for op in OPS:
        y = x[::-1] if op == "dot" else None
        true = truth(op, x, y, row(x))
        for method in METHODS:
            if op != "prod" or method not in ("kahan", "neumaier"):
                assert within(method, op, x, y, true), (method, op)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_long_sums_keep_their_bounds_too(dtype: str) -> None:
    made = np.random.default_rng(4)
    for long in (made.standard_normal(20_011), made.uniform(0, 1, 9000), 3.0 ** made.uniform(-9, 9, 3000)):
        x = long.astype(DTYPES[dtype].numpy)
        for op in ("sum", "mean"):
            true = truth(op, x, None, row(x))
            for method in METHODS:
                assert within(method, op, x, None, true), (method, op)


def a_sum(n: int, total: float = 1.0, magnitude: float = 3.0) -> Truth:
    value = Fraction(total)
    return Truth(n, FLOAT32, value, value, Fraction(magnitude), total, total)


def spelt(scheme: Scheme, height: int, n: int) -> tuple[Fraction | None, str]:
    bound = bound_of("sum", Arithmetic(scheme, 24, height), a_sum(n))
    return bound.value, bound.formula


U = Fraction(1, 1 << 24)


def test_bounds_of_sums_are_those_of_the_books() -> None:
    assert spelt(Scheme.ADDITIONS, 999, 1000) == (gamma(999, U) * 3, "γ_{n−1} Σ|x|, u = 2^-24")
    assert spelt(Scheme.ADDITIONS, 10, 1000) == (gamma(10, U) * 3, "γ_{10} Σ|x|, u = 2^-24")
    assert gamma(999, U) == 999 * U / (1 - 999 * U)
    value, formula = spelt(Scheme.NEUMAIER, 999, 1000)
    assert value == U + (1 + U) * (999 * U) ** 2 * 3
    assert formula == "u |Σx| + (1 + u)((n−1) u)² Σ|x|, u = 2^-24"
    value, formula = spelt(Scheme.KAHAN, 999, 1000)
    assert value == (U + (2 * U + 8000 * U * U) * 3) / (1 - 2 * U)
    assert formula == "(u |Σx| + (2u + 8n u²) Σ|x|) / (1 − 2u), u = 2^-24"


def test_where_gamma_is_undefined_a_bound_without_it_holds() -> None:
    n = 50_000_000
    assert spelt(Scheme.ADDITIONS, n - 1, n) == ((n - 1) * U * 3, "(n−1) u Σ|x|, u = 2^-24")


def test_the_exact_sum_is_off_by_half_a_unit_in_the_last_place_at_most() -> None:
    bound = bound_of("sum", Arithmetic(Scheme.EXACT), a_sum(3))
    assert (bound.value, bound.formula) == (U, "½ ulp")


def test_what_cannot_be_promised_says_why() -> None:
    many = bound_of("sum", Arithmetic(Scheme.KAHAN, 8, 99_999), a_sum(100_000))
    assert (many.value, many.reason) == (None, "2u + 8n u² is above ¼: there are too many elements for the dtype")
    x = np.array([2.0**-100, 2.0**-100, 2.0**110], dtype=np.float32)
    case = AccuracyCase("sequential", "prod", "any", "float32", 3)
    wild = bound_of("prod", arithmetic_of(case, "cpu"), truth("prod", x, None, FLOAT32))
    assert (wild.value, wild.reason) == (None, "partial products may leave the range of the dtype")


def test_compensation_is_refused_to_products() -> None:
    with pytest.raises(InvalidInput, match="a product has no additions"):
        looped("kahan", "prod", (np.ones(3, dtype=np.float32),), FLOAT32)

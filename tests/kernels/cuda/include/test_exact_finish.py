"""Values of totals, by the device code on the host, against the same in Python's integers."""

import ctypes
import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.gpu.adversarial import ADVERSARIAL, adversarial
from tests.support.kernels import on_host
from tests.support.kernels.exact_on_host import portable
from warpfold.kernels.cuda.exact import SumKind, limbs_of
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS, FinishedOp
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact import finish
from warpfold.kernels.exact.encoding import ORIGIN, Flags
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.ops import OPS, Terms

FLOATS = ("float16", "bfloat16", "float32", "float64")


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    if on_host.COMPILER is None or sys.platform != "linux":
        pytest.skip("needs g++ to build the device code for the host")
    return on_host.build_finish()


def limbs_from(kind: SumKind, states: tuple[ExactState, ...], random: np.random.Generator) -> NDArray[np.int64]:
    """Limbs of a total whose carries are not resolved: digits of both signs that add up to the state."""
    limbs = np.zeros(limbs_of(kind), np.int64)
    start = 0
    for state in states:
        for place in range(4):
            limbs[start + 2 + place] = bool(state.flags >> place & 1) * 3
        digits = 72 if state.terms is Terms.VALUES else 138
        units = state.units
        for k in range(digits):
            digit = units & 0xFFFFFFFF
            units >>= 32
            if k < digits - 1 and random.random() < 0.5 and (digit or units):
                carry = int(random.integers(-(1 << 29), 1 << 29))
                digit += carry << 32
                units -= carry
            limbs[start + 6 + k] = digit if k < digits - 1 else digit - ((digit >> 31) << 32)
        start += 6 + digits
    return limbs


def finished(  # noqa: PLR0917
    library: ctypes.CDLL,
    dtype: DType,
    op: FinishedOp,
    limbs: NDArray[np.int64],
    count: int,
    ddof: int,
) -> float:
    out = np.zeros(1, dtype.numpy)
    known = library.finish_by_name(
        dtype.name.encode(), op.kind.value.encode(), ctypes.c_void_p(limbs.ctypes.data), ctypes.c_uint64(op.finish),
        ctypes.c_uint64(count), ctypes.c_uint64(ddof), ctypes.c_void_p(out.ctypes.data),
    )  # fmt: skip
    assert known
    return float(out[0])


def expected(name: str, states: tuple[ExactState, ...], dtype: DType, ddof: int) -> float:
    count = states[0].count
    if name in ("var", "std"):
        if count <= ddof:
            return math.nan
        values, squares = states
        return (finish.variance if name == "var" else finish.deviation)(values, squares, ddof, dtype)
    if name == "mean" and not count:
        return math.nan
    return float(finish.value_of(OPS[name], states[:1], dtype.name))


@pytest.mark.parametrize("data", ADVERSARIAL)
@pytest.mark.parametrize("name", FINISHED_OPS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_total_is_rounded_as_python_rounds_it(library: ctypes.CDLL, dtype: str, name: str, data: str) -> None:
    random = np.random.default_rng(len(data))
    row, op = DTYPES[dtype], FINISHED_OPS[name]
    for size in (1, 2, 3, 40):
        arrays = tuple(adversarial(data, row, size) for _ in range(1 + (name == "dot")))
        states = portable(op.kind, *arrays)
        for ddof in (0, 1) if op.kind is SumKind.MOMENTS else (0,):
            value = finished(library, row, op, limbs_from(op.kind, states, random), size, ddof)
            assert value.hex() == expected(name, states, row, ddof).hex(), (size, ddof)


def near_halves(random: np.random.Generator, precision: int, unit_bits: int) -> int:
    """An integer that lies at, or beside, the middle of two numbers of `precision` bits."""
    significand = (1 << (precision - 1)) + int(random.integers(1 << min(precision - 1, 62)))
    shift = int(random.integers(1, unit_bits))
    return (2 * significand + 1 << shift) + int(random.integers(-1, 2))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["sum", "mean", "norm2", "sum_squares"])
def test_totals_beside_the_middle_of_two_numbers_are_rounded_to_the_right_side(
    library: ctypes.CDLL, dtype: str, name: str
) -> None:
    random = np.random.default_rng(5)
    row, op = DTYPES[dtype], FINISHED_OPS[name]
    low = -ORIGIN[op.kind.terms]
    for _ in range(300):
        count = int(random.integers(1, 1 << int(random.integers(1, 40)))) if name == "mean" else 9
        units = near_halves(random, row.precision, 200) << int(random.integers(0, low))
        units = (
            units * count if name == "mean" else units * units if name == "norm2" and random.random() < 0.5 else units
        )
        units %= 1 << (2000 if op.kind.terms is Terms.VALUES else 4100)
        units *= -1 if op.kind is SumKind.VALUES and random.random() < 0.5 else 1
        state = ExactState.from_limbs(op.kind.terms, (units,), ORIGIN[op.kind.terms], count, Flags.NOT_NEGATIVE_ZERO)
        value = finished(library, row, op, limbs_from(op.kind, (state,), random), count, 0)
        assert value.hex() == expected(name, (state,), row, 0).hex(), (hex(units), count)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), min_size=1, max_size=6), st.integers(0, 2))
def test_variances_of_any_few_values_are_rounded_once(library: ctypes.CDLL, values: list[float], ddof: int) -> None:
    states = portable(SumKind.MOMENTS, np.array(values))
    for name in ("var", "std"):
        for dtype in ("float32", "float64"):
            row = DTYPES[dtype]
            limbs = limbs_from(SumKind.MOMENTS, states, np.random.default_rng(1))
            value = finished(library, row, FINISHED_OPS[name], limbs, len(values), ddof)
            assert value.hex() == expected(name, states, row, ddof).hex()


def test_variances_of_very_many_values_are_divided_by_numbers_of_64_bits(library: ctypes.CDLL) -> None:
    random = np.random.default_rng(8)
    row = DTYPES["float64"]
    for _ in range(200):
        count = int(random.integers(1 << 32, 1 << 40))
        mean, spread = int(random.integers(1, 1 << 60)), int(random.integers(1, 1 << 60))
        values = ExactState.from_limbs(
            Terms.VALUES, (count * mean << 1000,), ORIGIN[Terms.VALUES], count, Flags.NOT_NEGATIVE_ZERO
        )
        squares = ExactState.from_limbs(
            Terms.PRODUCTS,
            (count * (mean * mean + spread) << 2000,),
            ORIGIN[Terms.PRODUCTS],
            count,
            Flags.NOT_NEGATIVE_ZERO,
        )
        for name in ("var", "std"):
            limbs = limbs_from(SumKind.MOMENTS, (values, squares), random)
            value = finished(library, row, FINISHED_OPS[name], limbs, count, 1)
            assert value.hex() == expected(name, (values, squares), row, 1).hex()


@pytest.mark.parametrize("count", [2, 3, (1 << 31) - 1, (1 << 32) - 1, 1 << 32, (1 << 32) + 1])
def test_means_beside_a_multiple_of_the_count_are_rounded_once(library: ctypes.CDLL, count: int) -> None:
    random = np.random.default_rng(9)
    row, op = DTYPES["float64"], FINISHED_OPS["mean"]
    for digits in (1, 2, 3, 7):
        for _ in range(40):
            quotient = int.from_bytes(random.bytes(4 * digits), "little") | 1 << 32 * digits - 1
            for units in (quotient * count - 1, quotient * count, quotient * count + 1, (1 << 32 * digits) * count - 1):
                state = ExactState.from_limbs(
                    Terms.VALUES, (units << 700,), ORIGIN[Terms.VALUES], count, Flags.NOT_NEGATIVE_ZERO
                )
                value = finished(library, row, op, limbs_from(op.kind, (state,), random), count, 0)
                assert value.hex() == expected("mean", (state,), row, 0).hex(), (hex(units), count)

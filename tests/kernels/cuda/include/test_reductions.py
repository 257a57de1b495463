"""The reductions of the device code, one thread at a time on the host, against exact arithmetic.

The library that is built for them also has the generator, which is held to that of the CPU.
"""

import ctypes
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.gpu.arrays import KINDS, data, numbers
from tests.support.gpu.exactly import agrees, expected
from tests.support.kernels import on_host
from warpfold.kernels.cuda.elements import element
from warpfold.kernels.cuda.strategies.partial_results import PartialResult, reduction_of, value_of
from warpfold.kernels.cuda.strategies.registry import own_strategies
from warpfold.kernels.cuda.strategies.rows import FAST
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.generate import DISTRIBUTIONS
from warpfold.kernels.generate import generate as generate_on_cpu
from warpfold.kernels.generate import plan as plan_of
from warpfold.kernels.ops import OPS, Op
from warpfold.kernels.source import GeneratedSource

pytestmark = pytest.mark.skipif(
    on_host.COMPILER is None or sys.platform != "linux", reason="needs g++ to build the device code for the host"
)

SIZES = (1, 2, 15, 16, 17, 63, 64, 65, 333)
FLOATS = [name for name, row in DTYPES.items() if row.is_float]


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    return on_host.build()


def reduced(library: ctypes.CDLL, name: str, array: NDArray[Any], *, omit_nan: bool) -> list[PartialResult]:
    """The outcomes of two pieces, or of one where there is but one element; the second starts off a boundary."""
    cut = array.size // 2
    pieces = [(array[:cut], 0), (array[cut:], cut)] if cut else [(array, 0)]
    return [on_host.reduce(library, name, piece, first, omit_nan=omit_nan) for piece, first in pieces]


def wrong(library: ctypes.CDLL, op: Op, dtype: DType, strategy: str) -> list[Any]:
    """Cases in which the strategy's arithmetic gives what it must not."""
    name, bits = f"{reduction_of(op, dtype)}<{element(dtype)}>", []
    if strategy == "compensated":
        name = f"Compensating<{name}>"
    for size in SIZES:
        for kind in KINDS:
            array = data(kind, dtype, size)
            for omit_nan in (False, True) if kind == "special" and dtype.is_float else (False,):
                want = expected(op, numbers(array, dtype), omit_nan=omit_nan)
                if want is None:
                    continue
                nans = int(np.isnan(array.astype(np.float64)).sum()) if omit_nan else 0
                got = value_of(op, dtype, reduced(library, name, array, omit_nan=omit_nan), size - nans)
                if not agrees(got, want, op, dtype, strategy=strategy, count=size):
                    bits.append((size, kind, omit_nan, got, want))
    return bits


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", sorted({op for op, _ in own_strategies()[FAST].claims}))
def test_a_reduction_gives_what_exact_arithmetic_allows(library: ctypes.CDLL, op: str, dtype: str) -> None:
    row = DTYPES[dtype]
    if op == "prod" and row.kind in ("int", "uint"):
        pytest.skip("not claimed")
    assert wrong(library, OPS[op], row, "single_pass") == []


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["sum", "mean", "norm1", "sum_squares", "norm2"])
def test_compensation_keeps_its_bound(library: ctypes.CDLL, op: str, dtype: str) -> None:
    assert wrong(library, OPS[op], DTYPES[dtype], "compensated") == []


def test_compensation_finds_what_cancels(library: ctypes.CDLL) -> None:
    array = np.array([1.0, 1e100, 1.0, -1e100] * 8)
    outcome = on_host.reduce(library, "Compensating<Sum<float64>>", array)
    assert value_of(OPS["sum"], DTYPES["float64"], [outcome], array.size) == 16.0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_generator_makes_the_cpus_bits(library: ctypes.CDLL, distribution: str, dtype: str) -> None:
    if dtype not in DISTRIBUTIONS[distribution].dtypes:
        pytest.skip("not offered")
    length = 2 if dtype == "bool" else 100
    ranges = [(length, 0, length)]
    if distribution != "arange":
        ranges.append((1 << 40, (1 << 35) - 500, (1 << 35) + 500))
    for count, start, stop in ranges:
        source = GeneratedSource(distribution, count, 2**63 + 12345, DTYPES[dtype])
        if distribution == "modulo" and dtype == "bool":
            source = GeneratedSource(distribution, count, 1, DTYPES[dtype], {"m": 2.0})
        made = on_host.generate(library, plan_of(source), start, stop)
        assert made.tobytes() == generate_on_cpu(source, start, stop).tobytes()

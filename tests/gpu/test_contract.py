"""Every strategy of our own: each op of each dtype that it claims, at awkward sizes, on awkward data, from awkward
addresses, within the error that it states. Memory is poisoned beforehand."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.gpu.arrays import KINDS, LONGEST_PRODUCT, SIZES, data, numbers
from tests.support.gpu.exactly import Expected, agrees, expected
from warpfold.kernels.cuda.elements import carrier
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.strategies.registry import own_strategies
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.ops import OPS

STARTS = (0, 1, 3)


def run(gpu: Gpu, strategy: str, op: str, array: NDArray[Any], start: int, *, omit_nan: bool) -> Any:
    import cupy

    dtype = next(row for row in DTYPES.values() if row.numpy == array.dtype)
    room = cupy.empty(start + array.size, dtype=carrier(dtype))
    room[start:] = cupy.asarray(array.view(carrier(dtype)))
    reducer = own_strategies()[strategy].reducer(gpu, OPS[op], dtype, omit_nan=omit_nan)
    reducer.add((room[start:],), 0)
    nans = int(np.isnan(array.astype(np.float64)).sum()) if dtype.is_float and omit_nan else 0
    return reducer.finish(array.size - nans).value


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("strategy", own_strategies())
def test_a_strategy_computes_what_it_claims(gpu: Gpu, strategy: str, dtype: str) -> None:
    own = own_strategies()[strategy]
    ops = sorted(op for op, name in own.claims if name == dtype)
    if not ops:
        pytest.skip("not claimed")
    if not own.runs_on(gpu.arch):
        pytest.skip(f"needs sm_{own.needs}")
    row, wrong = DTYPES[dtype], []
    for size in SIZES:
        for kind in KINDS:
            array = data(kind, row, size)
            elements = numbers(array, row)
            case = f"{dtype} {size} {kind}"
            for op in ops:
                if op == "prod" and size > LONGEST_PRODUCT:
                    continue
                for omit_nan in (False, True) if row.is_float and kind == "special" else (False,):
                    want = _expected(op, case, elements, omit_nan=omit_nan)
                    if want is None:
                        continue
                    start = STARTS[(size + len(op)) % 3]
                    got = run(gpu, strategy, op, array, start, omit_nan=omit_nan)
                    if not agrees(got, want, OPS[op], row, strategy=strategy, count=size):
                        wrong.append((op, size, kind, start, omit_nan, got, want.value, float(want.exact)))
    assert wrong == []


_known: dict[tuple[str, str, bool], Expected | None] = {}


def _expected(op: str, case: str, elements: list[Any], *, omit_nan: bool) -> Expected | None:
    """Exact arithmetic is slow: once a case for all strategies."""
    key = (op, case, omit_nan)
    if key not in _known:
        _known[key] = expected(OPS[op], elements, omit_nan=omit_nan)
    return _known[key]


@pytest.mark.parametrize("strategy", [name for name in own_strategies() if name != "atomic"])
def test_a_strategy_without_atomics_gives_the_same_bits_every_time(gpu: Gpu, strategy: str) -> None:
    own = own_strategies()[strategy]
    if not own.runs_on(gpu.arch):
        pytest.skip(f"needs sm_{own.needs}")
    array = np.random.default_rng(5).standard_normal(3_000_017).astype(np.float32)
    values = {run(gpu, strategy, "sum", array, 0, omit_nan=False) for _ in range(20)}
    assert len(values) == 1


@pytest.mark.parametrize("strategy", ["single_pass", "two_pass", "tree", "atomic", "cooperative", "cluster"])
def test_more_than_two_to_the_32_elements_are_counted_and_found(gpu: Gpu, strategy: str) -> None:
    import cupy

    own, row = own_strategies()[strategy], DTYPES["int8"]
    if not own.runs_on(gpu.arch):
        pytest.skip(f"needs sm_{own.needs}")
    size = (1 << 32) + 5
    if cupy.cuda.runtime.memGetInfo()[0] < 2 * size:
        pytest.skip(f"needs {2 * size:,} bytes of free memory")
    array = cupy.ones(size, dtype=np.int8)
    array[-1] = 2
    for op, want in (("sum", size + 1), ("argmax", size - 1)):
        if (op, "int8") not in own.claims:
            continue
        reducer = own.reducer(gpu, OPS[op], row)
        reducer.add((array,), 0)
        assert reducer.finish(size).value == want


@pytest.mark.parametrize("strategy", ["single_pass", "cooperative", "cluster", "two_pass"])
@pytest.mark.parametrize("start", [0, 1])
def test_every_shape_of_launch_reads_each_element_once(gpu: Gpu, strategy: str, start: int) -> None:
    import cupy

    own, row = own_strategies()[strategy], DTYPES["int32"]
    if not own.runs_on(gpu.arch):
        pytest.skip(f"needs sm_{own.needs}")
    reads = own.launch.threads * max(1, own.launch.flight)
    # One block, few, one a multiprocessor, one wave, many waves, and one element more or less each.
    blocks = (1, 2, 10, 17, 33, gpu.multiprocessors, 3 * gpu.multiprocessors, 30 * gpu.multiprocessors)
    for size in sorted({count * reads * 4 + more for count in blocks for more in (-1, 0, 1)}):
        array = cupy.arange(start + size, dtype=np.int32)[start:]
        for op, want in (("sum", size * (size - 1) // 2 + start * size), ("argmax", size - 1)):
            reducer = own.reducer(gpu, OPS[op], row, pieces=2)
            reducer.add((array,), 0)
            reducer.add((array,), 0)  # finds what the first launch left behind
            value = reducer.finish(2 * size).value
            assert value == (2 * want if op == "sum" else want), (size, op)


def test_a_product_neither_over_nor_underflows_on_the_way(gpu: Gpu) -> None:
    tiny, huge = 5e-324, 1.7e308
    array = np.array([tiny, tiny, huge, huge] * 500 + [3.0])
    want = expected(OPS["prod"], array.tolist())
    assert want is not None
    got = run(gpu, "single_pass", "prod", array, 0, omit_nan=False)
    assert math.isclose(got, float(want.exact), rel_tol=1e-12)

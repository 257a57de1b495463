"""Totals of a GPU are the partial results that a CPU gives: here the device code runs on the host."""

import ctypes
import sys
from math import prod
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.gpu.adversarial import ADVERSARIAL, adversarial
from tests.support.kernels import on_host
from tests.support.kernels.exact_on_host import limbs_made
from warpfold.engines.dask_cupy import partial_of_totals
from warpfold.kernels.cpu.grouped.partial import PartialResults
from warpfold.kernels.cuda.exact import limbs_of
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.dtypes import DTYPES


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    if on_host.COMPILER is None or sys.platform != "linux":
        pytest.skip("needs g++ to build the device code for the host")
    return on_host.build_exact()


def totals(library: ctypes.CDLL, op: str, rows: NDArray[Any], other: NDArray[Any]) -> NDArray[np.int64]:
    """The total of each row, as the device code leaves it."""
    dtype, kind = DTYPES[rows.dtype.name], FINISHED_OPS[op].kind
    operands = zip(rows, other, strict=True) if op == "dot" else zip(rows, strict=True)
    made = [limbs_made(library, dtype, kind, *(np.ascontiguousarray(row) for row in arrays)) for arrays in operands]
    return np.array(made, np.int64).reshape(len(made), limbs_of(kind))


def bits(values: NDArray[Any]) -> list[str]:
    return [float(value).hex() for value in values.ravel()]


@pytest.mark.parametrize("data", ADVERSARIAL)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_totals_give_the_values_that_the_elements_give(library: ctypes.CDLL, dtype: str, data: str) -> None:
    row = DTYPES[dtype]
    array = adversarial(data, row, 6 * 40).reshape(6, 40)
    other = adversarial(data, row, 6 * 40, seed=1).reshape(6, 40)
    for op in FINISHED_OPS:
        second = other if op == "dot" else None
        shape, count = (6, 1), 40
        made = partial_of_totals(op, row, shape, count, totals(library, op, array, other))
        for ddof in (0, 1) if op in ("var", "std") else (0,):
            wanted = PartialResults.of(array, (1,), op, other=second).values(row.numpy, ddof)
            values = made.values(row.numpy, ddof)
            assert values.shape == wanted.shape
            assert bits(values) == bits(wanted), op


@pytest.mark.parametrize("op", FINISHED_OPS)
@pytest.mark.parametrize("data", ["normal", "special", "any finite"])
def test_totals_merge_with_each_other_and_with_what_a_cpu_added_up(library: ctypes.CDLL, data: str, op: str) -> None:
    row = DTYPES["float64"]
    array = adversarial(data, row, 9 * 30).reshape(9, 30)
    other = adversarial(data, row, 9 * 30, seed=1).reshape(9, 30)
    parts = [
        partial_of_totals(op, row, (1, 1), 30, totals(library, op, array[at : at + 1], other[at : at + 1]))
        for at in range(6)
    ]
    second = other if op == "dot" else None
    parts.append(PartialResults.of(array[6:], (0, 1), op, other=None if second is None else second[6:]))
    wanted = PartialResults.of(array, (0, 1), op, other=second)
    for order in (parts, parts[::-1], [PartialResults.merge(parts[:3]), *parts[3:]]):
        assert bits(PartialResults.merge(order).values(row.numpy)) == bits(wanted.values(row.numpy))


@pytest.mark.parametrize("op", FINISHED_OPS)
def test_totals_of_no_elements_change_nothing(library: ctypes.CDLL, op: str) -> None:
    row, array = DTYPES["float32"], adversarial("normal", DTYPES["float32"], 50).reshape(1, 50)
    kind = FINISHED_OPS[op].kind
    none = partial_of_totals(op, row, (1, 1), 0, np.zeros((1, limbs_of(kind)), np.int64))
    some = partial_of_totals(op, row, (1, 1), 50, totals(library, op, array, array))
    merged = PartialResults.merge([none, some, none])
    assert prod(merged.shape) == 1
    assert merged.count == 50
    assert bits(merged.values(row.numpy)) == bits(some.values(row.numpy))
    zeros = -np.zeros((1, 4), np.float32)  # the sum of −0 alone is −0, also with the total of nothing
    if op == "sum":
        negative = partial_of_totals(op, row, (1, 1), 4, totals(library, op, zeros, zeros))
        assert bits(PartialResults.merge([none, negative]).values(row.numpy)) == ["-0x0.0p+0"]

"""Dot products of groups are rounded once, from exact sums, whatever the dtypes."""

import numpy as np
import pytest

from warpfold.engines.multiplied import multiply_groups
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ExactState
from warpfold.kernels.parts.keyed import Cells

NUMBERS = np.array([2, 0, -1, 2, 0, 2])


def cells(values: list[float], dtype: str, missing: list[int] | None = None) -> Cells:
    gone = None if missing is None else np.isin(np.arange(len(values)), missing)
    return Cells(np.array(values, dtype), gone)


def test_floats_are_rounded_to_the_wider_dtype_of_both() -> None:
    x, y = [3.0, 1e8, 7.0, 0.25, 1.0, 1.0], [0.5, 1e8, 1.0, 2.0, 1.0, 4.0]
    for left_dtype, right_dtype, largest in (
        ("float32", "float32", 1e8),
        ("float16", "float64", 1e4),
        ("float64", "float32", 1e8),
    ):
        left, right = cells([*x[:1], largest, *x[2:]], left_dtype), cells(y, right_dtype, [5])
        made = multiply_groups(left, right, NUMBERS, 3)
        first = float(left.elements[1]) * 1e8 + 1.0
        wanted = np.float32(first) if made.dtype == "float32" else first
        assert made.values.tolist() == [wanted, 0.0, 2.0]
        assert made.counts.tolist() == [2, 0, 2]
        rows = [1, 4]
        state = ExactState.of_products(*(side.elements[rows].astype(np.float64) for side in (left, right)))
        assert made.states[0][0] == state.to_bytes()


def test_integers_of_64_bits_are_multiplied_as_they_are() -> None:
    most, least = 2**64 - 1, -(2**63)
    made = multiply_groups(cells([most] * 6, "uint64"), cells([most] * 6, "uint64"), NUMBERS, 3)
    assert made.values.tolist() == [2 * most * most, 0, 3 * most * most]
    made = multiply_groups(cells([least] * 6, "int64"), cells([3, least, 0, 0, 1, 0], "int64"), NUMBERS, 3)
    assert made.values.tolist() == [least * (least + 1), 0, 3 * least]
    made = multiply_groups(cells([5] * 6, "uint64"), cells([-1] * 6, "int8"), np.zeros(6, np.int64), 1)
    assert made.values.tolist() == [-30]
    made = multiply_groups(cells([5] * 6, "uint64"), cells([-1] * 6, "int8"), NUMBERS, 3)
    assert made.values.tolist() == [-10, 0, -15]


def test_columns_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(InvalidInput, match="two columns of floats or two of integers"):
        multiply_groups(cells([1.0] * 6, "float64"), cells([1] * 6, "int64"), NUMBERS, 3)
    with pytest.raises(InvalidInput, match="and the other one negative integers"):
        multiply_groups(cells([2**63] * 6, "uint64"), cells([-1] * 6, "int64"), NUMBERS, 3)

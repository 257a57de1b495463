"""A fold for each value, which serves every op, gives the values of the ways that some ops have of their own."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.kernels.conformance import same
from warpfold.kernels.cpu.grouped.fold import GroupedPart, GroupFold
from warpfold.kernels.cpu.grouped.selecting import Extremes, FoldsApart, Nonzeros
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.grouping import Rows
from warpfold.kernels.ops import OPS, NanPolicy, Op, Value

BOUNDS = np.array([0, 4, 5, 9, 12])
OUTPUTS = np.array([2, 0, 2, 1])
COUNTS = np.array([1, 3, 8, 0])
DATA = {
    "float32": [3.0, -0.0, 0.0, 1.5, np.nan, -np.inf, 2.0, -7.25, 0.0, 0.0, -0.0, 0.0],
    "int16": [3, 0, -4, 1, -32768, 5, 5, 32767, 0, 0, 0, 0],
    "uint64": [3, 0, 4, 1, 2**64 - 1, 5, 5, 2**63, 0, 0, 0, 0],
}


def values(fold: GroupFold, other: GroupFold, array: NDArray[Any]) -> list[Value]:
    """The values of two folds that take a half of the rows each."""
    for taking, rows in ((fold, slice(0, 2)), (other, slice(2, 4))):
        outputs = OUTPUTS[rows]
        bounds = BOUNDS[rows.start : rows.stop + 1]
        part = array[bounds[0] : bounds[-1]]
        taking.add(int(bounds[0]), GroupedPart((part,), (Rows(bounds - bounds[0], outputs, outputs * 0, 1, False),)))
    fold.merge(other)
    return list(fold.values(COUNTS))


def own(op: Op, dtype: str, policy: NanPolicy) -> GroupFold:
    """The way that the op has of its own."""
    if op.extreme is not None:
        return Extremes(op, (DTYPES[dtype],), COUNTS.size, policy)
    return Nonzeros(op, (DTYPES[dtype],), COUNTS.size)


@pytest.mark.parametrize("dtype", DATA)
@pytest.mark.parametrize("name", ["min", "max", "norm_inf", "count_nonzero", "any", "all"])
def test_a_fold_for_each_value_gives_the_values_of_the_way_of_its_own(name: str, dtype: str) -> None:
    op, array, policy = OPS[name], np.array(DATA[dtype], DTYPES[dtype].numpy), NanPolicy.PROPAGATE
    folds = [FoldsApart(op, (DTYPES[dtype],), COUNTS.size, policy) for _ in range(2)]
    apart = values(folds[0], folds[1], array)
    expected = values(own(op, dtype, policy), own(op, dtype, policy), array)
    for left, right in zip(apart[:3], expected[:3], strict=True):
        assert same(left, right), (apart, expected)


def test_a_fold_for_each_value_leaves_out_nans_by_itself() -> None:
    array = np.array(DATA["float32"], np.float32)
    dtypes = (DTYPES["float32"],)
    folds = [FoldsApart(OPS["count_nonzero"], dtypes, COUNTS.size, NanPolicy.OMIT) for _ in range(2)]
    assert values(folds[0], folds[1], array)[:3] == [0, 0, 5]

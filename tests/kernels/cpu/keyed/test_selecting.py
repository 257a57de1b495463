"""A fold for each group, which serves every op, gives the values of the ways that some ops have of their own."""

import numpy as np
import pytest

from warpfold.kernels.cpu.keyed.selecting import KeyedFoldsApart, KeyedNonzeros
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.ops import OPS

IDS = np.array([2, 1, 0, 2, 2, 1], np.int32)  # the rows of group 0 are left out
OTHER_IDS = np.array([1, 1], np.int32)


@pytest.mark.parametrize("dtype", ["float64", "int8"])
def test_a_fold_for_each_group_counts_as_the_way_of_its_own(dtype: str) -> None:
    row = DTYPES[dtype]
    folds = [KeyedFoldsApart(OPS["count_nonzero"], row) for _ in range(2)]
    own = [KeyedNonzeros(row) for _ in range(2)]
    merged = np.array([0, 2], np.int32)  # the other's group 1 is group 2 here
    for fold, other in ((folds[0], folds[1]), (own[0], own[1])):
        fold.add(0, np.array([1, 0, 5, 0, 7, 3], row.numpy), IDS, 2)
        other.add(6, np.array([4, 0], row.numpy), OTHER_IDS, 1)
    folds[0].merge(folds[1], merged, 2)
    own[0].merge(own[1], merged, 2)
    assert folds[0].values(2) == own[0].values(2).tolist() == [1, 3]


def test_a_group_without_elements_has_the_value_of_no_elements_if_the_op_has_one() -> None:
    folds = [KeyedFoldsApart(OPS[name], DTYPES["int8"]) for name in ("prod", "min")]
    for fold in folds:
        fold.add(0, np.array([3, 5], np.int8), np.array([1, 1], np.int32), 2)
    assert [fold.values(2) for fold in folds] == [[15, 1], [3, None]]

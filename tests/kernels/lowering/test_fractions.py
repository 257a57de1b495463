"""Means of integers are fractions, too: along axes, by segments and by key, as Python's own integers have them."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.lowering.fractions import quotients
from warpfold.kernels.parts.grouping import AlongAxes, Grouping, Segments
from warpfold.kernels.source import ArraySource

EXTREMES = {
    "int64": [[2**63 - 1, 2**63 - 1, -(2**63)], [1, 1, -1], [2**63 - 1, 5, 7]],
    "uint64": [[2**64 - 1, 2**64 - 1, 1], [0, 0, 0], [3, 1, 1]],
    "int8": [[127, 127, -128], [1, 0, 0], [-1, -1, 0]],
    "bool": [[True, True, False], [True, True, True], [False, False, False]],
}
GROUPINGS: list[tuple[Grouping, list[list[int]]]] = [
    (AlongAxes((0,)), [[0, 3, 6], [1, 4, 7], [2, 5, 8]]),
    (AlongAxes((1,)), [[0, 1, 2], [3, 4, 5], [6, 7, 8]]),
    (Segments((0, 4, 4, 9), None), [[0, 1, 2, 3], [], [4, 5, 6, 7, 8]]),
]


@pytest.mark.parametrize("dtype", EXTREMES)
def test_means_of_an_array_are_fractions_and_have_the_bits_of_those_without(dtype: str) -> None:
    array, backend = np.array(EXTREMES[dtype], dtype), CpuBackend()
    numbers = list(map(int, array.reshape(-1).tolist()))
    for grouping, places in GROUPINGS:
        shape = array.shape if isinstance(grouping, AlongAxes) else (array.size,)
        source = ArraySource(array.reshape(shape))
        made = backend.reduce_groups(source, shape, grouping, "mean", fractions=True)
        true = tuple(Fraction(sum(numbers[at] for at in part), len(part)) if part else None for part in places)
        assert made.fractions == true
        plain = backend.reduce_groups(source, shape, grouping, "mean")
        for name in ("op", "dtype", "strategy", "kernel", "correctly_rounded", "shape"):
            assert getattr(made, name) == getattr(plain, name), name
        assert (made.listed(), made.counted()) == (plain.listed(), plain.counted())


@pytest.mark.parametrize(
    "sums",
    [
        np.array([2**53, -(2**53), 1, 0]),
        np.array([2**53 + 1, 2**63 - 1, -(2**63), 7]),
        np.array([2**64 - 1, 1, 2, 3], np.uint64),
        np.array([2**200 + 1, -(2**65) - 1, 0, 1], object),
    ],
)
def test_quotients_of_very_many_groups_are_rounded_once(sums: Any) -> None:
    counts = np.array([3, 7, 0, 1])
    want = [total / max(1, count) for total, count in zip(sums.tolist(), counts.tolist(), strict=True)]
    assert quotients(sums, counts).tolist() == want

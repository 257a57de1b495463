"""Arrangements of arrays in memory: which elements make which value."""

from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from warpfold.kernels.cuda.resident.arrangement import Arrangement

SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=5)


@given(SHAPES, st.randoms(use_true_random=False))
def test_the_members_of_each_value_are_the_elements_along_the_axes(shape: list[int], random: object) -> None:
    axes = frozenset(axis for axis in range(len(shape)) if random.random() < 0.5)  # type: ignore[attr-defined]
    order = list(range(len(shape)))
    random.shuffle(order)  # type: ignore[attr-defined]
    memory = np.arange(prod(shape))
    array = memory.reshape([shape[axis] for axis in order]).transpose(np.argsort(order))
    strides = [stride // array.itemsize for stride in array.strides]
    arranged = Arrangement.of(array.shape, strides, axes)
    if arranged is None:
        arranged = Arrangement.rows(array.shape, axes)
        array = np.ascontiguousarray(array.transpose([*arranged.kept, *sorted(axes)]))
        memory = array.reshape(-1)
    members = arranged.members()
    values = np.array(
        [memory[value * members.outer :: members.stride][: members.count].sum() for value in range(members.values)]
    )
    shaped = values.reshape(arranged.lengths).transpose(arranged.order)
    whole = np.arange(prod(shape)).reshape([shape[axis] for axis in order]).transpose(np.argsort(order))
    assert (shaped == whole.sum(axis=tuple(axes))).all()
    assert members.values * members.count == whole.size


def test_arrays_with_gaps_or_repeated_elements_have_no_arrangement() -> None:
    assert Arrangement.of((4, 3), (6, 2), frozenset({0})) is None
    assert Arrangement.of((4, 3), (0, 1), frozenset({0})) is None
    assert Arrangement.of((4, 3), (-3, 1), frozenset({0})) is None


def test_axes_between_others_that_are_kept_are_moved_behind_them_first() -> None:
    assert Arrangement.of((2, 3, 4), (12, 4, 1), frozenset({1})) is None
    assert Arrangement.rows((2, 3, 4), frozenset({1})).members().values == 8

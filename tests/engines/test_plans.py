"""Plans of reductions along axes: their values lie as the plan says."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from warpfold.engines.plans import Plan

SHAPES = st.lists(st.integers(0, 4), min_size=1, max_size=4)


@given(SHAPES, st.booleans(), st.randoms(use_true_random=False))
def test_values_in_the_order_of_a_plan_become_those_of_numpy(shape: list[int], keepdims: bool, random: object) -> None:
    axes = tuple(axis for axis in range(len(shape)) if random.random() < 0.5)  # type: ignore[attr-defined]
    order = list(range(len(shape)))
    random.shuffle(order)  # type: ignore[attr-defined]
    memory = np.random.default_rng(1).integers(0, 99, [shape[axis] for axis in order])
    array = memory.transpose(np.argsort(order))
    wanted = array.sum(axis=axes, keepdims=keepdims)
    plan = Plan(array.shape, [stride // array.itemsize for stride in array.strides], axes, keepdims)
    assert (plan.shape, plan.empty) == (wanted.shape, array.size == 0)
    if plan.empty:
        return
    if plan.copied is not None:
        array = np.ascontiguousarray(array.transpose(plan.copied))
    flat, members = array.ravel("K"), plan.arranged.members()
    sums = [flat[value * members.outer :: members.stride][: members.count].sum() for value in range(members.values)]
    values = np.array(sums).reshape(plan.lengths)
    if values.size:
        assert plan.steps == tuple(stride // values.itemsize for stride in values.strides)
    if not plan.in_order:
        values = values.transpose(plan.order).reshape(plan.shape)
    assert values.shape == wanted.shape
    assert (values == wanted).all()


def test_a_plan_of_whole_rows_needs_neither_copy_nor_transposition() -> None:
    plan = Plan((3, 4), (4, 1), 1, keepdims=False)
    assert (plan.copied, plan.in_order, plan.lengths) == (None, True, (3,))
    assert Plan((2, 3, 4), (12, 4, 1), 1, keepdims=False).copied == (0, 2, 1)

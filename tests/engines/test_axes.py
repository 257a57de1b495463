"""The arguments of reductions of arrays on a GPU."""

import re

import pytest

from warpfold.engines.axes import check_ddof, check_out, check_pair, float_dtype, normal_axes, result_shape


def test_no_axis_means_all_of_them_and_a_negative_one_counts_from_the_end() -> None:
    assert normal_axes(None, 3) == {0, 1, 2}
    assert normal_axes((0, -1), 3) == {0, 2}
    assert normal_axes(None, 0) == frozenset()


def test_an_axis_that_does_not_exist_or_occurs_twice_is_refused() -> None:
    for axis in (3, -4, (0, 3)):
        with pytest.raises(ValueError, match="does not exist: the array has 3"):
            normal_axes(axis, 3)
    with pytest.raises(ValueError, match="twice"):
        normal_axes((1, -2), 3)


def test_reduced_axes_are_left_out_or_kept_with_one_element() -> None:
    assert result_shape((2, 3, 4), frozenset({1}), keepdims=False) == (2, 4)
    assert result_shape((2, 3, 4), frozenset({1}), keepdims=True) == (2, 1, 4)


def test_other_elements_than_floats_are_refused_by_their_name() -> None:
    assert float_dtype("bfloat16").precision == 8
    with pytest.raises(TypeError, match="not int64"):
        float_dtype("int64")


def test_operands_that_do_not_fit_are_refused_with_both_shapes() -> None:
    check_out((2,), "float32", (2,), "float32")
    check_pair((2,), "float32", (2,), "float32")
    check_ddof(1)
    with pytest.raises(ValueError, match=re.escape("out has the shape (3,)")):
        check_out((2,), "float32", (3,), "float32")
    with pytest.raises(ValueError, match="float64"):
        check_pair((2,), "float32", (2,), "float64")
    with pytest.raises(ValueError, match="ddof is -1"):
        check_ddof(-1)

import numpy as np
import pytest

from warpfold.kernels.bench.data import bounds_of, keys_of
from warpfold.kernels.studies.shapes import SHAPE_FIELDS, By, CaseShape

MATRIX, CUT, TABLE = CaseShape.matrix(6, 5, 0), CaseShape.cut(10_000, 7), CaseShape.table(5000, 40, "sorted")


@pytest.mark.parametrize("shape", [MATRIX, CUT, TABLE])
def test_a_shape_comes_back_from_the_columns_that_store_it(shape: CaseShape) -> None:
    assert CaseShape.of(shape.n, shape.in_columns()) == shape


def test_a_whole_array_has_no_shape() -> None:
    assert CaseShape.of(30, dict.fromkeys(SHAPE_FIELDS)) is None


def test_a_shape_is_said_in_words() -> None:
    assert (MATRIX.by, CUT.by, TABLE.by) == (By.AXIS, By.SEGMENTS, By.KEYS)
    assert str(MATRIX) == "6 × 5, axis 0"
    assert str(CUT) == "10,000 in segments of 7"
    assert str(TABLE) == "5,000 rows in 40 groups, sorted keys"


@pytest.mark.parametrize("n", [1, 2, 1000, 100_000])
@pytest.mark.parametrize("mean", [1, 7, 5000])
def test_segments_cover_the_array_without_an_empty_one(n: int, mean: int) -> None:
    bounds = bounds_of(CaseShape.cut(n, mean), 3)
    assert (bounds[0], bounds[-1]) == (0, n)
    assert (np.diff(bounds) > 0).all()


def test_segments_have_about_their_mean_length_and_follow_from_the_seed() -> None:
    shape = CaseShape.cut(200_000, 50)
    bounds = bounds_of(shape, 3)
    assert 0.9 < 200_000 / 50 / (bounds.size - 1) < 1.1
    assert (bounds_of(shape, 3) == bounds).all()
    assert bounds_of(shape, 4).tolist() != bounds.tolist()


def test_keys_are_drawn_evenly_and_are_no_copy_of_the_elements() -> None:
    counts = np.bincount(keys_of(TABLE, 3).read(0, TABLE.n))
    assert counts.size == 40
    assert counts.min() > 60
    assert keys_of(TABLE, 3).seed != 3

"""Which elements make which value, by the definition of axes and of segments, whatever part is asked for."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.parts.grouping import AlongAxes, Columns, Grouping, Rows, Segments, walk_of


def places_of(grouping: Grouping, shape: tuple[int, ...], cuts: list[int], *, fortran: bool) -> NDArray[np.int64]:
    """The value and the place of every element in the order of reading, by the parts between `cuts`."""
    walk = walk_of(grouping, shape, reversed_axes=fortran)
    places = np.full((walk.count, 2), -1)
    for start, stop in pairwise(cuts):
        for part in walk.parts(start, stop):
            rows, order = part, np.arange(stop - start)
            if isinstance(part, Columns):
                rows, order = part.as_rows(), part.turned(order)
            assert isinstance(rows, Rows)
            for row, output in enumerate(rows.outputs):
                here = order[rows.bounds[row] : rows.bounds[row + 1]] + start
                assert (places[here] == -1).all(), "an element came twice"
                places[here, 0] = output
                places[here, 1] = rows.places[row] + rows.step * np.arange(here.size)
    return places


@pytest.mark.parametrize("cuts", [[0, 60], [0, 1, 30, 31, 60], list(range(61)), [0, 20, 40, 60]])
@pytest.mark.parametrize("fortran", [False, True])
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_every_element_has_its_value_and_its_place(axes: tuple[int, ...], fortran: bool, cuts: list[int]) -> None:
    shape = (3, 4, 5)
    kept = [axis for axis in range(3) if axis not in axes]
    wanted = []
    for index in np.ndindex(*(shape[::-1] if fortran else shape)):
        at = index[::-1] if fortran else index
        order = kept[::-1] if fortran else kept
        value = np.ravel_multi_index([at[axis] for axis in order], [shape[axis] for axis in order]) if order else 0
        place = np.ravel_multi_index([at[axis] for axis in axes], [shape[axis] for axis in axes])
        wanted.append([value, place])
    assert (places_of(AlongAxes(axes), shape, cuts, fortran=fortran) == wanted).all()


@pytest.mark.parametrize("cuts", [[0, 12], [0, 1, 5, 6, 12], list(range(13))])
def test_a_segment_has_the_elements_between_its_offsets(cuts: list[int]) -> None:
    places = places_of(Segments((2, 2, 5, 9, 9, 12)), (12,), cuts, fortran=False)
    assert places[:, 0].tolist() == [-1, -1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4]
    assert places[2:, 1].tolist() == [0, 1, 2, 0, 1, 2, 3, 0, 1, 2]
    assert places_of(Segments(length=5), (3, 4), cuts, fortran=False)[:, 0].tolist() == [0] * 5 + [1] * 5 + [2] * 2


@pytest.mark.parametrize("size", [1, 4, 7, 1000])
@pytest.mark.parametrize(
    "grouping", [AlongAxes((0,)), AlongAxes((1,)), AlongAxes((0, 2)), Segments((0, 3, 3, 60)), Segments(length=9)]
)
def test_cuts_make_up_the_whole(grouping: Grouping, size: int) -> None:
    parts = list(walk_of(grouping, (3, 4, 5)).cuts(size))
    assert [start for start, _ in parts] == [0, *(stop for _, stop in parts[:-1])]
    assert parts[-1][1] == 60


def test_shapes_of_results_are_those_of_numpy() -> None:
    array = np.zeros((3, 0, 5))
    for axes in ((0,), (1, -1), (-3, 2, 1)):
        for keepdims in (False, True):
            expected = np.sum(array, axis=axes, keepdims=keepdims).shape
            assert AlongAxes(axes, keepdims).result_shape(array.shape) == expected
    assert Segments(length=7).result_shape((3, 5)) == (3,)
    assert Segments(length=7).result_shape((0,)) == (0,)
    assert Segments((1, 1, 4)).counts((2, 3)).tolist() == [0, 3]


@pytest.mark.parametrize(
    ("grouping", "field", "words"),
    [
        (AlongAxes((3,)), "axis", "there is no axis 3: the array has 3 axes"),
        (AlongAxes((-4,)), "axis", "there is no axis -4"),
        (AlongAxes((0, 1, -3)), "axis.2", "axis -3 is named twice"),
        (Segments((0, 5, 4)), "segments.offsets.2", "4 is less than the offset 5 before it"),
        (Segments((0, 61)), "segments.offsets.1", "61 is beyond the 60 elements"),
    ],
)
def test_what_does_not_fit_is_named(grouping: Grouping, field: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as refused:
        grouping.result_shape((3, 4, 5))
    assert refused.value.field == field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.hyperslab import Range, blocks, hyperslab, lengths


@given(
    shape=st.lists(st.integers(1, 7), min_size=1, max_size=4),
    chunk=st.lists(st.integers(1, 4), min_size=4, max_size=4),
    most=st.integers(1, 60),
    data=st.data(),
)
def test_blocks_make_up_what_is_selected_in_order_and_none_is_too_large(
    shape: list[int], chunk: list[int], most: int, data: st.DataObject
) -> None:
    array = np.arange(np.prod(shape)).reshape(shape)
    ranges = [
        Range(data.draw(st.integers(-length, length)), data.draw(st.none() | st.integers(-length, length)), step)
        for length, step in ((length, data.draw(st.integers(1, 3))) for length in shape)
    ]
    selected = hyperslab(ranges, shape)
    want = array[tuple(slice(r.start, r.stop, r.step) for r in ranges)]
    if all(r.stop != 0 for r in ranges):
        assert lengths(selected) == want.shape
    parts = [array[block] for block in blocks(selected, chunk, most)]
    assert [x for part in parts for x in part.ravel()] == array[selected].ravel().tolist()
    assert all(0 < part.size <= most for part in parts)


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ([Range(0, 11)], "10 indices on axis 0, and select names 11"),
        ([Range(-11)], "select names -11"),
        ([Range(), Range(), Range()], "has 2 axes, and select names 3"),
    ],
)
def test_an_index_beyond_the_array_is_refused_not_left_out(ranges: list[Range], message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        hyperslab(ranges, (10, 3))
    assert caught.value.field == "select"

"""Arrays that grow keep what is in them, whatever grows first, and are moved few times."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpfold.kernels.aggregates import growing
from warpfold.kernels.aggregates.growing import GrowingLimbs, grown
from warpfold.kernels.errors import OutOfMemory


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 130), st.integers(0, 6)), max_size=12))
def test_rows_and_limbs_grow_in_any_turns(steps: list[tuple[int, int, int]]) -> None:
    held, written = GrowingLimbs(), dict[tuple[int, int], int]()
    for number, (row, low, length) in enumerate(steps, 1):
        held.hold(row + 1, low, low + length)
        assert held.limbs.shape[0] > row
        if length:
            assert held.first <= low
            assert held.first + held.limbs.shape[1] >= low + length
            for place in (low, low + length - 1):
                held.limbs[row, place - held.first] = written[row, place] = number
        kept = np.zeros_like(held.limbs)
        for (at, place), value in written.items():
            kept[at, place - held.first] = value
        assert (held.limbs == kept).all()


def test_what_grows_by_little_is_moved_few_times() -> None:
    held, array, moved = GrowingLimbs(), np.zeros((1, 2)), [0, 0]
    for size in range(1, 3000):
        before = held.limbs, array
        held.hold(size, max(0, 1500 - size), 1500 + size)
        array = grown(array, size)
        moved[0] += held.limbs is not before[0]
        moved[1] += array is not before[1]
    assert moved[1] <= 12
    assert moved[0] <= 12 + 2 * 30


def test_room_that_is_not_there_is_refused_with_both_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpfold.kernels.cpu.memory.available_bytes", lambda: 1 << 20)
    held = GrowingLimbs()
    held.hold(100, 0, 10)
    with pytest.raises(OutOfMemory, match=r"of 20,000 groups needs 1,600,000 bytes"):
        held.hold(20_000)
    assert held.limbs.shape == (100, 10)
    with pytest.raises(OutOfMemory, match="more than"):
        grown(np.zeros(growing._LARGE // 8 + 1), growing._LARGE)

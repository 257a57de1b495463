"""Elements that levels do not hold: limbs come with the exponents, and the sums are those of Python's integers."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from warpfold.kernels.cpu.keyed import outside
from warpfold.kernels.cpu.keyed.outside import OutsideSums
from warpfold.kernels.exact import ExactState, Flags
from warpfold.kernels.ops import Terms

KINDS = (Terms.VALUES, Terms.PRODUCTS)
LARGEST = float(np.finfo(np.float64).max)


def units(sums: OutsideSums, terms: Terms, group: int) -> int:
    """The sum of a group, in units of its terms."""
    slot = int(sums.slots[group]) if group < sums.slots.size else 0
    row = sums.limbs.limbs[slot].tolist() if slot else []
    return sum(digit << 32 * (sums.limbs.first + place) for place, digit in enumerate(row))


def added(sums: OutsideSums, elements: list[float], ids: NDArray[np.int32], count: int) -> NDArray[np.float64]:
    array: NDArray[Any] = np.array(elements, np.float64)
    sums.add(array, ids, count)
    return array


parts = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.lists(st.sampled_from([5e-324, -LARGEST, LARGEST, np.inf, -np.inf, np.nan]) | st.floats(), max_size=5),
        st.booleans(),
    ),
    max_size=8,
)


@pytest.mark.parametrize("most", [1, 1 << 28])
@settings(max_examples=40, deadline=None)
@given(steps=parts, terms=st.sampled_from(KINDS))
def test_sums_are_those_of_integers(steps: list[tuple[int, list[float], bool]], terms: Terms, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outside, "_MOST_ADDED", most)
        first, second, groups = OutsideSums(terms), OutsideSums(terms), 1
        states = [ExactState.empty(terms)]
        for more, elements, mine in steps:
            groups += more
            states += [ExactState.empty(terms)] * more
            some = [element for element in elements if element]
            ids = (groups - 1 - np.arange(len(some), dtype=np.int32) % groups).astype(np.int32)
            array = added(first if mine else second, some, ids, groups)
            for group in set(ids.tolist()):
                states[group] = states[group].add(array[ids == group])
        first.merge(second, np.arange(groups, dtype=np.int32), groups)
    for group, state in enumerate(states):
        assert units(first, terms, group) == state.units
        flags = int(first.flags[group]) if group < first.flags.size else 0
        assert flags == int(state.flags & ~Flags.NOT_NEGATIVE_ZERO)


@pytest.mark.parametrize("terms", KINDS)
def test_groups_of_close_exponents_take_few_limbs(terms: Terms) -> None:
    sums = OutsideSums(terms)
    added(sums, [1.5, -3.0], np.array([1, 2], np.int32), 3)
    assert sums.limbs.limbs.shape[1] <= 8
    added(sums, [LARGEST, 5e-324], np.array([1, 2], np.int32), 3)
    assert units(sums, terms, 1) == ExactState.of(np.array([1.5, LARGEST]), terms).units

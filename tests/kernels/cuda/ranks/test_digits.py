"""The way from counts of digits to keys, with counts that NumPy makes as the kernel does."""

import numpy as np
import pytest
from numpy.typing import NDArray

from warpfold.kernels.cuda.ranks.digits import MOST_RANKS, Search, descend

NOWHERE = 255


def counts_of(keys: NDArray[np.uint64], level: int, width: int, following: NDArray[np.uint8]) -> NDArray[np.int64]:
    """How many keys lead to each slot, by their digit there."""

    def digit(at: int) -> NDArray[np.int64]:
        return (keys >> np.uint64(8 * (width - 1 - at)) & np.uint64(255)).astype(np.int64)

    slots = np.zeros(keys.size, np.int64)
    for above in range(level):
        slots = np.where(slots == NOWHERE, NOWHERE, following[above, np.minimum(slots, MOST_RANKS - 1), digit(above)])
    counts = np.zeros((MOST_RANKS, 256), np.int64)
    led = slots != NOWHERE
    np.add.at(counts, (slots[led], digit(level)[led]), 1)
    return counts


@pytest.mark.parametrize(("width", "below"), [(8, 1 << 63), (4, 1 << 32), (4, 1000), (2, 300), (1, 2)])
def test_digits_lead_to_the_keys_that_sorting_puts_in_these_ranks(width: int, below: int) -> None:
    random = np.random.default_rng(below)
    keys = random.integers(0, below, 5000, dtype=np.uint64)
    ranks = np.unique([0, keys.size - 1, *random.integers(0, keys.size, MOST_RANKS - 2)])
    searches = [Search(int(rank)) for rank in ranks]
    following = np.full((width, MOST_RANKS, 256), NOWHERE, np.uint8)
    for level in range(width):
        descend(searches, counts_of(keys, level, width, following), following[level])
    assert [search.key for search in searches] == np.sort(keys)[ranks].tolist()

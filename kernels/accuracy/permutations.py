"""Random orders of an array, by a seed and a number, uniform over all orders.

Rao (1961) and Sandelius (1962): deal the elements to hands at random, then shuffle each hand. The hands fit in the
cache, so that 50 million elements take less than a second where one shuffle of all of them misses the cache each time.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.accuracy import loops

_HAND = 1 << 17
_MOST_HANDS = 256


def permuted(array: NDArray[Any], seed: int, number: int) -> NDArray[Any]:
    """Order `number` of `array`, shape (n,), a copy. Arrays of one length are permuted alike.

    The random words are NumPy's Philox with the key (seed, number). An index below m has a probability within 2⁻³² of
    1/m.
    """
    words = np.random.Generator(np.random.Philox(key=seed + (number << 64)))
    patterns = np.ascontiguousarray(array).view(f"uint{8 * array.itemsize}")
    hands = min(_MOST_HANDS, 1 << max(0, (array.size // _HAND - 1).bit_length()))
    dealt = words.integers(0, hands, size=array.size, dtype=np.uint8, endpoint=False)
    out = np.empty_like(patterns)
    starts = loops.deal(patterns, dealt, hands, out)
    for start, stop in pairwise(starts):
        hand = out[start:stop]
        loops.shuffle(hand, words.integers(0, 1 << 32, size=hand.size, dtype=np.uint32))
    return out.view(array.dtype)

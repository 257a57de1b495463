import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from warpfold.kernels.scaling.axes import Algorithm
from warpfold.kernels.scaling.cpu.allreduce import allreduce, ring, tree


@pytest.mark.parametrize("algorithm", Algorithm)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("words", [1, 2, 7, 1000])
def test_every_row_becomes_the_sum_of_all(algorithm: Algorithm, ranks: int, words: int) -> None:
    rows = np.random.default_rng(words).integers(-(2**62), 2**62, (ranks, words))
    expected = rows.sum(axis=0)  # int64 wraps alike
    barrier = threading.Barrier(ranks).wait
    with ThreadPoolExecutor(ranks) as pool:
        list(pool.map(lambda rank: allreduce(algorithm)(rows, rank, barrier), range(ranks)))
    assert (rows == expected).all()


def test_auto_is_the_ring() -> None:
    assert allreduce(Algorithm.AUTO) is ring
    assert allreduce(Algorithm.TREE) is tree

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpfold.kernels.exact import ExactState
from warpfold.kernels.ops import Terms
from warpfold.kernels.scaling.axes import Algorithm
from warpfold.kernels.scaling.cpu.allreduce import LIMBS, allreduce, limbs_of, ring, state_of, tree

EMPTY = ExactState.empty(Terms.VALUES)
FLOATS = st.lists(st.floats(width=64), max_size=20)


@given(parts=st.lists(FLOATS, min_size=1, max_size=8))
def test_the_sum_of_vectors_is_the_vector_of_all_terms(parts: list[list[float]]) -> None:
    states = [EMPTY.add(np.array(part, dtype=np.float64)) for part in parts]
    merged = EMPTY
    for state in states:
        merged = merged.merge(state)
    total = np.sum([limbs_of(state) for state in states], axis=0)
    assert state_of(total) == merged


@pytest.mark.parametrize("extreme", [1.7976931348623157e308, -1.7976931348623157e308, 5e-324, -5e-324, -0.0])
def test_extremes_of_many_ranks_fit(extreme: float) -> None:
    state = EMPTY.add(np.full(1000, extreme))
    vector = limbs_of(state)
    assert vector.shape == (LIMBS,)
    assert state_of(vector) == state
    assert state_of(64 * vector) == EMPTY.add(np.full(64_000, extreme))


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

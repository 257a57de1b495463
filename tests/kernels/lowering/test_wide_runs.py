"""Runs of integers of several words: every value is that of Python's integers."""

from collections.abc import Callable
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from warpfold.kernels.lowering.wide_runs import reduce_runs
from warpfold.kernels.ops import OPS

TRUE: dict[str, Callable[[list[int]], int]] = {
    "sum": sum,
    "norm1": lambda run: sum(map(abs, run)),
    "min": min,
    "max": max,
    "norm_inf": lambda run: max(map(abs, run)),
    "argmin": lambda run: run.index(min(run)),
    "argmax": lambda run: run.index(max(run)),
}


def words_of(integers: list[int], words: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """The words of each, shape (words, integers)."""
    joined = b"".join(each.to_bytes(8 * words, "little", signed=True) for each in integers)
    return np.ascontiguousarray(np.frombuffer(joined, np.int64).reshape(-1, words).T)


@pytest.mark.parametrize("words", [1, 2, 4])
@pytest.mark.parametrize("op", TRUE)
def test_every_op_of_every_run_is_exact(words: int, op: str) -> None:
    random, most = Random(words), 2 ** (64 * words - 1)
    edges = [-most, most - 1, -most, 0, -1, 1, 2**63 - 1, -(2**63), most - 1, -(most // 2)]
    shorter = [random.randint(-(2**bits), 2**bits - 1) for bits in random.choices(range(64 * words), k=300)]
    integers = edges + shorter + [random.choice(edges) for _ in range(90)]
    bounds = [3, 4, 11, 12, 200, len(integers) - 2]
    got = reduce_runs(OPS[op], words_of(integers, words), np.array(bounds))
    assert got == [TRUE[op](integers[start:stop]) for start, stop in pairwise(bounds)]

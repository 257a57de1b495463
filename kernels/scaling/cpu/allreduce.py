"""All-reduces of rows of shared memory: every rank's row becomes the sum of all rows.

Each rank calls the same function with its number. Between two steps all meet at the barrier, so that nobody reads what
is still being written.
"""

from collections.abc import Callable
from typing import Any, Protocol

from numpy.typing import NDArray

from warpfold.kernels.scaling.axes import Algorithm
from warpfold.kernels.scaling.study import shard


class Barrier(Protocol):
    """Of threads or of processes."""

    def wait(self) -> object: ...


def ring(rows: NDArray[Any], rank: int, barrier: Callable[[], object]) -> None:
    """Patarasuk and Yuan (J. Parallel Distrib. Comput. 69, 2009, p. 117): chunks travel round, first gathering terms,
    then spreading sums; 2(ranks − 1) steps, each of which moves 1/ranks of a row."""
    ranks, words = rows.shape
    left, mine = rows[rank - 1], rows[rank]

    def chunk(number: int) -> slice:
        return slice(*shard(words, ranks, number % ranks))

    barrier()
    for step in range(ranks - 1):
        part = chunk(rank - step - 1)
        mine[part] += left[part]
        barrier()
    for step in range(ranks - 1):
        part = chunk(rank - step)
        mine[part] = left[part]
        barrier()


def tree(rows: NDArray[Any], rank: int, barrier: Callable[[], object]) -> None:
    """Sums go up a binary tree to rank 0 and come down again: 2⌈log₂ ranks⌉ steps, each of which moves whole rows."""
    ranks = len(rows)
    levels = (ranks - 1).bit_length()
    barrier()
    for level in range(levels):
        stride = 1 << level
        if rank % (2 * stride) == 0 and rank + stride < ranks:
            rows[rank] += rows[rank + stride]
        barrier()
    for level in reversed(range(levels)):
        stride = 1 << level
        if rank % (2 * stride) == stride:
            rows[rank] = rows[rank - stride]
        barrier()


def allreduce(algorithm: Algorithm) -> Callable[[NDArray[Any], int, Callable[[], object]], None]:
    """The function of an algorithm; the ring for `auto`."""
    return tree if algorithm is Algorithm.TREE else ring

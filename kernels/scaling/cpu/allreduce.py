"""The exchange of the ranks of a CPU: exact states as vectors of integers, and all-reduces of rows of such vectors.

The vectors are those of a GPU (`kernels.cuda.exact.total`): how many terms, how many states had each of the four flags,
and the digits of the sum, whose carries are resolved only at the end. In an all-reduce every rank's row of shared
memory becomes the sum of all rows. Each rank calls the same function with its number; between two steps all meet at
the barrier, so that no rank reads a row that another still writes.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.exact.encoding import DIGIT_BITS, DIGIT_MASK, MAX_DIGITS, ORIGIN, Flags
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.ops import Terms
from warpfold.kernels.scaling.axes import Algorithm
from warpfold.kernels.scaling.study import shard

_COUNT, _FLAGS, _DIGITS = 0, 1, 5

LIMBS = _DIGITS + MAX_DIGITS[Terms.VALUES] + 1


def limbs_of(state: ExactState) -> NDArray[np.int64]:
    """The vector of a state of values, shape (LIMBS,)."""
    limbs = np.zeros(LIMBS, dtype=np.int64)
    limbs[_COUNT] = state.count
    for place in range(4):
        limbs[_FLAGS + place] = bool(state.flags & Flags(1 << place))
    units = state.units
    for place in range(_DIGITS, LIMBS - 1):
        limbs[place] = units & DIGIT_MASK
        units >>= DIGIT_BITS
    limbs[-1] = units  # has the sign
    return limbs


def state_of(limbs: NDArray[np.int64]) -> ExactState:
    """The state of a vector, or of the sum of up to 2**31 of them."""
    units = 0
    for digit in reversed(limbs[_DIGITS:].tolist()):
        units = (units << DIGIT_BITS) + digit
    flags = Flags.NONE
    for place in range(4):
        flags |= Flags(int(limbs[_FLAGS + place] != 0) << place)
    return ExactState.from_limbs(Terms.VALUES, (units,), ORIGIN[Terms.VALUES], int(limbs[_COUNT]), flags)


class Barrier(Protocol):
    """A barrier of threads or of processes."""

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

"""The product of the integers of each group, exact at any size up to a bound."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import Arrays, Layout, Mergeable, State, runs
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import Op
from warpfold.kernels.parts.grouping import Index
from warpfold.kernels.parts.keyed import whole_numbers

MAX_BITS = 65_536
_PIECE = 256
"""Elements multiplied before the size is looked at: at most 2**14 bits more than MAX_BITS."""


class Product(Mergeable):
    """The product of each group as a Python integer, and whether it has become too large to go on with. A zero makes
    even such a product 0."""

    def __init__(self, op: Op, dtype: DType, *, omit: bool = False) -> None:
        assert not dtype.is_float, "float products round"

    def empty(self, groups: int) -> State:
        products = np.empty(groups, object)
        products[:] = 1
        return products, np.zeros(groups, np.bool_)

    def update(self, state: State, arrays: Arrays, layout: Layout) -> None:
        for group, factors in runs(arrays[0], layout):
            if not factors.all():
                self._multiply(state, group, 0)
            larger = factors[factors != 1]
            for at in range(0, larger.size, _PIECE):
                if state[1][group] or not state[0][group]:
                    break
                self._multiply(state, group, math.prod(larger[at : at + _PIECE].tolist()))

    def _multiply(self, state: State, group: int, factor: int) -> None:
        products, large = state
        if factor == 0:
            products[group], large[group] = 0, False
        elif not large[group]:
            products[group] *= factor
            large[group] = products[group].bit_length() > MAX_BITS

    def merge(self, state: State, other: State, ids: NDArray[Any] | slice) -> None:
        mine = np.arange(state[0].size)[ids].tolist()
        for group, factor, large in zip(mine, *(column.tolist() for column in other), strict=True):
            self._multiply(state, group, factor)
            state[1][group] |= large and bool(state[0][group])

    def finish(self, state: State, counts: Index) -> NDArray[Any]:
        products, large = state
        if (large & (counts > 0)).any():
            raise InvalidInput(f"the product has more than {MAX_BITS:,} bits, the most that an exact product may have")
        return whole_numbers(products.tolist())

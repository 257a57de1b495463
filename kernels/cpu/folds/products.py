"""The product of integers, exact at any size that is worth writing down."""

import math
from typing import Any

from numpy.typing import NDArray

from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput

MAX_BITS = 65_536
_PIECE = 256
"""Elements multiplied before the size is looked at: at most 2**14 bits more than MAX_BITS."""


class ProductFold:
    """A Python integer, given up once it is too large unless a zero turns up."""

    def __init__(self, dtype: DType) -> None:
        assert not dtype.is_float, "float products round"
        self._product = 1
        self._zero = False
        self._large = False
        self.count = 0

    def add(self, start: int, part: NDArray[Any]) -> None:
        self.count += part.size
        if self._zero:
            return
        if not part.all():
            self._zero = True
            return
        if self._large:
            return
        factors = part[part != 1]
        for at in range(0, factors.size, _PIECE):
            self._multiply(math.prod(factors[at : at + _PIECE].tolist()))
            if self._large:
                return

    def _multiply(self, factor: int) -> None:
        self._product *= factor
        self._large = self._product.bit_length() > MAX_BITS

    def merge(self, other: "ProductFold") -> None:
        self.count += other.count
        self._zero = self._zero or other._zero
        if not self._large:
            self._multiply(other._product)
        self._large = self._large or other._large

    def value(self) -> int:
        if self._zero:
            return 0
        if self._large:
            raise InvalidInput(f"the product has more than {MAX_BITS:,} bits, the most that an exact product may have")
        return int(self._product)

    def state(self) -> None:
        return None

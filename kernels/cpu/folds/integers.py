"""Ops whose value is an integer without an exact state: the number of elements that are not zero, and the product of
integers."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.patterns import is_nan, refuse_nan
from warpfold.kernels.cpu.folds.fold import StartFold
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import NanPolicy, Op, Value


class NonzeroFold:
    """How many elements there are, and how many are not zero."""

    def __init__(self, op: Op, dtype: DType, nan_policy: NanPolicy, ddof: int = 0) -> None:
        self._op = op
        self._dtype = dtype
        self._omit = dtype.is_float and nan_policy is NanPolicy.OMIT
        self._refuse = dtype.is_float and nan_policy is NanPolicy.RAISE
        self._nonzero = 0
        self.count = 0

    def add(self, start: int, part: NDArray[Any]) -> None:
        self.count += part.size
        if not self._dtype.is_float:
            self._nonzero += int(np.count_nonzero(part))
            return
        if self._refuse:
            refuse_nan(start, part, self._dtype)
        width = 8 * self._dtype.itemsize
        bits = part.view(f"uint{width}")
        self._nonzero += int(np.count_nonzero(bits & bits.dtype.type((1 << (width - 1)) - 1)))
        if self._omit:
            missing = int(np.count_nonzero(is_nan(part, self._dtype)))
            self.count -= missing
            self._nonzero -= missing

    def merge(self, other: "NonzeroFold") -> None:
        self.count += other.count
        self._nonzero += other._nonzero

    def value(self) -> Value:
        match self._op.name:
            case "any":
                return self._nonzero > 0
            case "all":
                return self._nonzero == self.count
        return self._nonzero

    def state(self) -> None:
        return None


MAX_BITS = 65_536
_PIECE = 256
"""Elements multiplied before the size is looked at: at most 2**14 bits more than MAX_BITS."""


class ProductFold:
    """The product as a Python integer. The fold stops multiplying once the product is too large, unless an element is
    zero."""

    def __init__(self, op: Op, dtype: DType, nan_policy: NanPolicy, ddof: int = 0) -> None:
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


FOLDS: Mapping[str, StartFold] = MappingProxyType({"nonzero": NonzeroFold, "product": ProductFold})
"""The folds of one source, by the names that rows of `kernels/ops.py` give."""

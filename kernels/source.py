"""Where the elements of a reduction come from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DType, Kind, dtype_of
from warpfold.kernels.generate import generate


class Source(Protocol):
    """A one-dimensional array of `count` elements of `dtype` that can be read piece by piece."""

    @property
    def dtype(self) -> DType: ...

    @property
    def count(self) -> int: ...

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Elements start … stop−1 on the host, shape (stop − start,), native byte order; True is the byte 1."""
        ...


@dataclass(frozen=True)
class ArraySource:
    """Elements of a NumPy array (or a memory map) of any shape, in C order."""

    array: NDArray[Any]

    @property
    def dtype(self) -> DType:
        return dtype_of(self.array.dtype)

    @property
    def count(self) -> int:
        return int(self.array.size)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        # reshape of a C-contiguous map is a view: nothing is read before it is used. Of any other layout it would be a
        # copy of everything, where `flat` copies the piece.
        flat = self.array.reshape(-1) if self.array.flags.c_contiguous else self.array.flat
        piece = np.asarray(flat[start:stop], dtype=self.dtype.numpy)
        # A file's True may be any byte but 0, and kernels add up bytes.
        return piece.view(np.uint8) != 0 if self.dtype.kind is Kind.BOOL else piece


@dataclass(frozen=True)
class GeneratedSource:
    """`count` elements of a named distribution (`kernels.generate.DISTRIBUTIONS`), the same bits on every backend."""

    distribution: str
    count: int
    seed: int
    dtype: DType
    parameters: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    def read(self, start: int, stop: int) -> NDArray[Any]:
        return generate(self, start, stop)

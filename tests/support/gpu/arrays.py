"""Arrays of awkward sizes and contents, the same in every run."""

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DType

SIZES = (1, 31, 32, 33, 255, 256, 257, 1023, 4097, 20_011)

KINDS = ("benign", "special", "equal")
LONGEST_PRODUCT = 257  # exact ones of more elements take too long


def data(kind: str, dtype: DType, size: int) -> NDArray[Any]:
    """`size` elements, the same in every run."""
    random = np.random.default_rng(zlib.crc32(f"{kind} {dtype.name} {size}".encode()))
    if not dtype.is_float:
        low, high = dtype.bounds
        if kind == "equal":
            return np.full(size, [low, high][size % 2], dtype.numpy)
        if kind == "special" or dtype.name == "bool":
            return random.choice(np.array([low, high, 0, 1], dtype.numpy), size)
        return random.integers(low, high, size, dtype.numpy, endpoint=True)
    if kind == "benign":
        real = random.standard_normal(size)
    elif kind == "special":
        # NaN, infinities and both zeros, rare enough that most arrays have a finite part to get wrong
        real = random.standard_normal(size)
        marked = random.random(size) < 4 / (size + 4)
        real[marked] = random.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], int(marked.sum()))
    else:
        real = np.full(size, random.choice([-0.0, np.inf, -np.inf, 1.5]))
    return real.astype(dtype.numpy)


def numbers(array: NDArray[Any], dtype: DType) -> list[Any]:
    """The elements as Python numbers, exactly."""
    listed: list[Any] = (array.astype(np.float64) if dtype.is_float else array).tolist()
    return listed

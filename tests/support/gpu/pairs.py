"""Pairs of arrays on which exact sums of products go wrong if they can: products cancel, overflow, or leave too little
for a double."""

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.gpu.adversarial import adversarial
from warpfold.kernels.dtypes import DType

Array = NDArray[Any]

OF_EACH = (
    ("normal", "normal"),
    ("any finite", "any finite"),
    ("special", "any finite"),
    ("special", "special"),
    ("negative zeros", "normal"),
    ("all largest", "all largest"),
    ("least and subnormal", "normal"),
    ("least and subnormal", "least and subnormal"),
)
CANCELLING, HARDLY, FAR_APART = "cancelling products", "hardly above ties", "products far apart"
PAIRS = (*(f"{x} times {y}" for x, y in OF_EACH), CANCELLING, HARDLY, FAR_APART)
"""The kinds of pairs."""


def pairs(data: str, dtype: DType, size: int, seed: int) -> tuple[Array, Array]:
    """Two arrays of `size` floats."""
    random = np.random.default_rng([zlib.crc32(data.encode()), dtype.itemsize, size, seed])
    if data == CANCELLING:  # each product and its negative, neighbours or far from each other, and one more
        half = size // 2
        scale = 2.0 ** (dtype.min_exponent // 2 if size % 3 == 0 else 0)  # of some hardly above the least number
        x, y = ((random.standard_normal(half) * scale).astype(dtype.numpy) for _ in range(2))
        order = random.permutation(2 * half) if seed % 2 else np.arange(2 * half).reshape(2, half).T.reshape(-1)
        odd = np.full(size % 2, 2.0**-20, dtype.numpy)
        twice = [np.concatenate([x, x])[order], np.concatenate([y, -y])[order]]
        return np.concatenate([twice[0], odd]), np.concatenate([twice[1], odd])
    if data == HARDLY:  # 1, and what adds up to little more or less than half of the last place of 1
        last, least = 2.0**-dtype.precision, 2.0 ** -(dtype.precision + 30)
        x, y = np.zeros(size, dtype.numpy), np.ones(size, dtype.numpy)
        x[::3], y[1::3] = least, -1
        x[:: max(1, size // 2)] = 1
        x[1 :: max(2, size // 2)] = last
        return x, y
    if data == FAR_APART:
        exponents = random.choice([-dtype.max_exponent // 3, 0, dtype.max_exponent // 3], (2, size))
        x, y = (np.ldexp(random.standard_normal(size), each).astype(dtype.numpy) for each in exponents)
        return x, y
    left, right = data.split(" times ")
    return adversarial(left, dtype, size, seed), adversarial(right, dtype, size, seed + 1)

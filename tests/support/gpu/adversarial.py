"""Arrays of floats on which exact sums go wrong if they can: every exponent, every edge of a window, full digits."""

import zlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DType

Array = NDArray[Any]


class _Maker:
    """Arrays of one dtype and size from one generator."""

    def __init__(self, dtype: DType, size: int, random: np.random.Generator) -> None:
        self.dtype, self.size, self.random = dtype, size, random
        self.word: np.dtype[Any] = np.dtype(f"u{dtype.itemsize}")
        self.fraction = dtype.precision - 1  # bits
        self.top = 2 * dtype.max_exponent - 1  # the exponent field of infinities
        self.infinity = self.top << self.fraction
        self.sign = 1 << (8 * dtype.itemsize - 1)

    def bits(self, bits: Array) -> Array:
        """Elements with these bits."""
        elements: Array = bits.astype(self.word).view(self.dtype.numpy)
        return elements

    def signs(self) -> Array:
        chosen: Array = np.where(self.random.random(self.size) < 0.5, self.word.type(self.sign), self.word.type(0))
        return chosen

    def constant(self, bits: int) -> Array:
        return self.bits(np.full(self.size, bits, self.word))

    def fields(self, low: int, high: int) -> Array:
        """Random signs and fractions, exponent fields from `low` to `high`, both included."""
        fields = self.random.integers(max(low, 0), min(high, self.top - 1), self.size, endpoint=True).astype(self.word)
        fractions = self.random.integers(0, 1 << self.fraction, self.size).astype(self.word)
        return self.bits((fields << self.word.type(self.fraction)) | fractions | self.signs())

    def real(self, values: Array) -> Array:
        with np.errstate(over="ignore", under="ignore"):
            narrow = values.astype(self.dtype.numpy)
        return np.where(np.isfinite(narrow), narrow, self.dtype.numpy.type(0))

    def cancelling(self) -> Array:
        """Every element and its negative, shuffled, and one more where the size is odd."""
        half = self.fields(0, self.top)[: self.size // 2]
        whole = np.concatenate([half, (half.view(self.word) ^ self.word.type(self.sign)).view(half.dtype)])
        self.random.shuffle(whole)
        return np.concatenate([whole, self.bits(np.ones(self.size % 2, self.word))])

    def drifting(self) -> Array:
        """Exponents that rise from the least to the greatest."""
        fields = np.sort(self.random.integers(0, self.top, self.size)).astype(self.word)
        return self.bits((fields << self.word.type(self.fraction)) | self.signs() | self.word.type(1))

    def special(self) -> Array:
        array = self.real(self.random.standard_normal(self.size))
        marked = self.random.random(self.size) < 0.02
        values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0]).astype(self.dtype.numpy)
        array[marked] = self.random.choice(values, int(marked.sum()))
        return array


_KINDS: Mapping[str, Callable[[_Maker], Array]] = MappingProxyType(
    {
        "normal": lambda make: make.real(make.random.standard_normal(make.size)),
        "lognormal": lambda make: make.real(np.exp(3 * make.random.standard_normal(make.size))),
        "mostly zeros": lambda make: make.real(
            np.where(make.random.random(make.size) < 0.9, 0, make.random.standard_normal(make.size))
        ),
        "negative zeros": lambda make: make.constant(make.sign),
        "zeros": lambda make: make.bits(make.signs()),
        "any bits": lambda make: make.random.integers(0, 256, make.size * make.dtype.itemsize, np.uint8).view(
            make.dtype.numpy
        ),
        "any finite": lambda make: make.fields(0, make.top),
        "cancelling": _Maker.cancelling,
        "special": _Maker.special,
        "drifting": _Maker.drifting,
        "subnormal": lambda make: make.fields(0, 0),
        "least and subnormal": lambda make: make.fields(0, 60),
        "greatest": lambda make: make.fields(make.top - 60, make.top),
        "as wide as a window": lambda make: make.fields(make.top // 2 - 36, make.top // 2 + 36),
        "half as wide": lambda make: make.fields(make.top // 2 - 17, make.top // 2 + 17),
        "all smallest": lambda make: make.constant(1),
        "all largest": lambda make: make.constant(make.infinity - 1),
        "all most negative": lambda make: make.constant(make.sign | (make.infinity - 1)),
        "all just below one": lambda make: make.constant(((make.top // 2) << make.fraction) - 1),
    }
)
ADVERSARIAL = tuple(_KINDS)


def adversarial(kind: str, dtype: DType, size: int, seed: int = 0) -> Array:
    """`size` elements of a kind of ADVERSARIAL, the same in every run, aligned as NumPy does."""
    random = np.random.default_rng(zlib.crc32(f"{kind} {dtype.name} {size} {seed}".encode()))
    return _KINDS[kind](_Maker(dtype, size, random))

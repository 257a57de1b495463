"""The data of a benchmark: one distribution for all cases, or a distribution that suits each dtype.

The lengths of segments and the keys of tables follow from a seed, so that every backend measures the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DTYPES, DType, Kind, dtype_named
from warpfold.kernels.generate import plan
from warpfold.kernels.source import GeneratedSource
from warpfold.kernels.studies.shapes import CaseShape

KEY = DTYPES["int32"]
"""The dtype of keys."""
_SMALL = 100
"""Integers up to this keep sums of 2⁵⁶ elements below 64 bits, where peers wrap."""


@dataclass(frozen=True, slots=True)
class Data:
    """How arrays are filled. Without a distribution: N(0, 1) for floats, whole numbers from −100 (or 0) to 100 for
    integers, a fair coin for bool."""

    distribution: str | None = None
    parameters: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    seed: int = 0

    def source(self, dtype: str, n: int) -> GeneratedSource:
        """`n` elements of `dtype`. Raises InvalidInput where the distribution cannot make them."""
        row = dtype_named(dtype)
        distribution, parameters = self.distribution, self.parameters
        if distribution is None:
            distribution, parameters = _suited(row)
        made = GeneratedSource(distribution, n, self.seed, row, parameters)
        plan(made)
        return made


def _suited(dtype: DType) -> tuple[str, Mapping[str, float]]:
    match dtype.kind:
        case Kind.FLOAT:
            return "normal", {}
        case Kind.INT:
            return "uniform", {"low": -_SMALL, "high": _SMALL}
        case Kind.UINT:
            return "uniform", {"low": 0, "high": _SMALL}
        case Kind.BOOL:
            return "uniform", {}


def bounds_of(shape: CaseShape, seed: int) -> NDArray[np.int64]:
    """The offsets of all segments, from 0 to `shape.n`. The last segment has what is left."""
    assert shape.segments is not None
    random = np.random.default_rng(seed)
    parts, total = [np.zeros(1, np.int64)], 0
    while total < shape.n:
        about = int((shape.n - total) / shape.segments) + 16
        ends = np.cumsum(random.geometric(1 / shape.segments, about)) + total
        parts.append(ends[: int(np.searchsorted(ends, shape.n))])
        total = int(ends[-1])
    parts.append(np.array([shape.n], np.int64))
    return np.concatenate(parts)


def keys_of(shape: CaseShape, seed: int) -> GeneratedSource:
    """The keys of a table, in random order."""
    assert shape.groups is not None
    # The elements have the seed itself: other draws keep keys and elements apart.
    other = (seed + 0x9E3779B97F4A7C15) % (1 << 64)
    return GeneratedSource("uniform", shape.n, other, KEY, {"low": 0, "high": shape.groups - 1})

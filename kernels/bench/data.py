"""The data of a benchmark: one distribution for all cases, or a distribution that suits each dtype."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from warpfold.kernels.dtypes import DType, Kind, dtype_named
from warpfold.kernels.generate import plan
from warpfold.kernels.source import GeneratedSource

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

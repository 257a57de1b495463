"""The axes of a study: it runs the product of five lists, which is bounded."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields

from warpfold.kernels.accuracy.methods import method_named
from warpfold.kernels.accuracy.point import AccuracyCase
from warpfold.kernels.bench.axes import check_axes
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput

OPS = ("sum", "mean", "dot", "norm2", "prod")
FLOATS = tuple(row.name for row in DTYPES.values() if row.is_float)
MAX_POINTS = 4096


@dataclass(frozen=True, slots=True)
class AccuracyAxes:
    """The values of each axis, in the order wanted.

    Raises InvalidInput naming the axis that is empty, repeats a value or holds one that is not known, or the longest
    one when there are more than MAX_POINTS combinations.
    """

    methods: tuple[str, ...]
    ops: tuple[str, ...]
    distributions: tuple[str, ...]
    dtypes: tuple[str, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        check_axes({axis.name: getattr(self, axis.name) for axis in fields(self)}, MAX_POINTS)
        for name in self.methods:
            method_named(name, "methods")
        _among(self.ops, OPS, "ops")
        _among(self.dtypes, FLOATS, "dtypes")
        if min(self.sizes) < 1:
            raise InvalidInput("an array has at least one element", "sizes")

    def __len__(self) -> int:
        return math.prod(len(getattr(self, axis.name)) for axis in fields(self))

    def cases(self) -> Iterator[AccuracyCase]:
        """Every case once. Those on the same array follow each other."""
        for dtype in self.dtypes:
            for distribution in self.distributions:
                for n in self.sizes:
                    for op in self.ops:
                        for method in self.methods:
                            yield AccuracyCase(method, op, distribution, dtype, n)


def _among(values: tuple[str, ...], known: tuple[str, ...], axis: str) -> None:
    for value in values:
        if value not in known:
            raise InvalidInput(f"{value!r} is not one of {', '.join(known)}", axis)

"""What an op comes to that keeps elements, or counts them, of all elements together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.backend import GroupedReduction, Reduction, Stages
from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import Op, Value, empty_value
from warpfold.kernels.ops.empties import defined
from warpfold.kernels.ops.operands import check_reached
from warpfold.kernels.strategy import EXACT


@dataclass(frozen=True, slots=True)
class Selected:
    """The values of `count` elements, of several side by side, arbitrary where these are too few; and where the time
    went."""

    values: NDArray[Any] | Sequence[Value]
    count: int
    load_ms: float
    kernel_ms: float
    stages: Stages
    prepare_ms: float = 0.0

    def single(self, op: Op, dtype: DType) -> Reduction:
        """The value of an op of elements of `dtype` that has one. Raises NoElements where there is none of so few."""
        if self.count:
            check_reached(op, self.count)
        (value,) = self.values.tolist() if isinstance(self.values, np.ndarray) else self.values
        return Reduction(
            value=value if self.count else empty_value(op, dtype),
            dtype=op.result_dtype(dtype),
            count=self.count,
            op=op.name,
            strategy=EXACT,
            correctly_rounded=True,
            load_ms=self.load_ms,
            kernel_ms=self.kernel_ms,
            prepare_ms=self.prepare_ms,
            stages=self.stages,
        )

    def grouped(self, op: Op, dtype: DType, shape: tuple[int, ...], kernel: str) -> GroupedReduction:
        """All values of the op, side by side on a last axis behind those of `shape`, which has one group."""
        counts = np.full(op.listed or 1, self.count)
        return GroupedReduction(
            values=defined(op, dtype, self.values, counts),
            shape=op.shape_of(shape),
            dtype=op.result_dtype(dtype),
            counts=tuple(counts.tolist()),
            op=op.name,
            strategy=EXACT,
            kernel=kernel,
            correctly_rounded=True,
            load_ms=self.load_ms,
            kernel_ms=self.kernel_ms,
            prepare_ms=self.prepare_ms,
            stages=self.stages,
        )

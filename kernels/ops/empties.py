"""What stands for the values of no elements, or too few, among many values: `Op.empty` of `kernels.ops`, or nothing."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.backend import LISTED
from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import Op, Value, empty_value
from warpfold.kernels.parts.grouping import Index


def with_empties(op: Op, dtype: DType, values: NDArray[Any], counts: Index) -> NDArray[Any]:
    """The values of `counts` elements of `dtype`, shape (values,), with the value of no elements where no element
    entered. It stays arbitrary where `op` has none."""
    if op.empty is None or counts.all():
        return values
    return np.where(counts == 0, np.asarray(empty_value(op, dtype), values.dtype), values)


def defined(
    op: Op, dtype: DType, values: Sequence[Value] | NDArray[Any], counts: Index, ddof: int = 0
) -> tuple[Value | None, ...] | NDArray[np.float64]:
    """The values as a `GroupedReduction` has them: `counts` elements of `dtype` entered each, and it is arbitrary where
    they are too few. None stands where `op` has no value of so few elements."""
    needed = [single.least_count(ddof) for single in op.singles()]
    missing = counts < (needed[0] if len(needed) == 1 else np.tile(needed, counts.size // len(needed)))
    if isinstance(values, np.ndarray):
        if values.size > LISTED and values.dtype == np.float64 and not missing.any():
            return with_empties(op, dtype, values, counts)
        values = values.tolist()
    if counts.all() and not missing.any():
        return tuple(values)
    empty = None if op.empty is None else empty_value(op, dtype)
    return tuple(
        None if gone else value if count else empty
        for value, count, gone in zip(values, counts.tolist(), missing.tolist(), strict=True)
    )

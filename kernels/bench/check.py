"""Checks that a measured reduction was right: a wrong answer has no speed."""

import math
from dataclasses import dataclass

from warpfold.kernels.bench.target import Loaded
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput, KernelError
from warpfold.kernels.ops import INTEGER, Op, Value
from warpfold.kernels.strategy import EXACT

_ROUNDINGS = 64
"""Errors are allowed to so many unit roundoffs of what was added up: far above any order of additions that a GPU
or a vectorised loop uses, far below a lost or doubled block of elements."""

_SUMS = frozenset({"sum", "mean"})


@dataclass(frozen=True, slots=True)
class Reference:
    """The correctly rounded value, and the size of what was added up: Σ|x| for a sum, |value| for sums of what has
    no sign."""

    value: Value
    magnitude: float


def reference_of(loaded: Loaded, op: str, dtype: DType, count: int) -> Reference | None:
    """What the exact strategy makes of the data; None where it claims nothing (products)."""
    try:
        value = _exactly(loaded, op)
        magnitude = abs(float(value))
        if dtype.is_float and op in _SUMS:
            magnitude = float(_exactly(loaded, "norm1")) / (count if op == "mean" else 1)
    except (InvalidInput, OverflowError):
        return None
    return Reference(value, magnitude)


def _exactly(loaded: Loaded, op: str) -> Value:
    workload = loaded.workload(op, EXACT)
    workload.run()
    return workload.value()


class WrongValue(KernelError):
    """A strategy gave another value than it may."""


def relative_error(op: Op, dtype: DType, value: Value, reference: Reference) -> float | None:
    """|value − reference| / |reference|, None where the reference is 0 and the value is not.

    Raises WrongValue where selections and integers differ at all, and where sums of floats (or means and norms of
    integers, which peers compute in floats) are further apart than 64 unit roundoffs of what was added up.
    """
    exact = reference.value
    if same(value, exact):
        return 0.0
    if op.adds:
        error = abs(float(value) - float(exact))
        if error <= _ROUNDINGS * _roundoff(op, dtype) * reference.magnitude:
            return error / abs(float(exact)) if exact else None
    raise WrongValue(f"wrong value: {op.name} gave {value!r}, and {exact!r} is right")


def _roundoff(op: Op, dtype: DType) -> float:
    """Half the distance from 1 to the next number of the type that a strategy may compute in; 0 for integers."""
    if op.result_dtype(dtype) == INTEGER:
        return 0.0
    # Some peers take means of integers in float32.
    return math.ldexp(1.0, -(dtype.precision if dtype.is_float else 24))


def same(a: Value, b: Value) -> bool:
    return a == b or (a != a and b != b)  # noqa: PLR0124 (NaN is the only value unequal to itself)

"""Checks that a measured reduction was right: a wrong answer has no speed."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.bench.target import Loaded, LoadedShape
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput, KernelError
from warpfold.kernels.exact.finish import value_of
from warpfold.kernels.exact.rounding import round_ratio
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.ops import INTEGER, Finish, Op, Terms, Value, op_named
from warpfold.kernels.ops.quantiles import between
from warpfold.kernels.strategy import EXACT

_ROUNDINGS = 64
"""The error that is allowed, in unit roundoffs of the size of the terms: far above the error of any order of additions
that a GPU or a vectorised loop uses, and far below that of a lost or doubled block of elements."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The correctly rounded value, and the size of the terms: Σ|x| for a sum, |value| for sums of terms without a
    sign."""

    value: Value
    magnitude: float


def reference_of(loaded: Loaded, op: str, dtype: DType, count: int) -> Reference | None:
    """What the exact strategy makes of the data; None where it claims nothing (products)."""
    try:
        value = _exactly(loaded, op)
        magnitude = abs(float(value))
        row = op_named(op)
        if dtype.is_float and row.terms is Terms.VALUES and not row.magnitudes:
            magnitude = float(_exactly(loaded, "norm1")) / (count if row.finish is Finish.MEAN else 1)
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


_CHECKED_ELEMENTS = 1 << 20
"""Values of more elements are not added up a second time on the host."""


@dataclass(frozen=True, slots=True)
class ShapedReference:
    """The correctly rounded values of a shape, and the sizes of their terms, each of shape (values,)."""

    values: NDArray[Any]
    magnitudes: NDArray[np.float64]

    @classmethod
    def of(cls, loaded: LoadedShape, op: str, dtype: DType) -> "ShapedReference":
        """What the exact strategy makes of the data. The first value, the last and one between are made a second time
        on the host, by the definition of an exact state. Raises WrongValue where they differ."""
        workload = loaded.workload(op, EXACT)
        workload.run()
        values, counts = workload.values(), loaded.counts
        row = op_named(op)
        for number in sorted({0, values.size // 2 + values.size // 7, values.size - 1} - {-1}):
            if not 0 < counts[number] <= _CHECKED_ELEMENTS:
                continue
            wanted = _value(row, loaded.members(number), dtype)
            if not same(float(values[number]), float(wanted)):
                raise WrongValue(f"wrong value: exact {op} gave {values[number]!r} of value {number}, not {wanted!r}")
        # Σ|x| is at most as much, and within a small factor of it for the distributions of benchmarks.
        size = loaded.largest if op == "mean" else counts * loaded.largest
        return cls(values, np.broadcast_to(np.asarray(size, np.float64), values.shape))


def _value(op: Op, members: NDArray[Any], dtype: DType) -> Value:
    """The value of `op` of these elements, in the terms of the definition."""
    if op.terms is Terms.VALUES and op.adds:
        return value_of(op, [ExactState.of(members)], op.result_dtype(dtype))
    if op.selects:  # the elements are ordered and interpolated apart from the kernels
        at = between(str(op.parameters.method), op.parameters.each_q[0], members.size)
        ordered = np.sort(members.astype(np.float64) if dtype.is_float else members)
        below, above = (Fraction(ordered[place].item()) for place in (at.low, at.high))
        true = (1 - at.weight) * below + at.weight * above
        return round_ratio(true.numerator, true.denominator, 0, DTYPES[op.result_dtype(dtype)])
    if op.keeps:
        return int(np.unique(members).size)
    value: Value = getattr(np, op.name)(members).item()
    return value


def relative_error_of_shape(op: Op, dtype: DType, values: NDArray[Any], reference: ShapedReference) -> float | None:
    """The largest relative error among the values; None where one that should be 0 is not.

    Raises WrongValue as `relative_error` does, with the number of the first value that is wrong.
    """
    exact = reference.values.astype(np.float64)
    got = values.astype(np.float64)
    with np.errstate(invalid="ignore"):
        errors = np.where((got == exact) | (np.isnan(got) & np.isnan(exact)), 0.0, np.abs(got - exact))
    allowed = _ROUNDINGS * _roundoff(op, dtype) * reference.magnitudes if op.adds else np.zeros_like(errors)
    wrong = np.flatnonzero(~(errors <= allowed))
    if wrong.size:
        first = int(wrong[0])
        raise WrongValue(
            f"wrong value: {op.name} gave {got[first].item()!r} of value {first}, and {exact[first].item()!r} is right"
        )
    if np.any((errors > 0) & (exact == 0)):
        return None
    return float(np.max(errors[errors > 0] / np.abs(exact[errors > 0]), initial=0.0))


def _roundoff(op: Op, dtype: DType) -> float:
    """Half the distance from 1 to the next number of the type that a strategy may compute in; 0 for integers."""
    if op.result_dtype(dtype) == INTEGER:
        return 0.0
    # Some peers take means of integers in float32.
    return math.ldexp(1.0, -(dtype.precision if dtype.is_float else 24))


def same(a: Value, b: Value) -> bool:
    return a == b or (a != a and b != b)  # noqa: PLR0124 (NaN is the only value unequal to itself)

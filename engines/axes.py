"""The arguments of reductions of arrays on a GPU: which dtypes, which axes, and the shapes of results."""

from collections.abc import Sequence

from warpfold.kernels.cuda.exact.shapes import SHAPES
from warpfold.kernels.dtypes import DTYPES, DType

Axes = int | Sequence[int] | None


def float_dtype(name: str) -> DType:
    """The row of a float dtype by its name. Raises TypeError for others."""
    if name not in SHAPES:
        raise TypeError(f"exact sums take {', '.join(SHAPES)}, not {name}; of integers the sum of any library is exact")
    return DTYPES[name]


def normal_axes(axis: Axes, rank: int) -> frozenset[int]:
    """The axes that are reduced. Raises ValueError where one does not exist or occurs twice."""
    if axis is None:
        return frozenset(range(rank))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for number in axes:
        if not -rank <= number < rank:
            raise ValueError(f"axis {number} does not exist: the array has {rank} axes")
    reduced = frozenset(number % rank for number in axes)
    if len(reduced) != len(axes):
        raise ValueError(f"axis {list(axes)} names an axis twice")
    return reduced


def result_shape(shape: Sequence[int], axes: frozenset[int], *, keepdims: bool) -> tuple[int, ...]:
    """The shape of the values."""
    kept = ((axis, 1 if axis in axes else length) for axis, length in enumerate(shape))
    return tuple(length for axis, length in kept if keepdims or axis not in axes)


def check_out(shape: tuple[int, ...], dtype: str, out_shape: tuple[int, ...], out_dtype: str) -> None:
    """Raise ValueError unless `out` takes values of this shape and dtype."""
    if out_shape != shape or out_dtype != dtype:
        raise ValueError(
            f"out has the shape {out_shape} and the dtype {out_dtype}; the values have the shape {shape} and {dtype}"
        )


def check_pair(shape: tuple[int, ...], dtype: str, other_shape: tuple[int, ...], other_dtype: str) -> None:
    """Raise ValueError unless two operands of a dot are alike."""
    if shape != other_shape or dtype != other_dtype:
        raise ValueError(
            f"dot needs two arrays of one shape and dtype, not {shape} of {dtype} and {other_shape} of {other_dtype}"
        )


def check_ddof(ddof: int) -> None:
    """Raise ValueError for a ddof below 0."""
    if ddof < 0:
        raise ValueError(f"ddof is {ddof}; it must not be negative")

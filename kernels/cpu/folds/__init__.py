"""Reductions that read an array piece by piece, in any order, and merge: what the exact strategy is made of."""

from typing import Any, Protocol, Self, TypeVar

from numpy.typing import NDArray

from warpfold.kernels.dtypes import DType
from warpfold.kernels.exact import ExactState
from warpfold.kernels.ops import NanPolicy, Op, Terms, Value

P_contra = TypeVar("P_contra", contravariant=True)


class Fold(Protocol[P_contra]):
    """A reduction under way. One serves one thread; the order of pieces and merges does not change its value."""

    @property
    def count(self) -> int:
        """Elements that entered: all that were added but, with NanPolicy.OMIT, the NaNs."""
        ...

    def add(self, start: int, part: P_contra) -> None:
        """Take in elements start … start + len − 1 of the array, or of both as a pair, native byte order.

        Raises InvalidInput naming the first NaN's index where the policy is RAISE.
        """
        ...

    def merge(self, other: Self) -> None:
        """Take in all that `other`, a fold of the same op, dtype and policy, took in."""
        ...

    def value(self) -> Value:
        """The value over the elements so far, at least one; InvalidInput where it has none."""
        ...

    def state(self) -> ExactState | None:
        """The exact accumulator, where the op has one."""
        ...


def fold_for(op: Op, dtype: DType, nan_policy: NanPolicy, ddof: int = 0) -> Fold[NDArray[Any]]:
    """An empty fold of `op`, an op of one source, over elements of `dtype`."""
    from warpfold.kernels.cpu.folds import extremes, moments, nonzero, products, sums

    if op.terms is Terms.MOMENTS:
        return moments.Moments(op, dtype, nan_policy, ddof)
    if op.terms is not Terms.NONE:
        return sums.Sum(op, dtype, nan_policy)
    match op.name:
        case "prod":
            return products.Product(dtype)
        case "argmin" | "argmax":
            return extremes.Place(op, dtype, nan_policy)
        case "min" | "max" | "norm_inf":
            return extremes.Extremum(op, dtype, nan_policy)
        case "count_nonzero" | "any" | "all":
            return nonzero.Nonzero(op, dtype, nan_policy)
    raise NotImplementedError(op.name)

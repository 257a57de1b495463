"""The interface of every fold: it reads an array piece by piece, in any order, and merges with other folds."""

from collections.abc import Callable
from typing import Any, Protocol, Self, TypeVar

from numpy.typing import NDArray

from warpfold.kernels.dtypes import DType
from warpfold.kernels.exact import ExactState
from warpfold.kernels.ops import NanPolicy, Op, Value

P_contra = TypeVar("P_contra", contravariant=True)


class Fold(Protocol[P_contra]):
    """A reduction under way. A fold serves one thread. The order of pieces and merges does not change its value."""

    @property
    def count(self) -> int:
        """How many elements were added, without the NaNs where the policy is OMIT."""
        ...

    def add(self, start: int, part: P_contra) -> None:
        """Take in elements start … start + len − 1 of the array, or of both as a pair, native byte order.

        Raises InvalidInput naming the first NaN's index where the policy is RAISE.
        """
        ...

    def merge(self, other: Self) -> None:
        """Take in all elements that `other` took in, a fold of the same op, dtype and policy."""
        ...

    def value(self) -> Value:
        """The value of the elements so far, of which there is at least one. Raises InvalidInput where they have no
        value."""
        ...

    def state(self) -> ExactState | None:
        """The exact accumulator, where the op has one."""
        ...


StartFold = Callable[[Op, DType, NanPolicy, int], Fold[NDArray[Any]]]
"""Makes an empty fold of an op over elements of a dtype, with a policy for NaN and delta degrees of freedom."""

"""Exact sums of CuPy arrays of floats, each array in one launch.

What is added goes to integers in the GPU's memory that never round; what is fetched is the state that the portable
definition, `kernels.exact.ExactState.add`, gives for the same elements, bit for bit. Arrays have one dimension and no
gaps; bfloat16 comes as the uint16 of its bits. Work goes to the current stream.
"""

from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from kernels.cuda.exact.launches import VECTOR_BYTES, Launches
from kernels.cuda.exact.shapes import Kind
from kernels.cuda.exact.total import WORDS, Fetched, FetchedMoments
from kernels.cuda.launch import Gpu
from kernels.dtypes import DType
from kernels.errors import InvalidInput
from kernels.exact.state import ExactState
from kernels.ops import Terms


class ExactAccumulator:
    """The exact sum of what is added to it: values of a float `dtype` (their `magnitudes` if so), or squares.

    Raises InvalidInput for a dtype that is no float or terms that are neither values nor products.
    """

    def __init__(self, gpu: Gpu, dtype: DType, terms: Terms, *, magnitudes: bool = False) -> None:
        if terms not in WORDS:
            raise InvalidInput(f"an exact sum is of values or products, not of {terms}")
        self.kind = Kind.SQUARES if terms is Terms.PRODUCTS else Kind.MAGNITUDES if magnitudes else Kind.VALUES
        self._sum = _Sum(Launches(gpu, dtype, self.kind, WORDS[terms]), Fetched())

    def add(self, array: Any) -> None:
        """Add all elements of `array`."""
        self._sum.add(array)

    @property
    def nans(self) -> int:
        """How many elements were NaN; waits for the work."""
        return self._sum.fetch().nans

    def state(self, *, omit_nan: bool = False) -> ExactState:
        """The sum so far, NaN elements left out and not counted if `omit_nan`; waits for the work."""
        return self._sum.fetch().state(self.kind, self._sum.count, omit_nan=omit_nan)


class ExactMoments:
    """The exact sums of the values and of the squares of what is added to it, in one read of a float `dtype`.

    Raises InvalidInput for a dtype that is no float.
    """

    def __init__(self, gpu: Gpu, dtype: DType) -> None:
        words = WORDS[Terms.VALUES] + WORDS[Terms.PRODUCTS]
        self._sum = _Sum(Launches(gpu, dtype, Kind.MOMENTS, words), FetchedMoments())

    def add(self, array: Any) -> None:
        """Add all elements of `array`."""
        self._sum.add(array)

    @property
    def nans(self) -> int:
        """How many elements were NaN; waits for the work."""
        return self._sum.fetch().values.nans

    def states(self, *, omit_nan: bool = False) -> tuple[ExactState, ExactState]:
        """The sums of values and of squares so far, NaN elements left out and not counted if `omit_nan`; waits for the
        work."""
        return self._sum.fetch().states(self._sum.count, omit_nan=omit_nan)


class ExactDot:
    """The exact sum of the products of pairs of elements of a float `dtype`.

    Raises InvalidInput for a dtype that is no float.
    """

    def __init__(self, gpu: Gpu, dtype: DType) -> None:
        self._sum = _Sum(Launches(gpu, dtype, Kind.PRODUCTS, WORDS[Terms.PRODUCTS]), Fetched())

    def add(self, left: Any, right: Any) -> None:
        """Add left[i] · right[i] for two arrays of one length. Raises InvalidInput if their lengths differ."""
        if left.size != right.size:
            raise InvalidInput(f"products of {left.size:,} with {right.size:,} elements are undefined", "other")
        self._sum.add(left, _alike(right, left))

    @property
    def nans(self) -> int:
        """How many pairs had a NaN element; waits for the work."""
        return self._sum.fetch().nans

    def state(self, *, omit_nan: bool = False) -> ExactState:
        """The sum so far, pairs with a NaN element left out and not counted if `omit_nan`; waits for the work."""
        return self._sum.fetch().state(Kind.PRODUCTS, self._sum.count, omit_nan=omit_nan)


class _Total(Protocol):
    @classmethod
    def of_words(cls, words: NDArray[np.uint64]) -> Self: ...

    def plus(self, other: Self) -> Self: ...


T = TypeVar("T", bound=_Total)


class _Sum(Generic[T]):
    """What launches have added so far, and how many terms: a part fetched, the rest in the GPU's memory."""

    def __init__(self, launches: Launches, empty: T) -> None:
        self._launches, self._fetched = launches, empty
        self.count = 0

    def add(self, *arrays: Any) -> None:
        if not arrays[0].size:
            return
        if not self._launches.room:
            self.fetch()
        self._launches.start(*arrays)
        self.count += int(arrays[0].size)

    def fetch(self) -> T:
        words = self._launches.take()
        if words is not None:
            self._fetched = self._fetched.plus(self._fetched.of_words(words))
        return self._fetched


def _alike(array: Any, model: Any) -> Any:
    """`array`, or a copy of it, that lies between boundaries of 16 bytes as `model` does."""
    import cupy

    start = int(model.data.ptr) % VECTOR_BYTES // int(model.itemsize)
    if (int(array.data.ptr) - int(model.data.ptr)) % VECTOR_BYTES == 0:
        return array
    room = cupy.empty(start + array.size, dtype=array.dtype)
    room[start:] = array
    return room[start:]

"""Exact sums of CuPy arrays of floats, each array in one launch.

What is added goes to integers in the GPU's memory that never round; what is fetched is the state that the portable
definition, `kernels.exact.ExactState.add`, gives for the same elements, bit for bit. Arrays have one dimension and no
gaps; bfloat16 comes as the uint16 of its bits. Work goes to the current stream.
"""

from typing import Any

from warpfold.kernels.cuda.exact.launches import Launches
from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.cuda.exact.total import states_of_limbs
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.launch_shape import VECTOR_BYTES
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.exact.terms import ORIGIN
from warpfold.kernels.ops import Terms


class ExactAccumulator:
    """The exact sum of what is added to it: values of a float `dtype` (their `magnitudes` if so), or squares.

    Raises InvalidInput for a dtype that is no float or terms that are neither values nor products.
    """

    def __init__(self, gpu: Gpu, dtype: DType, terms: Terms, *, magnitudes: bool = False) -> None:
        if terms not in ORIGIN:
            raise InvalidInput(f"an exact sum is of values or products, not of {terms}")
        self.kind = SumKind.SQUARES if terms is Terms.PRODUCTS else SumKind.MAGNITUDES if magnitudes else SumKind.VALUES
        self._launches = Launches(gpu, dtype, self.kind)

    def add(self, array: Any) -> None:
        """Add all elements of `array`."""
        _start(self._launches, array)

    @property
    def limbs(self) -> Any:
        """The total in the GPU's memory, a CuPy array of int64 that later additions go to as well. Limbs of the same
        kind from several GPUs may be added up, by NCCL for one; `states_of_limbs` makes states of them."""
        return self._launches.limbs

    def state(self, *, omit_nan: bool = False) -> ExactState:
        """The sum so far, NaN elements left out and not counted if `omit_nan`; waits for the work."""
        return states_of_limbs(self.kind, self.limbs.get(), omit_nan=omit_nan)[0]


class ExactMoments:
    """The exact sums of the values and of the squares of what is added to it, in one read of a float `dtype`.

    Raises InvalidInput for a dtype that is no float.
    """

    kind = SumKind.MOMENTS

    def __init__(self, gpu: Gpu, dtype: DType) -> None:
        self._launches = Launches(gpu, dtype, self.kind)

    def add(self, array: Any) -> None:
        """Add all elements of `array`."""
        _start(self._launches, array)

    @property
    def limbs(self) -> Any:
        """Both totals in the GPU's memory, as those of an ExactAccumulator."""
        return self._launches.limbs

    def states(self, *, omit_nan: bool = False) -> tuple[ExactState, ExactState]:
        """The sums of values and of squares so far, NaN elements left out and not counted if `omit_nan`; waits for the
        work."""
        values, squares = states_of_limbs(self.kind, self.limbs.get(), omit_nan=omit_nan)
        return values, squares


class ExactDot:
    """The exact sum of the products of pairs of elements of a float `dtype`.

    Raises InvalidInput for a dtype that is no float.
    """

    kind = SumKind.PRODUCTS

    def __init__(self, gpu: Gpu, dtype: DType) -> None:
        self._launches = Launches(gpu, dtype, self.kind)

    def add(self, left: Any, right: Any) -> None:
        """Add left[i] · right[i] for two arrays of one length. Raises InvalidInput if their lengths differ."""
        if left.size != right.size:
            raise InvalidInput(f"products of {left.size:,} with {right.size:,} elements are undefined", "other")
        _start(self._launches, left, _alike(right, left))

    @property
    def limbs(self) -> Any:
        """The total in the GPU's memory, as that of an ExactAccumulator."""
        return self._launches.limbs

    def state(self, *, omit_nan: bool = False) -> ExactState:
        """The sum so far, pairs with a NaN element left out and not counted if `omit_nan`; waits for the work."""
        return states_of_limbs(self.kind, self.limbs.get(), omit_nan=omit_nan)[0]


def _start(launches: Launches, *arrays: Any) -> None:
    if arrays[0].size:
        launches.start(*arrays)


def _alike(array: Any, model: Any) -> Any:
    """`array`, or a copy of it, that lies between boundaries of 16 bytes as `model` does."""
    import cupy

    start = int(model.data.ptr) % VECTOR_BYTES // int(model.itemsize)
    if (int(array.data.ptr) - int(model.data.ptr)) % VECTOR_BYTES == 0:
        return array
    room = cupy.empty(start + array.size, dtype=array.dtype)
    room[start:] = array
    return room[start:]

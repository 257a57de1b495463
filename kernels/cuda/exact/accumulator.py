"""Exact sums of CuPy arrays, each array in one launch.

Elements are added to integers in the GPU's memory that never round. The state that is fetched is bit for bit the one
that the portable definition, `kernels.exact.ExactState.add`, gives for the same elements. Arrays have one dimension and
no gaps; bfloat16 comes as the uint16 of its bits. Work goes to the current stream.
"""

from pathlib import Path
from typing import Any

import numpy as np

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.elements import element
from warpfold.kernels.cuda.exact.launch import WholeAddition
from warpfold.kernels.cuda.exact.shapes import SHAPES, SumKind
from warpfold.kernels.cuda.exact.total import Limbs, states_of_limbs
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.launch_shape import GRID_STRIDE, VECTOR_BYTES
from warpfold.kernels.cuda.gpu.packed import word_of
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact.encoding import ORIGIN
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.ops import Terms


class _Adding:
    """The additions of `kind` for a float `dtype`, and their total in the GPU's memory.

    Raises InvalidInput for a dtype that is no float.
    """

    def __init__(self, gpu: Gpu, dtype: DType, kind: SumKind) -> None:
        if dtype.name not in SHAPES:
            raise InvalidInput(f"{dtype.name} is not summed exactly by floating point")
        self._addition = WholeAddition(gpu, dtype, kind)
        self._limbs = Limbs(kind)

    @property
    def limbs(self) -> Any:
        """The limbs of the total, a CuPy array of int64."""
        return self._limbs.array

    def add(self, *arrays: Any) -> None:
        """Add arrays of one length that lie alike between boundaries of 16 bytes."""
        count = int(arrays[0].size)
        if not count:
            return
        self._limbs.make_room(self._addition.added(word_of(arrays[0]), count))
        for planned in self._addition.planned(arrays, count, self.limbs):
            launch = planned.launch
            launch.kernel(planned.grid, launch.threads, planned.args, shared=launch.shared)


class ExactAccumulator:
    """The exact sum of the arrays that are added: of their values, of their `magnitudes`, or of their squares. Their
    `dtype` is a float.

    Raises InvalidInput for a dtype that is no float or terms that are neither values nor products.
    """

    def __init__(self, gpu: Gpu, dtype: DType, terms: Terms, *, magnitudes: bool = False) -> None:
        if terms not in ORIGIN:
            raise InvalidInput(f"an exact sum is of values or products, not of {terms}")
        self.kind = SumKind.SQUARES if terms is Terms.PRODUCTS else SumKind.MAGNITUDES if magnitudes else SumKind.VALUES
        self._adding = _Adding(gpu, dtype, self.kind)

    def add(self, array: Any) -> None:
        """Add all elements of `array`."""
        self._adding.add(array)

    @property
    def limbs(self) -> Any:
        """The total in the GPU's memory, a CuPy array of int64 that later additions go to as well. Limbs of the same
        kind from several GPUs may be added up, by NCCL for one; `states_of_limbs` makes states of them."""
        return self._adding.limbs

    def state(self, *, omit_nan: bool = False) -> ExactState:
        """The sum so far, NaN elements left out and not counted if `omit_nan`; waits for the work."""
        return states_of_limbs(self.kind, self.limbs.get(), omit_nan=omit_nan)[0]


class ExactMoments:
    """The exact sums of the values and of the squares of the arrays that are added, in one read. Their `dtype` is a
    float.

    Raises InvalidInput for a dtype that is no float.
    """

    kind = SumKind.MOMENTS

    def __init__(self, gpu: Gpu, dtype: DType) -> None:
        self._adding = _Adding(gpu, dtype, self.kind)

    def add(self, array: Any) -> None:
        """Add all elements of `array`."""
        self._adding.add(array)

    @property
    def limbs(self) -> Any:
        """Both totals in the GPU's memory, as those of an ExactAccumulator."""
        return self._adding.limbs

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
        self._adding = _Adding(gpu, dtype, self.kind)

    def add(self, left: Any, right: Any) -> None:
        """Add left[i] · right[i] for two arrays of one length. Raises InvalidInput if their lengths differ."""
        if left.size != right.size:
            raise InvalidInput(f"products of {left.size:,} with {right.size:,} elements are undefined", "other")
        self._adding.add(left, alike(right, left))

    @property
    def limbs(self) -> Any:
        """The total in the GPU's memory, as that of an ExactAccumulator."""
        return self._adding.limbs

    def state(self, *, omit_nan: bool = False) -> ExactState:
        """The sum so far, pairs with a NaN element left out and not counted if `omit_nan`; waits for the work."""
        return states_of_limbs(self.kind, self.limbs.get(), omit_nan=omit_nan)[0]


def alike(array: Any, model: Any) -> Any:
    """`array`, or a copy of it, at the same distance from a boundary of 16 bytes as `model`."""
    import cupy

    start = int(model.data.ptr) % VECTOR_BYTES // int(model.itemsize)
    if (int(array.data.ptr) - int(model.data.ptr)) % VECTOR_BYTES == 0:
        return array
    room = cupy.empty(start + array.size, dtype=array.dtype)
    room[start:] = array
    return room[start:]


SOURCE = Path(__file__).parent.parent / "sources" / "integer_dot.cu"
ADDED = 32
"""More numbers than a block adds to one limb."""


def integer_dot_unit(left: DType, right: DType) -> Unit:
    """The kernel for products of two dtypes that are no floats."""
    return Unit(SOURCE, (f"integer_dot<{element(left)}, {element(right)}>",))


def integer_dot_units() -> tuple[Unit, ...]:
    """The units for the compile matrix: each dtype with itself and with int64."""
    rows = [row for row in DTYPES.values() if not row.is_float]
    pairs = dict.fromkeys([(row, other) for row in rows for other in (row, DTYPES["int64"])])
    return tuple(integer_dot_unit(*pair) for pair in pairs)


class ExactIntegerDot:
    """The exact sum of the products of pairs of integers or truth values, of two dtypes that are no floats."""

    kind = SumKind.PRODUCTS

    def __init__(self, gpu: Gpu, left: DType, right: DType) -> None:
        unit = integer_dot_unit(left, right)
        self._kernel = gpu.kernel(unit, unit.kernels[0])
        self._multiprocessors = gpu.multiprocessors
        self._limbs = Limbs(self.kind)

    def add(self, left: Any, right: Any) -> None:
        """Add left[i] · right[i] for two CuPy arrays of one length, of one dimension and no gaps."""
        if not left.size:
            return
        blocks, threads = GRID_STRIDE.grid(left.size, left.itemsize, self._multiprocessors)
        self._limbs.make_room(ADDED * blocks)
        self._kernel(blocks, threads, (left, right, np.uint64(left.size), self._limbs.array))

    def state(self, *, omit_nan: bool = False) -> ExactState:
        """The sum so far; waits for the work. No integer is NaN."""
        return states_of_limbs(self.kind, self._limbs.array.get(), omit_nan=omit_nan)[0]

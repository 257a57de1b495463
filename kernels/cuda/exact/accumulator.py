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
from warpfold.kernels.exact.state import ExactState


class ExactAccumulator:
    """The exact sums of a `kind` of the arrays that are added, of a float `dtype`: of their values, magnitudes or
    squares, of values and of squares in one read, or of the products of two arrays.

    Raises InvalidInput for a dtype that is no float.
    """

    def __init__(self, gpu: Gpu, dtype: DType, kind: SumKind) -> None:
        if dtype.name not in SHAPES:
            raise InvalidInput(f"{dtype.name} is not summed exactly by floating point")
        self.kind = kind
        self._addition = WholeAddition(gpu, dtype, kind)
        self._limbs = Limbs(kind)

    def add(self, array: Any, *others: Any) -> None:
        """Add all elements of `array`, or its products with those of another one. Raises InvalidInput if their lengths
        differ."""
        count = int(array.size)
        for other in others:
            if other.size != count:
                raise InvalidInput(f"products of {count:,} with {other.size:,} elements are undefined", "other")
        if not count:
            return
        arrays = (array, *(alike(other, array) for other in others))
        self._limbs.make_room(self._addition.added(word_of(array), count))
        for planned in self._addition.planned(arrays, count, self.limbs):
            launch = planned.launch
            launch.kernel(planned.grid, launch.threads, planned.args, shared=launch.shared)

    @property
    def limbs(self) -> Any:
        """The total in the GPU's memory, a CuPy array of int64 that later additions go to as well. Limbs of the same
        kind from several GPUs may be added up, by NCCL for one; `states_of_limbs` makes states of them."""
        return self._limbs.array

    def states(self, *, omit_nan: bool = False) -> tuple[ExactState, ...]:
        """The sums so far, those of squares behind those of values; NaN elements, or pairs with one, are left out and
        not counted if `omit_nan`. Waits for the work."""
        return states_of_limbs(self.kind, self.limbs.get(), omit_nan=omit_nan)


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

    def states(self, *, omit_nan: bool = False) -> tuple[ExactState, ...]:
        """The sum so far; waits for the work. No integer is NaN."""
        return states_of_limbs(self.kind, self._limbs.array.get(), omit_nan=omit_nan)

"""Exact sums of CuPy arrays, each array in one launch.

Elements are added to integers in the GPU's memory that never round. The state that is fetched is bit for bit the one
that the portable definition, `kernels.exact.ExactState.add`, gives for the same elements. Arrays have one dimension and
no gaps; bfloat16 comes as the uint16 of its bits. Work goes to the current stream.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.elements import element
from warpfold.kernels.cuda.exact.shapes import (
    CHOICES,
    SHAPES,
    SURVEYED,
    SumKind,
    chosen_names,
    chosen_shapes,
    chosen_unit,
    exact_unit,
    kernel_name,
    survey_name,
)
from warpfold.kernels.cuda.exact.total import Limbs, states_of_limbs
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.launch_shape import GRID_STRIDE, VECTOR_BYTES, LaunchShape
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact.encoding import ORIGIN
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.ops import Terms

MOST_OF_BLOCK = 29
"""A block of the kernels that are chosen may have fewer than 2**29 elements (include/exact_bands.cuh)."""


class Launches:
    """The kernel of `kind` for a float `dtype`, and its total in the GPU's memory.

    Raises InvalidInput for a dtype that is no float.
    """

    def __init__(self, gpu: Gpu, dtype: DType, kind: SumKind) -> None:
        if dtype.name not in SHAPES:
            raise InvalidInput(f"{dtype.name} is not summed exactly by floating point")
        self.itemsize = dtype.itemsize
        unit, shape = exact_unit(dtype, gpu.shared_per_block), SHAPES[dtype.name][kind].fitted(gpu.shared_per_block)
        self._launch = _Launch.of(gpu, unit, kernel_name(dtype, kind, shape), shape)
        self._limbs = Limbs(kind)
        self._gpu, self._dtype, self._kind = gpu, dtype, kind
        self._surveyed = SURVEYED[dtype.name] if kind in CHOICES.get(dtype.name, {}) else None
        self._choice: _Choice | None = None

    @property
    def limbs(self) -> Any:
        """The limbs of the total, a CuPy array of int64."""
        return self._limbs.array

    def start(self, *arrays: Any) -> None:
        """Add arrays of one length, at least 1, that lie alike between boundaries of 16 bytes."""
        count = int(arrays[0].size)
        most = self._gpu.multiprocessors << MOST_OF_BLOCK
        if self._surveyed is not None and self._surveyed <= count < most:
            (array,) = arrays
            if self._choice is None:
                self._choice = _Choice.of(self._gpu, self._dtype, self._kind)
            self._choice.start(array, self._limbs, self.itemsize)
            return
        launch = self._launch
        grid = launch.blocks(arrays[0], self.itemsize)
        self._limbs.make_room(most_added(grid, count))
        launch.kernel(grid, launch.threads, (*arrays, np.uint64(count), self.limbs), shared=launch.shared)


@dataclass(frozen=True, slots=True)
class _Launch:
    """A kernel, the threads and the bytes of shared memory of a block, how many reads of 16 bytes a tile has, and how
    many blocks find room."""

    kernel: Any
    threads: int
    shared: int
    tile: int
    resident: int

    @classmethod
    def of(cls, gpu: Gpu, unit: Unit, name: str, shape: LaunchShape) -> "_Launch":
        kernel, shared = gpu.kernel(unit, name), shape.threads * shape.shared
        resident = kernel.blocks_per_multiprocessor(shape.threads, shared) * gpu.multiprocessors
        return cls(kernel, shape.threads, shared, shape.threads * shape.flight, resident)

    def blocks(self, array: Any, itemsize: int) -> int:
        """Blocks for an array."""
        return min(self.resident, self._tiles(array, itemsize))

    def _tiles(self, array: Any, itemsize: int) -> int:
        """How many tiles `Vectors` in include/exact_tiles.cuh makes of the array."""
        size, lanes = int(array.size), VECTOR_BYTES // itemsize
        head = min(size, -int(array.data.ptr) % VECTOR_BYTES // itemsize)
        whole = (size - head) // lanes
        return -(-(size - whole * (lanes - 1)) // self.tile)


@dataclass(frozen=True, slots=True)
class _Choice:
    """Kernels of which the data choose one: `survey` writes its number to `number`, and the others end at once."""

    survey: Any
    number: Any
    launches: tuple[_Launch, ...]

    @classmethod
    def of(cls, gpu: Gpu, dtype: DType, kind: SumKind) -> "_Choice":
        import cupy

        unit, room = chosen_unit(dtype, kind, gpu.shared_per_block), gpu.shared_per_block
        rows = zip(chosen_names(dtype, kind, room), chosen_shapes(dtype, kind, room), strict=True)
        launches = tuple(_Launch.of(gpu, unit, *row) for row in rows)
        return cls(gpu.kernel(unit, survey_name(dtype, kind)), cupy.zeros(1, dtype=np.uint32), launches)

    def start(self, array: Any, limbs: Limbs, itemsize: int) -> None:
        """Add `array` to the total."""
        count = int(array.size)
        blocks = [launch.blocks(array, itemsize) for launch in self.launches]
        limbs.make_room(most_added(max(blocks), count))
        self.survey(1, 1024, (array, np.uint64(count), self.number))
        for launch, grid in zip(self.launches, blocks, strict=True):
            args = (array, np.uint64(count), limbs.array, self.number)
            launch.kernel(grid, launch.threads, args, shared=launch.shared)


def most_added(blocks: int, count: int) -> int:
    """How many numbers below 2**32 a launch of so many blocks may add to one limb.

    Numbers lie at least 8 binary places apart, at most two at one place, and reach over 128: fewer than 32 of a block
    share a limb. A warp of buckets adds 32 more whenever its lanes have met 32 · (2**14 − 32) > 2**18 elements each
    (include/exact_buckets.cuh), which is once in 2**23 elements.
    """
    return 32 * blocks + (count >> 18)


class ExactAccumulator:
    """The exact sum of the arrays that are added: of their values, of their `magnitudes`, or of their squares. Their
    `dtype` is a float.

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
    """The exact sums of the values and of the squares of the arrays that are added, in one read. Their `dtype` is a
    float.

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

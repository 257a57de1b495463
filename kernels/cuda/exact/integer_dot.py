"""Exact sums of the products of two arrays of integers on the GPU."""

from pathlib import Path
from typing import Any

import numpy as np

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.elements import element
from warpfold.kernels.cuda.exact.limbs import Limbs
from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.cuda.exact.total import states_of_limbs
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.launch_shape import GRID_STRIDE
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact.state import ExactState

SOURCE = Path(__file__).parent.parent / "sources" / "integer_dot.cu"
ADDED = 32
"""More numbers than a block adds to one limb."""


def integer_dot_unit(left: DType, right: DType) -> Unit:
    """The kernel of two dtypes that are no floats."""
    return Unit(SOURCE, (f"integer_dot<{element(left)}, {element(right)}>",))


def integer_dot_units() -> tuple[Unit, ...]:
    """Those for the compile matrix: each dtype with itself and with int64."""
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

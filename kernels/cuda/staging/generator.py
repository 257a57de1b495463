"""Generated sources on the GPU: their elements are bit for bit those that `kernels.generate.generate` makes on the
CPU."""

from pathlib import Path
from typing import Any

import numpy as np

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.elements import element
from warpfold.kernels.cuda.gpu.launch import Gpu, Kernel
from warpfold.kernels.cuda.gpu.launch_shape import GRID_STRIDE
from warpfold.kernels.dtypes import DType
from warpfold.kernels.generate import Formula, Plan
from warpfold.kernels.parts.blocks import ALL, Runs

SOURCE = Path(__file__).parent.parent / "sources" / "generate.cu"

_INTEGER_FORMULAS = (Formula.CONSTANT, Formula.ARANGE, Formula.MODULO, Formula.UNIFORM, Formula.PATHOLOGICAL)


def generator_unit(dtype: DType) -> Unit:
    """The kernels that fill arrays of `dtype`, one for each method that can."""
    formulas = tuple(Formula) if dtype.is_float else _INTEGER_FORMULAS
    return Unit(SOURCE, tuple(_kernel(dtype, formula) for formula in formulas))


def load(gpu: Gpu, plan: Plan) -> Kernel:
    """The kernel that `fill` calls, compiled and loaded."""
    return gpu.kernel(generator_unit(plan.dtype), _kernel(plan.dtype, plan.formula))


def fill(gpu: Gpu, plan: Plan, array: Any, start: int, runs: Runs = ALL) -> None:
    """Fill `array`, a CuPy array of one dimension, with elements number `start` … `start + array.size` − 1 of those
    that `runs` selects, on `gpu`'s stream."""
    kernel = load(gpu, plan)
    blocks, threads = GRID_STRIDE.grid(array.size, array.itemsize, gpu.multiprocessors)
    words = (np.uint64(number % (1 << 64)) for number in (plan.low, plan.span, plan.period, plan.third))
    reals = (np.float64(number) for number in (plan.a, plan.b, plan.c))
    kernel(
        grid=max(1, blocks),
        block=threads,
        args=(
            array, np.uint64(array.size), np.uint64(start), np.uint64(runs.first), np.uint64(runs.width),
            np.uint64(runs.pitch), np.uint64(plan.seed), *reals, *words,
        ),
    )  # fmt: skip


def _kernel(dtype: DType, formula: Formula) -> str:
    return f"generate<{element(dtype)}, {int(formula)}>"

"""Generated sources made on the GPU, bit for bit what `kernels.generate.generate` makes on the CPU."""

from pathlib import Path
from typing import Any

import numpy as np

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.elements import element
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.dtypes import DType
from warpfold.kernels.generate import Method, Plan

SOURCE = Path(__file__).parent.parent / "sources" / "generate.cu"
THREADS = 256
BLOCKS_PER_MULTIPROCESSOR = 8

_INTEGER_METHODS = (Method.CONSTANT, Method.ARANGE, Method.MODULO, Method.UNIFORM, Method.PATHOLOGICAL)


def generator_unit(dtype: DType) -> Unit:
    """The kernels that fill arrays of `dtype`, one for each method that can."""
    methods = tuple(Method) if dtype.is_float else _INTEGER_METHODS
    return Unit(SOURCE, tuple(_kernel(dtype, method) for method in methods))


def fill(gpu: Gpu, plan: Plan, array: Any, start: int) -> None:
    """Elements `start` … `start + array.size` − 1 into `array`, a CuPy array of one dimension, on `gpu`'s stream."""
    kernel = gpu.kernel(generator_unit(plan.dtype), _kernel(plan.dtype, plan.method))
    blocks = min(-(-array.size // THREADS), BLOCKS_PER_MULTIPROCESSOR * gpu.multiprocessors)
    words = (np.uint64(number % (1 << 64)) for number in (plan.low, plan.span, plan.period, plan.third))
    reals = (np.float64(number) for number in (plan.a, plan.b, plan.c))
    kernel(
        grid=max(1, blocks),
        block=THREADS,
        args=(array, np.uint64(array.size), np.uint64(start), np.uint64(plan.seed), *reals, *words),
    )


def _kernel(dtype: DType, method: Method) -> str:
    return f"generate<{element(dtype)}, {int(method)}>"

"""How the kernels of `../sources/reduced.cu` are launched: as exact sums are, for they differ at the end alone."""

from dataclasses import replace
from pathlib import Path

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.elements import element
from warpfold.kernels.cuda.exact.shapes import LARGEST_SHARED, SHAPES, SumKind
from warpfold.kernels.cuda.gpu.launch_shape import LaunchShape
from warpfold.kernels.dtypes import DTYPES, DType

SOURCE = Path(__file__).parent.parent / "sources" / "reduced.cu"

EACH_THREADS = 128
"""Threads of a block that adds up a value of many."""


def whole_shape(dtype: DType, kind: SumKind, shared_per_block: int) -> LaunchShape:
    """The shape for a whole array, on a GPU with so many bytes of shared memory a block."""
    shape = SHAPES[dtype.name][kind]
    if dtype.name == "float32" and kind is SumKind.SQUARES:
        shape = replace(shape, flight=6)  # the end takes registers, too
    return shape.fitted(shared_per_block)


def whole_kernel(dtype: DType, kind: SumKind, shared_per_block: int = LARGEST_SHARED) -> str:
    """The kernel of a whole array of a float `dtype`, as a C++ name expression."""
    shape = whole_shape(dtype, kind, shared_per_block)
    start = f"reduced_dot<{element(dtype)}" if kind is SumKind.PRODUCTS else f"reduced<{element(dtype)}, {kind}"
    ahead = str(shape.ahead).lower()
    return f"{start}, {shape.threads}, {shape.blocks_per_multiprocessor}, {shape.flight}, {ahead}, {shape.shared}>"


def each_kernel(dtype: DType, kind: SumKind) -> str:
    """The kernel of many values of a float `dtype`. Products of two arrays have no such kernel."""
    return f"reduced_each<{element(dtype)}, {kind}, {EACH_THREADS}, {SHAPES[dtype.name][kind].shared}>"


def each_shape(dtype: DType, kind: SumKind) -> LaunchShape:
    """The shape for many values."""
    shared = SHAPES[dtype.name][kind].shared
    return LaunchShape(EACH_THREADS, blocks_per_multiprocessor=1, flight=2, shared=shared)


def unit_of(name: str) -> Unit:
    """The unit of one kernel: each is compiled when it is first used."""
    return Unit(SOURCE, (name,))


def resident_units() -> tuple[Unit, ...]:
    """All units, for the compile matrix."""
    units = []
    for name in SHAPES:
        dtype = DTYPES[name]
        each = (each_kernel(dtype, kind) for kind in SumKind if kind is not SumKind.PRODUCTS)
        units.append(Unit(SOURCE, (*(whole_kernel(dtype, kind) for kind in SumKind), *each)))
    return tuple(units)

"""How the kernels of `../sources/reduced.cu` are launched: as exact sums are, for they differ at the end alone."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.elements import element
from warpfold.kernels.cuda.exact.shapes import CHOICES, LARGEST_SHARED, SHAPES, SumKind
from warpfold.kernels.cuda.gpu.launch_shape import LaunchShape
from warpfold.kernels.cuda.grouped.shapes import FLOATS
from warpfold.kernels.dtypes import DTYPES, DType

SOURCE = Path(__file__).parent.parent / "sources" / "reduced.cu"

EACH_THREADS = 128
"""Threads of a block that adds up a value of many."""

END_THREADS = 128
"""Threads of the block that rounds the total of a long array."""

_FEW: Mapping[tuple[str, SumKind], LaunchShape] = MappingProxyType(
    {("float64", SumKind.MOMENTS): replace(SHAPES["float64"][SumKind.MOMENTS], threads=128, flight=5)}
)

_ROWS_FLIGHT = 8
"""Reads of 16 bytes that a lane of a row has in flight."""


def whole_shape(dtype: DType, kind: SumKind, shared_per_block: int) -> LaunchShape:
    """The shape for a whole array, on a GPU with so many bytes of shared memory a block."""
    shape = SHAPES[dtype.name][kind]
    if dtype.name == "float32" and kind is SumKind.SQUARES:
        shape = replace(shape, flight=6)  # the end takes registers, too
    return shape.fitted(shared_per_block)


def few_shape(dtype: DType, kind: SumKind) -> LaunchShape | None:
    """The shape for arrays of few elements, where blocks of fewer threads take less time: each thread has digits that
    are cleared first and added up last. None where the shape of all other arrays serves."""
    return _FEW.get((dtype.name, kind))


def whole_kernel(dtype: DType, kind: SumKind, shape: LaunchShape) -> str:
    """The kernel of a whole array of a float `dtype`, as a C++ name expression."""
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


def rows_kernel(dtype: DType) -> str:
    """The kernel of rows that needs no other launch, for float32 and float64."""
    return (
        f"reduced_rows<{element(dtype)}, {_ROWS_FLIGHT}, {EACH_THREADS}, {SHAPES[dtype.name][SumKind.VALUES].shared}>"
    )


def end_kernel(dtype: DType, kind: SumKind) -> str:
    """The kernel that rounds the total of a whole array."""
    return f"reduced_end<{element(dtype)}, {kind}>"


def unit_of(name: str) -> Unit:
    """The unit of one kernel: each is compiled when it is first used."""
    return Unit(SOURCE, (name,))


def resident_units() -> tuple[Unit, ...]:
    """All units, for the compile matrix."""
    units = []
    for name in SHAPES:
        dtype = DTYPES[name]
        whole = [whole_kernel(dtype, kind, whole_shape(dtype, kind, LARGEST_SHARED)) for kind in SumKind]
        few = [whole_kernel(dtype, kind, shape) for kind in SumKind if (shape := few_shape(dtype, kind)) is not None]
        each = [each_kernel(dtype, kind) for kind in SumKind if kind is not SumKind.PRODUCTS]
        rows = [rows_kernel(dtype)] if name in FLOATS else []
        ends = [end_kernel(dtype, kind) for kind in CHOICES.get(name, {})]
        units.append(Unit(SOURCE, (*whole, *few, *each, *rows, *ends)))
    return tuple(units)

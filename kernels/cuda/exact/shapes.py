"""How the kernels of `../sources/exact.cu` are launched: plain values, kept apart from what they tune."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.elements import element
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.ops import Terms

SOURCE = Path(__file__).parent.parent / "sources" / "exact.cu"

LARGEST_SHARED = 227 << 10
"""Shared memory that a block may have on compute capability 9.0 and 10.0 (CUDA C++ Programming Guide, table of
technical specifications), in bytes; the others have less."""


class Kind(StrEnum):
    """What a sum is of; the names in include/exact_format.cuh."""

    VALUES = "VALUES"
    MAGNITUDES = "MAGNITUDES"
    SQUARES = "SQUARES"
    MOMENTS = "MOMENTS"  # values and squares
    PRODUCTS = "PRODUCTS"  # of two arrays

    @property
    def terms(self) -> Terms:
        """Of the state; of the first of the two that moments have."""
        return Terms.PRODUCTS if self in (Kind.SQUARES, Kind.PRODUCTS) else Terms.VALUES

    @property
    def signed(self) -> bool:
        """Whether a term may be −0."""
        return self not in (Kind.MAGNITUDES, Kind.SQUARES)


@dataclass(frozen=True, slots=True)
class Shape:
    """How a kernel is launched: `threads` a block, `blocks` a multiprocessor, `flight` reads of 16 bytes that a thread
    has in flight of each array, twice as many where it reads `ahead`, and `shared` bytes of shared memory a thread."""

    threads: int
    blocks: int
    flight: int
    ahead: bool
    shared: int

    def fitted(self, shared_per_block: int) -> "Shape":
        """The same with fewer threads, if a block may not have so much shared memory."""
        if self.threads * self.shared <= shared_per_block:
            return self
        threads = 1 << (shared_per_block // self.shared).bit_length() - 1
        return Shape(min(threads, self.threads), 1, self.flight, self.ahead, self.shared)


def _by_kind(*, values: Shape, squares: Shape, moments: Shape, products: Shape) -> Mapping[Kind, Shape]:
    return MappingProxyType(
        {
            Kind.VALUES: values,
            Kind.MAGNITUDES: values,
            Kind.SQUARES: squares,
            Kind.MOMENTS: moments,
            Kind.PRODUCTS: products,
        }
    )


# Measured on an H200 (benchmarks/exact_cuda.py); as many reads in flight as no architecture spills for.
SHAPES: Mapping[str, Mapping[Kind, Shape]] = MappingProxyType(
    {
        "float16": _by_kind(
            values=Shape(256, 2, 3, True, 24),
            squares=Shape(640, 1, 6, True, 32),
            moments=Shape(512, 1, 8, True, 56),
            products=Shape(640, 1, 3, True, 32),
        ),
        "bfloat16": _by_kind(
            values=Shape(256, 3, 4, True, 128),
            squares=Shape(768, 1, 4, True, 96),
            moments=Shape(768, 1, 4, True, 152),
            products=Shape(768, 1, 4, False, 96),
        ),
        "float32": _by_kind(
            values=Shape(512, 2, 4, True, 128),
            squares=Shape(256, 2, 8, True, 104),
            moments=Shape(512, 1, 6, True, 168),
            products=Shape(512, 1, 4, True, 104),
        ),
        "float64": _by_kind(
            values=Shape(512, 1, 8, True, 328),
            squares=Shape(256, 1, 12, True, 656),
            moments=Shape(256, 1, 10, True, 904),
            products=Shape(256, 1, 6, True, 656),
        ),
    }
)


def kernel_name(dtype: DType, kind: Kind, shape: Shape) -> str:
    """The kernel of a float `dtype`, as a C++ name expression."""
    start = f"exact_dot<{element(dtype)}" if kind is Kind.PRODUCTS else f"exact<{element(dtype)}, {kind}"
    ahead = str(shape.ahead).lower()
    return f"{start}, {shape.threads}, {shape.blocks}, {shape.flight}, {ahead}, {shape.shared}>"


def exact_unit(dtype: DType, shared_per_block: int = LARGEST_SHARED) -> Unit:
    """The kernels of a float `dtype`, for a GPU with so much shared memory a block."""
    shapes = SHAPES[dtype.name]
    return Unit(SOURCE, tuple(kernel_name(dtype, kind, shapes[kind].fitted(shared_per_block)) for kind in Kind))


def exact_units() -> tuple[Unit, ...]:
    """All units of the exact accumulator, for the compile matrix."""
    return tuple(exact_unit(DTYPES[name]) for name in SHAPES)

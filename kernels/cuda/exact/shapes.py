"""How the kernels of `../sources/exact.cu` are launched: plain values, kept apart from what they tune."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.elements import element
from warpfold.kernels.cuda.gpu.launch_shape import LaunchShape
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.ops import Terms

SOURCE = Path(__file__).parent.parent / "sources" / "exact.cu"

LARGEST_SHARED = 227 << 10
"""Shared memory that a block may have on compute capability 9.0 and 10.0 (CUDA C++ Programming Guide, table of
technical specifications), in bytes; the others have less."""


class SumKind(StrEnum):
    """The kinds of terms that a sum may have, by their names in include/exact_format.cuh."""

    VALUES = "VALUES"
    MAGNITUDES = "MAGNITUDES"
    SQUARES = "SQUARES"
    MOMENTS = "MOMENTS"  # values and squares
    PRODUCTS = "PRODUCTS"  # products of two arrays

    @property
    def terms(self) -> Terms:
        """The terms of the state. Moments have two states, and these are the terms of the first."""
        return Terms.PRODUCTS if self in (SumKind.SQUARES, SumKind.PRODUCTS) else Terms.VALUES

    @property
    def signed(self) -> bool:
        """Whether a term may be −0."""
        return self not in (SumKind.MAGNITUDES, SumKind.SQUARES)


def _shape(threads: int, blocks: int, flight: int, shared: int, *, ahead: bool = True) -> LaunchShape:
    """The shape of a launch: threads a block, blocks a multiprocessor, reads in flight a thread, and bytes of shared
    memory a thread."""
    return LaunchShape(threads, blocks_per_multiprocessor=blocks, flight=flight, shared=shared, ahead=ahead)


def _by_kind(
    *, values: LaunchShape, squares: LaunchShape, moments: LaunchShape, products: LaunchShape
) -> Mapping[SumKind, LaunchShape]:
    return MappingProxyType(
        {
            SumKind.VALUES: values,
            SumKind.MAGNITUDES: values,
            SumKind.SQUARES: squares,
            SumKind.MOMENTS: moments,
            SumKind.PRODUCTS: products,
        }
    )


# Measured on an H200 (benchmarks/exact_cuda.py); the most reads in flight for which no architecture spills registers.
SHAPES: Mapping[str, Mapping[SumKind, LaunchShape]] = MappingProxyType(
    {
        "float16": _by_kind(
            values=_shape(256, 2, 3, 24),
            squares=_shape(640, 1, 6, 32),
            moments=_shape(512, 1, 8, 56),
            products=_shape(640, 1, 3, 32),
        ),
        "bfloat16": _by_kind(
            values=_shape(256, 3, 4, 128),
            squares=_shape(768, 1, 4, 96),
            moments=_shape(768, 1, 4, 152),
            products=_shape(768, 1, 4, 96, ahead=False),
        ),
        "float32": _by_kind(
            values=_shape(512, 2, 4, 128),
            squares=_shape(256, 2, 8, 104),
            moments=_shape(512, 1, 6, 168),
            products=_shape(512, 1, 4, 104),
        ),
        "float64": _by_kind(
            values=_shape(512, 1, 8, 328),
            squares=_shape(256, 1, 12, 656),
            moments=_shape(256, 1, 10, 904),
            products=_shape(256, 1, 6, 656),
        ),
    }
)


def kernel_name(dtype: DType, kind: SumKind, shape: LaunchShape) -> str:
    """The kernel of a float `dtype`, as a C++ name expression."""
    start = f"exact_dot<{element(dtype)}" if kind is SumKind.PRODUCTS else f"exact<{element(dtype)}, {kind}"
    return f"{start}, {_numbers(shape)}>"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The shapes of kernels of which the data choose one (include/exact_chosen.cuh), in their order there, and of how
    many elements an array has them: a launch before looks at some elements and costs 8 µs."""

    surveyed: int
    shapes: tuple[LaunchShape, ...]


CHOICES: Mapping[str, Mapping[SumKind, Chosen]] = MappingProxyType(
    {
        "bfloat16": MappingProxyType(
            {
                SumKind.SQUARES: Chosen(1 << 26, (SHAPES["bfloat16"][SumKind.SQUARES], _shape(768, 1, 4, 256))),
                SumKind.MOMENTS: Chosen(1 << 26, (SHAPES["bfloat16"][SumKind.MOMENTS], _shape(512, 1, 4, 384))),
                SumKind.PRODUCTS: Chosen(1 << 26, (SHAPES["bfloat16"][SumKind.PRODUCTS], _shape(768, 1, 2, 256))),
            }
        ),
        "float32": MappingProxyType(
            {
                SumKind.SQUARES: Chosen(
                    1 << 26,
                    (
                        SHAPES["float32"][SumKind.SQUARES],
                        _shape(768, 1, 4, 272, ahead=False),
                        _shape(384, 1, 4, 512),
                    ),
                ),
                SumKind.MOMENTS: Chosen(
                    1 << 26,
                    (
                        SHAPES["float32"][SumKind.MOMENTS],
                        _shape(768, 1, 4, 160, ahead=False),
                        _shape(640, 1, 4, 256, ahead=False),
                        _shape(352, 1, 4, 640),
                    ),
                ),
                SumKind.PRODUCTS: Chosen(1 << 25, (SHAPES["float32"][SumKind.PRODUCTS], _shape(384, 1, 4, 512))),
            }
        ),
        "float64": MappingProxyType(
            {
                SumKind.SQUARES: Chosen(1 << 25, (_shape(480, 1, 8, 464, ahead=False), _shape(384, 1, 4, 532))),
                SumKind.MOMENTS: Chosen(1 << 25, (_shape(512, 1, 8, 368, ahead=False), _shape(256, 1, 6, 800))),
                SumKind.PRODUCTS: Chosen(1 << 25, (SHAPES["float64"][SumKind.PRODUCTS], _shape(320, 1, 6, 532))),
            }
        ),
    }
)


def chosen_from(dtype: DType, kind: SumKind, multiprocessors: int) -> range:
    """How many elements an array may have that is added up by a kernel which the data choose; empty where there are no
    such kernels. A block of theirs has fewer than 2**29 elements (include/exact_bands.cuh)."""
    chosen = CHOICES.get(dtype.name, {}).get(kind)
    return range(0) if chosen is None else range(chosen.surveyed, multiprocessors << 29)


def chosen_shapes(dtype: DType, kind: SumKind, shared_per_block: int) -> tuple[LaunchShape, ...]:
    """The shapes of the kernels of which one is chosen."""
    return tuple(shape.fitted(shared_per_block) for shape in CHOICES[dtype.name][kind].shapes)


def chosen_names(dtype: DType, kind: SumKind, shared_per_block: int) -> tuple[str, ...]:
    """The names of the chosen kernels, as C++ name expressions."""
    shapes = chosen_shapes(dtype, kind, shared_per_block)
    return tuple(
        f"exact_chosen<{element(dtype)}, {kind}, {choice}, {_numbers(shape)}>" for choice, shape in enumerate(shapes)
    )


def survey_name(dtype: DType, kind: SumKind) -> str:
    """The kernel that chooses."""
    return f"survey<{element(dtype)}, {kind}>"


def _numbers(shape: LaunchShape) -> str:
    ahead = str(shape.ahead).lower()
    return f"{shape.threads}, {shape.blocks_per_multiprocessor}, {shape.flight}, {ahead}, {shape.shared}"


def exact_unit(dtype: DType, shared_per_block: int = LARGEST_SHARED) -> Unit:
    """The kernels of a float `dtype`, for a GPU with so much shared memory a block."""
    shapes = SHAPES[dtype.name]
    return Unit(SOURCE, tuple(kernel_name(dtype, kind, shapes[kind].fitted(shared_per_block)) for kind in SumKind))


def chosen_unit(dtype: DType, kind: SumKind, shared_per_block: int = LARGEST_SHARED) -> Unit:
    """The kernels of which one is chosen, and the kernel that chooses."""
    return Unit(SOURCE, (*chosen_names(dtype, kind, shared_per_block), survey_name(dtype, kind)))


def exact_units() -> tuple[Unit, ...]:
    """All units of the exact accumulator, for the compile matrix."""
    chosen = (chosen_unit(DTYPES[name], kind) for name, kinds in CHOICES.items() for kind in kinds)
    return (*(exact_unit(DTYPES[name]) for name in SHAPES), *chosen)

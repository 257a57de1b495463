"""Exact sums of floats on the GPU: values, magnitudes or squares of CuPy arrays, added to a total that never rounds.

`sources/exact.cu` says how. A launch adds integers to the digits of one total in the GPU's memory; what is fetched is
the state that the portable definition, `kernels.exact.ExactState.add`, gives for the same elements, bit for bit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.cuda.compile import Unit
from kernels.cuda.launch import Gpu
from kernels.cuda.reductions import element
from kernels.dtypes import DTYPES, DType
from kernels.errors import InvalidInput
from kernels.exact.state import ORIGIN, ExactState, Flags
from kernels.ops import Terms

SOURCE = Path(__file__).parent / "sources" / "exact.cu"

_VECTOR_BYTES = 16
_NANS, _FLAGS, _DIGITS = 0, 1, 2  # words of a total: as in include/exact_total.cuh
WORDS: Mapping[Terms, int] = MappingProxyType({Terms.VALUES: _DIGITS + 72, Terms.PRODUCTS: _DIGITS + 138})
LARGEST_SHARED = 227 << 10
"""Shared memory that a block may have on compute capability 9.0 and 10.0 (CUDA C++ Programming Guide, table of
technical specifications), in bytes; the others have less."""

MOST_BLOCKS = 1 << 25
"""Blocks that may add to a total before its 64-bit words could overflow: each adds less than 2**37 to a word, as fewer
than 32 numbers overlap it, below 2**32 each."""


class Kind(StrEnum):
    """What a sum is of; the names in include/exact_format.cuh."""

    VALUES = "VALUES"
    MAGNITUDES = "MAGNITUDES"
    SQUARES = "SQUARES"

    @property
    def terms(self) -> Terms:
        return Terms.PRODUCTS if self is Kind.SQUARES else Terms.VALUES


@dataclass(frozen=True, slots=True)
class Shape:
    """How a kernel is launched: `threads` a block, `blocks` a multiprocessor, `flight` reads of 16 bytes that a thread
    has in flight, twice as many where it reads `ahead`, and `shared` bytes of shared memory a thread."""

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
        return Shape(min(threads, 512), 1, self.flight, self.ahead, self.shared)


def _by_kind(values: Shape, squares: Shape) -> dict[Kind, Shape]:
    return {Kind.VALUES: values, Kind.MAGNITUDES: values, Kind.SQUARES: squares}


# Measured on an H200 (benchmarks/exact_cuda.py).
SHAPES: Mapping[str, Mapping[Kind, Shape]] = MappingProxyType(
    {
        "float16": _by_kind(Shape(512, 2, 4, False, 24), Shape(512, 2, 4, False, 32)),
        "bfloat16": _by_kind(Shape(512, 2, 4, False, 128), Shape(512, 2, 4, False, 96)),
        "float32": _by_kind(Shape(512, 2, 4, False, 128), Shape(512, 2, 4, False, 104)),
        "float64": _by_kind(Shape(512, 1, 8, True, 328), Shape(256, 1, 8, True, 656)),
    }
)


def kernel_name(dtype: DType, kind: Kind, shape: Shape) -> str:
    """The kernel of a float `dtype`, as a C++ name expression."""
    ahead = str(shape.ahead).lower()
    return f"exact<{element(dtype)}, {kind}, {shape.threads}, {shape.blocks}, {shape.flight}, {ahead}, {shape.shared}>"


def exact_unit(dtype: DType, shared_per_block: int = LARGEST_SHARED) -> Unit:
    """The kernels of a float `dtype`, for a GPU with so much shared memory a block."""
    shapes = SHAPES[dtype.name]
    return Unit(SOURCE, tuple(kernel_name(dtype, kind, shapes[kind].fitted(shared_per_block)) for kind in Kind))


def exact_units() -> tuple[Unit, ...]:
    """All units of the exact accumulator, for the compile matrix."""
    return tuple(exact_unit(DTYPES[name]) for name in SHAPES)


@dataclass(frozen=True, slots=True)
class Fetched:
    """A total taken out of the GPU's memory: the sum of the finite elements' terms in units of the state's origin, how
    many elements were NaN, and the flags of the others."""

    units: int = 0
    nans: int = 0
    flags: Flags = Flags.NONE

    @classmethod
    def of_words(cls, words: NDArray[np.uint64]) -> "Fetched":
        """From the words that include/exact_total.cuh describes."""
        units = 0
        for digit in reversed(words[_DIGITS:].view(np.int64).tolist()):
            units = (units << 32) + digit
        return cls(units, int(words[_NANS]), Flags(int(words[_FLAGS])))

    def plus(self, other: "Fetched") -> "Fetched":
        return Fetched(self.units + other.units, self.nans + other.nans, self.flags | other.flags)

    def state(self, kind: Kind, count: int, *, omit_nan: bool) -> ExactState:
        """The state of `count` elements, less those that are NaN if `omit_nan`."""
        flags = self.flags
        if omit_nan:
            count -= self.nans
        elif self.nans:
            flags |= Flags.NAN
        if flags or (count and kind is not Kind.VALUES):  # magnitudes and squares are not −0, nor is what has a flag
            flags |= Flags.NOT_NEGATIVE_ZERO
        return ExactState.from_limbs(kind.terms, (self.units,), ORIGIN[kind.terms], count, flags)


class ExactAccumulator:
    """The exact sum of what is added to it: values of a float `dtype` (their `magnitudes` if so), or squares.

    Work goes to the current stream of the GPU. Raises InvalidInput for a dtype that is no float or terms that are
    neither values nor products.
    """

    def __init__(self, gpu: Gpu, dtype: DType, terms: Terms, *, magnitudes: bool = False) -> None:
        import cupy

        if dtype.name not in SHAPES or terms not in WORDS:
            raise InvalidInput(f"there is no exact sum of {terms} of {dtype.name} by floating point")
        self._kind = Kind.SQUARES if terms is Terms.PRODUCTS else Kind.MAGNITUDES if magnitudes else Kind.VALUES
        shape = SHAPES[dtype.name][self._kind].fitted(gpu.shared_per_block)
        name = kernel_name(dtype, self._kind, shape)
        self._kernel = gpu.kernel(exact_unit(dtype, gpu.shared_per_block), name)
        self._threads, self._shared = shape.threads, shape.threads * shape.shared
        self._tile = shape.threads * shape.flight
        self._resident = self._kernel.blocks_per_multiprocessor(self._threads, self._shared) * gpu.multiprocessors
        self._words = cupy.zeros(WORDS[terms], dtype=np.uint64)
        self._blocks = self._count = 0
        self._fetched = Fetched()

    def add(self, array: Any) -> None:
        """Add a CuPy array of one dimension without gaps, in one launch; bfloat16 as the uint16 of its bits."""
        if not array.size:
            return
        blocks = min(self._resident, self._tiles(array))
        if self._blocks + blocks > MOST_BLOCKS:
            self._fetch()
        self._kernel(blocks, self._threads, (array, np.uint64(array.size), self._words), shared=self._shared)
        self._blocks += blocks
        self._count += int(array.size)

    def _tiles(self, array: Any) -> int:
        """How many tiles `Vectors` in include/exact_tiles.cuh makes of the array."""
        size, itemsize = int(array.size), int(array.itemsize)
        lanes = _VECTOR_BYTES // itemsize
        head = min(size, -int(array.data.ptr) % _VECTOR_BYTES // itemsize)
        whole = (size - head) // lanes
        return -(-(size - whole * (lanes - 1)) // self._tile)

    @property
    def nans(self) -> int:
        """How many elements were NaN; waits for the work."""
        self._fetch()
        return self._fetched.nans

    def state(self, *, omit_nan: bool = False) -> ExactState:
        """The sum so far, NaN elements left out and not counted if `omit_nan`; waits for the work."""
        self._fetch()
        return self._fetched.state(self._kind, self._count, omit_nan=omit_nan)

    def _fetch(self) -> None:
        """Take the total out of the GPU's memory and leave zero there."""
        if self._blocks:
            self._fetched = self._fetched.plus(Fetched.of_words(self._words.get()))
            self._words.fill(0)
            self._blocks = 0

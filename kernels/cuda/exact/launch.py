"""Launches for whole arrays: of one kernel, or of several of which the data choose one. What is on the GPU already and
what a job brings there are added up by the same ones.

A launch is planned first. Jobs start it as any other kernel, so that it can be recorded, and arrays that stay on the
GPU by its packed function (`Launch.function`), which takes less of Python's time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.exact.shapes import (
    SHAPES,
    SumKind,
    chosen_from,
    chosen_names,
    chosen_shapes,
    chosen_unit,
    exact_unit,
    kernel_name,
    survey_name,
)
from warpfold.kernels.cuda.gpu.launch import Gpu, Kernel
from warpfold.kernels.cuda.gpu.launch_shape import VECTOR_BYTES, LaunchShape
from warpfold.kernels.cuda.gpu.packed import PackedFunction, function_of, word_of
from warpfold.kernels.dtypes import DType

_SURVEYING = LaunchShape(threads=1024, blocks_per_multiprocessor=1, flight=1)


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel that is loaded, how many of its blocks run at a time, and the shape of a block.

    `tile` is how many reads of 16 bytes a block has in flight, `lanes` how many elements one has.
    """

    kernel: Kernel
    resident: int
    threads: int
    shared: int
    tile: int
    lanes: int

    @classmethod
    def of(cls, gpu: Gpu, unit: Unit, name: str, shape: LaunchShape, itemsize: int) -> "Launch":
        """The kernel `name` of a unit."""
        kernel, shared = gpu.kernel(unit, name), shape.threads * shape.shared
        resident = kernel.blocks_per_multiprocessor(shape.threads, shared) * gpu.multiprocessors
        return cls(kernel, resident, shape.threads, shared, shape.threads * shape.flight, VECTOR_BYTES // itemsize)

    def function(self, arguments: int) -> PackedFunction:
        """The function that starts it with so many arguments."""
        return function_of(self.kernel, self.threads, self.shared, arguments)

    def whole(self, address: int, count: int) -> int:
        """Blocks for a whole array: as many as it has tiles, and at most as many as run at a time."""
        lanes = self.lanes
        head = -address % VECTOR_BYTES * lanes // VECTOR_BYTES
        reads = count if count < head else count - (count - head) // lanes * (lanes - 1)
        return max(1, min(self.resident, -(-reads // self.tile)))

    def each(self, count: int, values: int, *, marked: bool) -> int:
        """Blocks for many values of `count` elements: several a value where there are few."""
        if marked or values >= self.resident:
            return self.resident
        return values * max(1, min(self.resident // values, count // (self.lanes * self.tile)))


@dataclass(frozen=True, slots=True)
class Planned:
    """A launch of so many blocks, with its arguments: arrays or their addresses, and numbers."""

    launch: Launch
    grid: int
    args: tuple[Any, ...]


class Choice:
    """The kernels of which the data choose one, for a float dtype and a kind of CHOICES, compiled and loaded."""

    def __init__(self, gpu: Gpu, dtype: DType, kind: SumKind) -> None:
        unit, room = chosen_unit(dtype, kind, gpu.shared_per_block), gpu.shared_per_block
        rows = zip(chosen_names(dtype, kind, room), chosen_shapes(dtype, kind, room), strict=True)
        self._survey = Launch.of(gpu, unit, survey_name(dtype, kind), _SURVEYING, dtype.itemsize)
        self._chosen = tuple(Launch.of(gpu, unit, *row, dtype.itemsize) for row in rows)

    def whole(self, address: int, count: int) -> int:
        """The most blocks of a kernel for a whole array."""
        return max(launch.whole(address, count) for launch in self._chosen)

    def planned(self, arrays: Sequence[Any], count: int, total: Any, number: Any) -> Iterator[Planned]:
        """What adds `count` elements of an array, or their products with those of a second, to a total. `number` is
        room for the number of the kernel that is chosen, 4 bytes; the others end at once."""
        x, y, elements = arrays[0], arrays[-1], np.uint64(count)
        yield Planned(self._survey, 1, (x, y, elements, number))
        for launch in self._chosen:
            yield Planned(launch, launch.whole(word_of(x), count), (x, y, elements, total, number))


class WholeAddition:
    """Adds whole arrays, or the products of two, to totals: by one kernel, or long arrays by one that the data choose.
    The kernels are compiled and loaded when they are first used."""

    def __init__(self, gpu: Gpu, dtype: DType, kind: SumKind) -> None:
        unit, shape = exact_unit(dtype, gpu.shared_per_block), SHAPES[dtype.name][kind].fitted(gpu.shared_per_block)
        self._launch = Launch.of(gpu, unit, kernel_name(dtype, kind, shape), shape, dtype.itemsize)
        self._chosen = chosen_from(dtype, kind, gpu.multiprocessors)
        self._choice = cache(lambda: Choice(gpu, dtype, kind))

    def added(self, address: int, count: int) -> int:
        """How many numbers below 2**32 the launches of `planned` add to one limb at most."""
        return numbers_added((self._choice() if count in self._chosen else self._launch).whole(address, count), count)

    def planned(self, arrays: Sequence[Any], count: int, total: Any) -> Iterator[Planned]:
        """What adds `count` ≥ 1 elements of arrays that lie alike between boundaries of 16 bytes, on CuPy's current
        stream. Arrays and totals are CuPy's, or their addresses."""
        import cupy

        if count in self._chosen:
            # Only launches of this stream get the memory of the number next.
            yield from self._choice().planned(arrays, count, total, cupy.empty(1, np.uint32))
        else:
            grid = self._launch.whole(word_of(arrays[0]), count)
            yield Planned(self._launch, grid, (*arrays, np.uint64(count), total))


def numbers_added(blocks: int, count: int) -> int:
    """How many numbers below 2**32 a launch of so many blocks may add to one limb.

    Numbers lie at least 8 binary places apart, at most two at one place, and reach over 128: fewer than 32 of a block
    share a limb. A warp of buckets adds 32 more whenever its lanes have met 32 · (2**14 − 32) > 2**18 elements each
    (include/exact_buckets.cuh), which is once in 2**23 elements.
    """
    return 32 * blocks + (count >> 18)

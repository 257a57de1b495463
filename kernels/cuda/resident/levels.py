"""Exact sums of many values in two levels of one window, of arrays that are on a GPU already. They stay on the GPU, 17
bytes a value, where they are added to each other and rounded (`../sources/two_levels.cu`)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.elements import element
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.packed import PackedFunction, function_of, word_of
from warpfold.kernels.dtypes import DTYPES, DType

SOURCE = Path(__file__).parent.parent / "sources" / "two_levels.cu"

TAKEN = ("float32", "float64")
"""The dtypes of elements."""

STEP = 51
"""Binary places between the two levels."""

_THREADS, _WARP, _MERGED = 256, 32, 8
_MOST_PARTS = 1 << 10
_MOST_SHIFT = 60
"""Places between the units of two windows of which there can be sums: upper sums stay below 2**61."""
_LEAST_ROWS, _LEAST_LENGTH = (
    32,
    1 << 10,
)  # elements of a thread, or of a warp, beside which putting sums together is cheap


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """`width` values: the columns of `rows` rows, which begin `stride` elements apart."""

    rows: int
    stride: int
    width: int

    @property
    def values(self) -> int:
        """How many values there are."""
        return self.width


@dataclass(frozen=True, slots=True)
class RowLayout:
    """A value for each row of `length` neighbours; rows begin `stride` elements apart."""

    values: int
    stride: int
    length: int


@dataclass(frozen=True, slots=True)
class LevelSums:
    """The sums of `values` values, as the source says: `words` are a CuPy array of int64, which the GPU may still be
    writing. The unit of the lower level is 2**unit. Whether its window holds all elements is among the words."""

    values: int
    unit: int
    words: Any


def level_units() -> Iterator[Unit]:
    """The units for the compile matrix."""
    for name in TAKEN:
        yield Unit(SOURCE, tuple(f"level_{what}<{element(DTYPES[name])}>" for what in ("columns", "rows", "round")))
    yield Unit(SOURCE, ("level_merge",))


class ResidentLevels:
    """The kernels of one GPU. Each is compiled and loaded when it is first used, by any thread. Addresses are those of
    memory on the GPU, and a `stream`, CuPy's current one, has its address as `ptr`."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self._functions: dict[str, PackedFunction] = {}

    def add(
        self, dtype: DType, address: int, lie: ColumnLayout | RowLayout, unit: int, stream: Any, *, magnitudes: bool
    ) -> LevelSums:
        """The sums of the elements from `address` on, or of their magnitudes, in the window of `unit`, which need not
        hold them."""
        import cupy

        multiprocessors = self.gpu.multiprocessors
        if isinstance(lie, ColumnLayout):
            tiles = -(-lie.width // _THREADS)
            parts = _parts(8 * multiprocessors, tiles, lie.rows // _LEAST_ROWS)
            blocks, name, sizes = tiles * parts, "columns", (lie.rows, lie.stride, lie.width)
        else:
            parts = _parts(64 * multiprocessors, lie.values, lie.length // _LEAST_LENGTH)
            blocks, name = -(-lie.values * parts * _WARP // _THREADS), "rows"
            sizes = lie.values, lie.stride, lie.length
        words = cupy.zeros(_words(lie.values), np.int64)
        anchors = (_anchor(unit + STEP), _anchor(unit))
        arguments = (address, *sizes, parts, *anchors, int(magnitudes), words)
        self._start(f"level_{name}<{element(dtype)}>", blocks, arguments, stream)
        return LevelSums(lie.values, unit, words)

    @staticmethod
    def holds(sums: LevelSums) -> bool:
        """Whether the window holds all that was added. Waits for the GPU."""
        behind = 2 * sums.values
        return not int(sums.words[behind : behind + 1].get()[0])

    def merge(self, parts: Sequence[LevelSums], stream: Any) -> LevelSums | None:
        """The sums of all parts, of one GPU, together, in the window of the smallest unit; None where their units are
        too far apart. That window need not hold them."""
        import cupy

        values, unit = parts[0].values, min(part.unit for part in parts)
        arrays = [(part.words, part.unit - unit) for part in parts]
        if max(shift for _, shift in arrays) > _MOST_SHIFT:
            return None
        while len(arrays) > 1 or arrays[0][1]:
            some, arrays = arrays[:_MERGED], arrays[_MERGED:]
            words = cupy.zeros(_words(values), np.int64)
            shifts = sum(shift << 8 * k for k, (_, shift) in enumerate(some))
            addends = [part for part, _ in some]
            arguments = (values, words, shifts, *addends, *[0] * (_MERGED - len(some)))
            self._start("level_merge", -(-values // _THREADS), arguments, stream)
            arrays.append((words, 0))
        return LevelSums(values, unit, arrays[0][0])

    def round(self, dtype: DType, sums: LevelSums, divisor: int, out: int, stream: Any) -> None:
        """Write the sums divided by `divisor` ≥ 1, each rounded once to `dtype`, to `out`."""
        arguments = (sums.words, sums.values, sums.unit % (1 << 64), divisor, out)
        self._start(f"level_round<{element(dtype)}>", -(-sums.values // _THREADS), arguments, stream)

    def _start(self, name: str, grid: int, arguments: Sequence[Any], stream: Any) -> None:
        """Put a launch of a kernel on a stream; `arguments` are integers and CuPy arrays."""
        function = self._functions.get(name)
        if function is None:
            kernel = self.gpu.kernel(Unit(SOURCE, (name,)), name)
            function = self._functions[name] = function_of(kernel, _THREADS, 0, len(arguments))
        function(grid, stream.ptr, *map(word_of, arguments))


def _words(values: int) -> int:
    return 2 * values + 2 + -(-values // 8)


def _parts(wanted: int, tiles: int, most: int) -> int:
    """Into how many parts a value is cut, so that there are about `wanted` blocks or warps."""
    return max(1, min(-(-wanted // tiles), most, _MOST_PARTS))


def _anchor(unit: int) -> int:
    """The bits of 1.5 · 2**(52 + unit), a float64."""
    return (unit + 1075) << 52 | 1 << 51

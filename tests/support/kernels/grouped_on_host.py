"""A GPU of which the kernels of exact sums of many values run on the host: the launches, and all that they compute."""

import ctypes
import re
import types
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.grouped.folds import FoldShape
from warpfold.kernels.cuda.grouped.shapes import (
    SHAPES,
    ColumnsShape,
    GroupedShapes,
    RowsShape,
    SpanShape,
    StreamShape,
)
from warpfold.kernels.machine.preparation import Preparation

WARP = 32

SMALL = GroupedShapes(
    rows=(
        RowsShape(1, 2, 1, WARP),
        RowsShape(2, 2, 2, WARP),
        RowsShape(4, 1, 2, WARP),
        RowsShape(32, 1, 1, WARP),
    ),
    long=SpanShape(32, 2, vectors=True, threads=WARP),
    part=512,
    enough=3,
    short_spans=((3, SpanShape(1, 1, vectors=False, threads=WARP)), (50, SpanShape(4, 2, vectors=False, threads=WARP))),
    long_spans=SpanShape(32, 2, vectors=False, threads=WARP),
    columns=ColumnsShape(2, WARP, 6, 4),
    narrow=ColumnsShape(2, WARP, 6, 4),
    of_parts=ColumnsShape(2, WARP, 6, 4),
    short_columns=WARP,
    streams=((40, StreamShape(2, 1, 4, 1, WARP, least=100)), (1 << 20, StreamShape(4, 2, 32, 1, WARP, least=1500))),
)
"""Shapes whose launches take all paths with few elements."""


SMALL_FOLDS = FoldShape(threads=WARP, lanes=4, short=6, enough=8, part=4, longest=30, merged=2)
"""The same for other ops."""


class HostArray(np.ndarray):
    """A NumPy array with the additional attributes of a CuPy array."""

    @property
    def data(self) -> Any:
        return types.SimpleNamespace(ptr=self.ctypes.data)

    def get(self) -> "np.ndarray[Any, Any]":
        return np.array(self)  # a copy, which later launches do not change


def host_array(array: Any) -> HostArray:
    """The same memory."""
    made: HostArray = np.asarray(array).view(HostArray)
    return made


def as_cupy() -> types.ModuleType:
    """The stand-in for the module cupy. Memory that was not written reads as all ones."""

    def empty(size: int, dtype: Any) -> HostArray:
        made = host_array(np.empty(size, dtype))
        made.view(np.uint8)[:] = 0xFF
        return made

    event = types.SimpleNamespace(record=lambda stream: None, synchronize=lambda: None)
    cuda = types.SimpleNamespace(Event=lambda: event, get_elapsed_time=lambda start, stop: 0.0)
    module = types.ModuleType("cupy")
    module.__dict__.update(
        cuda=cuda,
        empty=empty,
        asarray=host_array,
        zeros=lambda size, dtype: host_array(np.zeros(size, dtype)),
        flatnonzero=lambda array: host_array(np.flatnonzero(array)),
    )
    return module


class HostGpu:
    """Kernels by name, of the library of exact sums, of that of other folds, and of that of squares. `ran` holds the
    names in the order of their launches."""

    def __init__(
        self, library: ctypes.CDLL | None, folds: ctypes.CDLL | None = None, squares: ctypes.CDLL | None = None
    ) -> None:
        self._library, self._folds, self._squares = library, folds, squares
        self.stream: Any = None
        self.preparation = Preparation()
        self.multiprocessors = 1
        self.ran: list[str] = []

    def aside(self) -> AbstractContextManager[None]:
        return nullcontext()

    def join(self) -> None:
        """Launches run one after another here."""

    def kernel(self, unit: Unit, name: str) -> Any:
        def launch(grid: int, block: int, args: Sequence[Any], shared: int = 0) -> None:
            plain = re.sub(r"^((?:spans|pairs|double_pairs|columns)<.*), \d+>$", rf"\1, {WARP}>", name)
            plain = re.sub(r"^(streamed<.*), \d+, \d+>$", rf"\1, {WARP}>", plain)
            plain = re.sub(r"wide_sums<(\w+),.*", r"wide_sums<\1>", plain)
            plain = re.sub(r"(totals|finished)<(\w+, \w+),.*", r"\1<\2>", plain)
            plain = re.sub(r"^((?:square_|close_).*), \d+>$", r"\1>", plain)
            if not name.startswith(("columns", "square_columns", "short_spans", "wide", "round", "totals")):
                grid = grid * block // WARP
            assert not name.startswith(("columns", "square_columns", "short_spans")) or block == WARP
            kept = [np.asarray([arg.ctypes.data if isinstance(arg, np.ndarray) else arg]) for arg in args]
            table = (ctypes.c_void_p * len(kept))(*(value.ctypes.data for value in kept))
            if unit.source.stem == "grouped_folds":
                assert self._folds is not None
                known = self._folds.fold_by_name(plain.encode(), ctypes.c_uint64(grid), table)
            elif unit.source.stem == "grouped_squares":
                assert self._squares is not None
                known = self._squares.squares_by_name(plain.encode(), ctypes.c_uint64(grid), table)
            else:
                assert self._library is not None
                known = self._library.grouped_by_name(
                    plain.encode(), ctypes.c_uint64(grid), ctypes.c_uint64(shared), table
                )
            assert known, name
            self.ran.append(name)

        return launch


def small_pairs() -> GroupedShapes:
    """SMALL, with the reads of pairs as they are."""
    return replace(SMALL, pairs=SHAPES["float32"].pairs)


def aligned(array: NDArray[Any], start: int) -> NDArray[Any]:
    """A copy of which the first element lies `start` elements behind a multiple of 16 bytes."""
    room = np.empty(array.size + 16, array.dtype)
    first = (-room.ctypes.data % 16) // array.itemsize + start
    room[first : first + array.size] = array
    return room[first : first + array.size]

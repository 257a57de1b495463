"""A GPU of which the kernels of exact sums of many values run on the host: the launches, and all that they compute."""

import ctypes
import re
import types
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.cuda.grouped.folds import FoldShape
from warpfold.kernels.cuda.grouped.shapes import (
    ColumnsShape,
    GroupedShapes,
    PartsShape,
    RowsShape,
    SpanShape,
    StreamShape,
)
from warpfold.kernels.machine.preparation import Preparation

WARP = 32


def _span(lanes: int, spans: int, flight: int, rounds: int = 1, *, vectors: bool = False) -> SpanShape:
    return SpanShape(lanes, spans, vectors, flight, rounds, WARP)


_EVERY = GroupedShapes(
    aligned=(),
    many=_span(32, 1, 4, vectors=True),
    few=_span(32, 1, 4, vectors=True),
    anywhere=(*((6, _span(1, 1, 1, 2)), (48, _span(4, 4, 2)), (200, _span(8, 8, 2)), (float("inf"), _span(32, 1, 2))),),
    columns=ColumnsShape(2, WARP, 6, 4),
    short_columns=WARP,
    parts=PartsShape(least=512, most=2048, enough=3, threads=WARP),
    closing=WARP,
)
_VALUES = replace(
    _EVERY,
    rows=(RowsShape(1, 2, 1, WARP), RowsShape(2, 2, 2, WARP), RowsShape(4, 1, 2, WARP), RowsShape(32, 1, 1, WARP)),
    streams=((40, StreamShape(2, 1, 4, 1, WARP, least=100)), (1 << 20, StreamShape(4, 2, 32, 1, WARP, least=1500))),
)
_PRODUCTS = replace(
    _EVERY,
    aligned=((2, _span(1, 1, 2, vectors=True)), (32, _span(8, 2, 2, vectors=True))),
    many=_span(16, 1, 4, vectors=True),
    short_columns=0,
    pairs=0,
)
_SQUARES = replace(
    _EVERY,
    aligned=(
        (1, _span(1, 1, 1, 2, vectors=True)),
        (4, _span(1, 1, 4, vectors=True)),
        (8, _span(2, 2, 8, vectors=True)),
        (32, _span(8, 4, 4, vectors=True)),
    ),
    many=_span(16, 2, 8, vectors=True),
)


def small_shapes(kind: SumKind) -> GroupedShapes:
    """Shapes whose launches take all paths with few elements."""
    return {SumKind.VALUES: _VALUES, SumKind.PRODUCTS: _PRODUCTS}.get(kind, _SQUARES)


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
        full=lambda size, value, dtype: host_array(np.full(size, value, dtype)),
        ascontiguousarray=lambda array: host_array(np.ascontiguousarray(array)),
        stack=lambda arrays, axis: host_array(np.stack(arrays, axis)),
        arange=lambda count, dtype: host_array(np.arange(count, dtype=dtype)),
        cumsum=lambda array: host_array(np.cumsum(array)),
        searchsorted=lambda array, values, side: host_array(np.searchsorted(array, values, side)),
        argsort=lambda array: host_array(np.argsort(array, kind="stable")),
        flatnonzero=lambda array: host_array(np.flatnonzero(array)),
    )
    return module


class HostGpu:
    """Kernels by name, of the library of reductions that add up, and of that of other folds; and by name and types
    those of the functions `typed`, by the name of their source. `ran` holds the names in the order of the launches."""

    def __init__(
        self, library: ctypes.CDLL | None, folds: ctypes.CDLL | None = None, *, typed: Mapping[str, Any] | None = None
    ) -> None:
        self._library, self._folds, self._typed = library, folds, typed or {}
        self.stream: Any = types.SimpleNamespace(synchronize=lambda: None)
        self.preparation = Preparation()
        self.multiprocessors = 1
        self.ran: list[str] = []

    def aside(self) -> AbstractContextManager[None]:
        return nullcontext()

    def join(self) -> None:
        """Launches run one after another here."""

    def kernel(self, unit: Unit, name: str) -> Any:
        def launch(grid: int, block: int, args: Sequence[Any], shared: int = 0) -> None:
            plain = re.sub(r"^((?:spans|pairs)<.*), \d+>$", rf"\1, {WARP}>", name)
            plain = re.sub(r"^(streamed<.*), \d+, \d+>$", rf"\1, {WARP}>", plain)
            plain = re.sub(r"(totals|finished)<(\w+, \w+),.*", r"\1<\2>", plain)
            if not name.startswith(("columns", "totals")):
                grid = grid * block // WARP
            assert not name.startswith("columns") or block == WARP
            kept = [np.asarray([arg.ctypes.data if isinstance(arg, np.ndarray) else arg]) for arg in args]
            table = (ctypes.c_void_p * len(kept))(*(value.ctypes.data for value in kept))
            if unit.source.stem == "grouped_folds":
                assert self._folds is not None
                known = self._folds.fold_by_name(plain.encode(), ctypes.c_uint64(grid), table)
            elif unit.source.stem in self._typed:
                kernel, types = plain.removesuffix(">").split("<")
                run = self._typed[unit.source.stem]
                known = run(kernel.encode(), types.encode(), ctypes.c_uint64(grid), table)
            else:
                assert self._library is not None
                known = self._library.grouped_by_name(
                    plain.encode(), ctypes.c_uint64(grid), ctypes.c_uint64(shared), table
                )
            assert known, name
            self.ran.append(name)

        return launch


def aligned(array: NDArray[Any], start: int) -> NDArray[Any]:
    """A copy of which the first element lies `start` elements behind a multiple of 16 bytes."""
    room = np.empty(array.size + 16, array.dtype)
    first = (-room.ctypes.data % 16) // array.itemsize + start
    room[first : first + array.size] = array
    return room[first : first + array.size]

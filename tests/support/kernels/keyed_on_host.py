"""A GPU of which the kernels of exact sums by key run on the host: the launches, and all that they compute."""

import ctypes
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.support.kernels.grouped_on_host import HostGpu, as_cupy, host_array, small_shapes
from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.cuda.keyed.shapes import (
    SOURCE,
    FewShape,
    KeyedShapes,
    KeyStreamShape,
    PartShape,
    SerialShape,
    squares_unit,
)

WARP = 32

SMALL_KEYED = KeyedShapes(
    few=(FewShape(2, WARP, 1),) * 3,
    most_copies=2,
    narrow_runs=FewShape(2, WARP, 1),
    runs=(FewShape(2, WARP, 1),) * 3,
    longest_streamed=16,
    stream=KeyStreamShape(2, WARP, 1),
    other_stream=KeyStreamShape(1, WARP, 1),
    wide_stream=KeyStreamShape(1, WARP, 1),
    serial=SerialShape(2, WARP, 1),
    wide_serial=SerialShape(4, WARP, 1),  # for which a block finds no room
    size_threads=WARP,
    size_blocks=1,
    part=PartShape(8, WARP, 1),
    wide_part=PartShape(8, WARP, 1),
    sums=(PartShape(2, WARP, 1),) * 3,
    bucket_bits=(5, 4, 3),
    sorted=dict.fromkeys(("float32", "float64"), small_shapes(SumKind.VALUES)),
)
"""Shapes whose launches take all paths with few rows."""


class HostKeyedGpu(HostGpu):
    """Kernels by name, of sums by key and of the segments of sorted rows."""

    multiprocessors = 3

    def __init__(self, library: ctypes.CDLL, segments: ctypes.CDLL, shared: int = 6144) -> None:
        super().__init__(segments)
        self.stream = types.SimpleNamespace(synchronize=lambda: None)
        self.shared_per_block = shared
        self._keyed = library

    def kernel(self, unit: Unit, name: str) -> Any:
        if unit.source not in (SOURCE, squares_unit().source):
            return super().kernel(unit, name)

        def launch(grid: int, block: int, args: Sequence[Any], shared: int = 0) -> None:
            kept = [np.asarray([arg.ctypes.data if isinstance(arg, np.ndarray) else arg]) for arg in args]
            table = (ctypes.c_void_p * len(kept))(*(value.ctypes.data for value in kept))
            known = self._keyed.keyed_by_name(name.encode(), ctypes.c_uint64(grid), ctypes.c_uint64(shared), table)
            assert known, name
            self.ran.append(name)

        return launch


def keyed_cupy() -> types.ModuleType:
    """The stand-in for the module cupy."""
    module = as_cupy()

    def wrapped(function: Any) -> Any:
        def call(*args: Any, **named: Any) -> Any:
            made = function(*args, **named)
            return tuple(map(host_array, made)) if isinstance(made, tuple) else host_array(made)

        return call

    names = ("unique", "argsort", "concatenate", "full", "diff", "searchsorted")
    module.__dict__.update({name: wrapped(getattr(np, name)) for name in names})
    module.__dict__["empty_like"] = lambda array: module.empty(array.size, array.dtype)
    return module

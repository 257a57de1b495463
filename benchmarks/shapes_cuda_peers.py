"""The sums of other libraries along axes and by segments, on an array that is on a GPU: torch, CuPy and CUB."""

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from warpfold.kernels.cuda.baselines.toolkit import find_toolkit
from warpfold.kernels.cuda.compile import default_cache
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.grouped.layouts import ColumnsLayout, Layout, OffsetsLayout, RowsLayout

NARROW = 1 << 13
"""Columns of narrower arrays take CuPy hundreds of milliseconds, and are left out."""


def _torch(gpu: Gpu, array: Any, layout: Layout) -> Callable[[], object]:
    import torch

    device = torch.device("cuda", gpu.index)
    torch.cuda.set_stream(torch.cuda.ExternalStream(gpu.stream.ptr, device=device))
    assert not isinstance(layout, OffsetsLayout)
    rows = isinstance(layout, RowsLayout)
    tensor = torch.from_dlpack(array).view(*_shape(layout))
    return lambda: torch.sum(tensor, dim=1 if rows else 0)


def _cupy(array: Any, layout: Layout) -> Callable[[], object]:
    assert not isinstance(layout, OffsetsLayout)
    matrix = array.reshape(_shape(layout))
    axis = 1 if isinstance(layout, RowsLayout) else 0
    return lambda: matrix.sum(axis=axis)


def _shape(layout: RowsLayout | ColumnsLayout) -> tuple[int, int]:
    return (layout.count, layout.length) if isinstance(layout, RowsLayout) else (layout.height, layout.width)


def build_cub(arch: str) -> Path:
    """The library of CUB's segmented reduction."""
    toolkit = find_toolkit()
    library = default_cache() / "peers" / f"segmented-{arch}.so"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        command = [str(toolkit.nvcc), "-std=c++17", "-O3", f"-arch={arch}", f"-I{toolkit.cccl.include}", "-shared"]
        source = Path(__file__).parent / "segmented_peer.cu"
        subprocess.run([*command, "-Xcompiler", "-fPIC", "-o", str(library), str(source)], check=True, timeout=150)
    return library


def _cub(gpu: Gpu, array: Any, layout: OffsetsLayout) -> Callable[[], object]:
    import cupy

    library = ctypes.CDLL(str(build_cub(gpu.arch)))
    segments = layout.offsets.size - 1
    out = cupy.empty(segments, dtype=np.float32)
    wanted = ctypes.c_size_t()
    rest = (array.data.ptr, out.data.ptr, segments, layout.offsets.data.ptr, gpu.stream.ptr)
    typed = (ctypes.c_void_p(rest[0]), ctypes.c_void_p(rest[1]), ctypes.c_int64(rest[2]),
             ctypes.c_void_p(rest[3]), ctypes.c_void_p(rest[4]))  # fmt: skip
    assert library.peer_run(None, ctypes.byref(wanted), *typed) == 0
    space = cupy.empty(max(1, wanted.value), dtype=np.uint8)

    def run() -> None:
        kept = (ctypes.c_void_p(space.data.ptr), ctypes.byref(wanted), *typed)
        assert library.peer_run(*kept) == 0, out.size

    return run


def peers_of(gpu: Gpu, array: Any, layout: Layout) -> dict[str, Callable[[], object]]:
    """A sum of `array` (float32 or float64) by each library that takes the layout. A line says which cannot run."""
    calls: dict[str, Callable[[], Callable[[], object]]] = {}
    if isinstance(layout, OffsetsLayout):
        if array.dtype == np.float32:
            calls["cub"] = lambda: _cub(gpu, array, layout)
    else:
        calls["torch"] = lambda: _torch(gpu, array, layout)
        if not isinstance(layout, ColumnsLayout) or layout.width >= NARROW:
            calls["cupy"] = lambda: _cupy(array, layout)
    made: dict[str, Callable[[], object]] = {}
    for name, call in calls.items():
        try:
            made[name] = call()
            made[name]()
        except Exception as error:
            made.pop(name, None)
            print(f"{name} cannot run: {type(error).__name__}: {str(error)[:200]}", flush=True)
    return made

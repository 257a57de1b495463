"""Peers of exact sums by key on a GPU: `torch.index_add_`, and CUB's radix sort of pairs and reduction by key."""

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from warpfold.kernels.cuda.baselines.toolkit import find_toolkit
from warpfold.kernels.cuda.compile import default_cache
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.dtypes import DType


class KeyedArrays(Protocol):
    """`count` rows on a GPU: CuPy arrays of their keys, of which `key` names the dtype, and of their elements."""

    gpu: Gpu
    dtype: DType
    key: str
    keys: Any
    values: Any
    count: int


def torch_peer(bench: KeyedArrays, groups: int) -> Callable[[], object]:
    """`torch.index_add_`, whose bits vary from run to run."""
    import torch

    keys, values = torch.from_dlpack(bench.keys), torch.from_dlpack(bench.values)
    out = torch.zeros(groups, dtype=values.dtype, device="cuda")
    stream = torch.cuda.ExternalStream(bench.gpu.stream.ptr)

    def run() -> None:
        with torch.cuda.stream(stream):
            out.zero_()
            out.index_add_(0, keys, values)

    return run


def build_peer(arch: str) -> Path:
    """The library of CUB's sort and its reduction by key."""
    toolkit = find_toolkit()
    library = default_cache() / "peers" / f"keyed-{arch}.so"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        command = [str(toolkit.nvcc), "-std=c++17", "-O3", f"-arch={arch}", f"-I{toolkit.cccl.include}", "-shared"]
        source = Path(__file__).parent / "keyed_peer.cu"
        subprocess.run([*command, "-Xcompiler", "-fPIC", "-o", str(library), str(source)], check=True, timeout=150)
    return library


def cub_peer(bench: KeyedArrays, groups: int, *, in_order: bool) -> Callable[[], object]:
    """CUB's reduction by key, after a sort by key unless they are sorted."""
    import cupy

    library = ctypes.CDLL(str(build_peer(bench.gpu.arch)))
    keys, values = cupy.empty_like(bench.keys), cupy.empty_like(bench.values)
    names, out, group_count = cupy.empty_like(bench.keys), cupy.empty_like(bench.values), cupy.zeros(1, dtype=np.int64)
    source = (bench.keys, bench.values) if in_order else (keys, values)
    pointers = [ctypes.c_void_p(array.data.ptr) for array in (source[0], names, source[1], out, group_count)]
    stream = ctypes.c_void_p(bench.gpu.stream.ptr)
    count = ctypes.c_int64(bench.count)
    of_sort = [ctypes.c_void_p(array.data.ptr) for array in (bench.keys, keys, bench.values, values)]
    calls = [] if in_order else [(library.peer_sort, (*of_sort, count, stream))]
    calls.append((library.peer_reduce, (*pointers, count, stream)))
    spaces = []
    for call, args in calls:
        wanted = ctypes.c_size_t()
        assert call(None, ctypes.byref(wanted), *args) == 0
        spaces.append((cupy.empty(max(1, wanted.value), dtype=np.uint8), wanted))
    kept = (keys, values, names, out, group_count)

    def run() -> None:
        assert kept
        for (call, args), (space, wanted) in zip(calls, spaces, strict=True):
            assert call(ctypes.c_void_p(space.data.ptr), ctypes.byref(wanted), *args) == 0

    return run


def peers_of(bench: KeyedArrays, groups: int, *, in_order: bool) -> dict[str, Callable[[], object]]:
    """The peers that run here."""
    made: dict[str, Callable[[], object]] = {}
    calls: dict[str, Callable[[], Callable[[], object]]] = {}
    if groups > 50:  # with 2 groups it takes 269 ms
        calls["torch"] = lambda: torch_peer(bench, groups)
    if bench.key == "int32" and bench.dtype.name == "float32":
        calls["cub"] = lambda: cub_peer(bench, groups, in_order=in_order)
    for name, call in calls.items():
        try:
            made[name] = call()
        except Exception as error:
            print(f"{name} cannot run: {type(error).__name__}: {str(error)[:200]}", flush=True)
    return made

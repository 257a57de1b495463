"""CUB and Thrust, as their own C++ interfaces give them."""

import ctypes
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from warpfold.kernels.cuda.baselines.peer import Baseline
from warpfold.kernels.cuda.baselines.rows import CCCL_PEERS, CcclPeer
from warpfold.kernels.cuda.baselines.toolkit import build
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.dtypes import DTYPES, DType, Kind
from warpfold.kernels.errors import CudaError, KernelError, Unavailable
from warpfold.kernels.ops import Op, Value, op_named

_ELEMENTS: Mapping[str, str] = MappingProxyType(
    {
        "float16": "__half",
        "bfloat16": "__nv_bfloat16",
        "float32": "float",
        "float64": "double",
        **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    }
)
_RESULT_BYTES = 16


def cccl_baselines() -> tuple[Baseline, ...]:
    """The three peers of CUB, and Thrust. A peer that cannot be built here says why."""
    return tuple(_baseline(peer) for peer in CCCL_PEERS)


def _baseline(peer: CcclPeer) -> Baseline:
    def bind(gpu: Gpu, op: Op, dtype: DType, array: Any) -> "CcclReduction":
        return CcclReduction(gpu, peer, op, dtype, array)

    return Baseline.of(peer.row(), bind=bind)


class CcclReduction:
    """One reduction of one array by a function of peers.cu."""

    def __init__(self, gpu: Gpu, peer: CcclPeer, op: Op, dtype: DType, array: Any) -> None:
        import cupy

        missing = peer.missing()
        if missing is not None:
            raise Unavailable(missing)
        self.waits = peer.waits
        self._gpu, self._array, self._dtype = gpu, array, dtype
        self._result = _result_type(op, dtype)
        self._library = _load(build(_defines(peer, op, dtype), gpu.arch, gpu.cache))
        self._check(self._library.peer_use_device(gpu.index))
        wanted = ctypes.c_size_t()
        self._check(self._library.peer_workspace(ctypes.byref(wanted), array.size))
        self._workspace = cupy.empty(max(1, wanted.value), dtype=np.uint8)
        # Thrust leaves its result in the host's memory.
        self._host = np.zeros(_RESULT_BYTES, dtype=np.uint8)
        self._device = cupy.zeros(_RESULT_BYTES, dtype=np.uint8)
        target = self._host.ctypes.data if peer.waits else self._device.data.ptr
        self._arguments = (
            ctypes.c_void_p(self._workspace.data.ptr),
            ctypes.c_size_t(wanted.value),
            ctypes.c_void_p(array.data.ptr),
            ctypes.c_void_p(target),
            ctypes.c_int64(array.size),
            ctypes.c_void_p(gpu.stream.ptr),
        )
        self._run = self._library.peer_run

    def run(self) -> None:
        status = self._run(*self._arguments)
        if status:
            self._check(status)

    def value(self) -> Value:
        raw = self._host if self.waits else self._device.get(stream=self._gpu.stream)
        value: Value = raw[: self._result.itemsize].view(self._result)[0].item()
        return value

    def _check(self, status: int) -> None:
        if status:
            raise CudaError(f"{self._library.peer_error(status).decode()} ({status})")


def prebuild(gpu: Gpu, strategy: str, op: str, dtype: str) -> None:
    """Build what `strategy` needs for `op` of `dtype`, if the strategy is one of these peers, claims the pair and can
    be built. If it cannot be built, binding it later says why."""
    for peer in CCCL_PEERS:
        if peer.name == strategy and (op, dtype) in peer.claims and peer.missing() is None:
            with suppress(KernelError):
                build(_defines(peer, op_named(op), DTYPES[dtype]), gpu.arch, gpu.cache)


def _defines(peer: CcclPeer, op: Op, dtype: DType) -> Mapping[str, str]:
    return {
        peer.macro: "",
        f"OP_{op.name.upper()}": "",
        "ELEMENT": _ELEMENTS[dtype.name],
        "RESULT": _result_name(op, dtype),
    }


def _load(path: Path) -> Any:
    library = ctypes.CDLL(str(path))
    library.peer_error.restype = ctypes.c_char_p
    library.peer_workspace.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    library.peer_run.argtypes = [
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
    ]
    return library


def _result_name(op: Op, dtype: DType) -> str:
    if op.name != "sum":
        return _ELEMENTS[dtype.name]
    match dtype.kind:
        case Kind.FLOAT:
            return "double" if dtype.name == "float64" else "float"
        case Kind.INT:
            return "int64_t"
        case _:
            return "uint64_t"


def _result_type(op: Op, dtype: DType) -> "np.dtype[Any]":
    """The dtype of the number at the result's address."""
    if op.places:
        return np.dtype(np.int64)
    if op.name != "sum":
        return dtype.numpy
    names = {"double": "float64", "float": "float32", "int64_t": "int64", "uint64_t": "uint64"}
    return DTYPES[names[_result_name(op, dtype)]].numpy

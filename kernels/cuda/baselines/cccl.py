"""CUB and Thrust, as their own C++ interfaces give them."""

import ctypes
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from warpfold.kernels.cuda.baselines.peer import Baseline
from warpfold.kernels.cuda.baselines.toolkit import build, find_toolkit
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.dtypes import DTYPES, DType, Kind
from warpfold.kernels.errors import CudaError, KernelError, Unavailable
from warpfold.kernels.ops import Op, Value, op_named
from warpfold.kernels.strategy import claims

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
_DETERMINISM = (3, 6, 0)  # the first version of CCCL in which this interface was seen to work

_SELECTIONS = ("min", "max", "argmin", "argmax")
_BOUND = (
    "γ_n Σ|x| in any order of additions, in float32 for 16-bit floats; integers wrap at 64 bits; min and max of NaN"
)
_BOUND_SELECTION = f"{_BOUND} depend on where it stands"


@dataclass(frozen=True, slots=True)
class _Peer:
    """A row of the catalogue: `macro` chooses the peer in peers.cu, `since` is the first CCCL that has it."""

    name: str
    macro: str
    summary: str
    error_bound: str
    claims: frozenset[tuple[str, str]]
    since: tuple[int, int, int] = (0, 0, 0)
    waits: bool = False


_PEERS = (
    _Peer(
        "cub",
        "PEER_CUB",
        "cub::DeviceReduce as it comes: two launches, the same bits from run to run on one GPU.",
        _BOUND_SELECTION,
        claims(("sum", *_SELECTIONS), _ELEMENTS),
    ),
    _Peer(
        "cub_not_guaranteed",
        "PEER_CUB_NOT_GUARANTEED",
        "cub::DeviceReduce without a promise of determinism: one launch, block totals added by atomics.",
        "γ_n Σ|x| in any order of additions, which may change from run to run; integers wrap at 64 bits",
        claims(("sum",), ("float32", "float64", "int32", "int64", "uint32", "uint64")),
        since=_DETERMINISM,
    ),
    _Peer(
        "cub_gpu_to_gpu",
        "PEER_CUB_GPU_TO_GPU",
        "cub::DeviceReduce with the same bits on every GPU: a reproducible floating-point accumulator.",
        "within a few roundings of Σ|x| (reproducible summation by Demmel and Nguyen); infinities give NaN",
        claims(("sum",), ("float32", "float64")),
        since=_DETERMINISM,
    ),
    _Peer(
        "thrust",
        "PEER_THRUST",
        "thrust::reduce, min_element and max_element, which wait for the result and allocate in every call.",
        _BOUND_SELECTION,
        claims(("sum", *_SELECTIONS), _ELEMENTS),
        waits=True,
    ),
)


def cccl_baselines() -> tuple[Baseline, ...]:
    """The three peers of CUB, and Thrust. A peer that cannot be built here says why."""
    return tuple(_baseline(peer) for peer in _PEERS)


def _baseline(peer: _Peer) -> Baseline:
    def bind(gpu: Gpu, op: Op, dtype: DType, array: Any) -> "CcclReduction":
        return CcclReduction(gpu, peer, op, dtype, array)

    return Baseline(
        name=peer.name,
        summary=peer.summary,
        error_bound=peer.error_bound,
        claims=peer.claims,
        missing=_missing(peer),
        bind=bind,
    )


def _missing(peer: _Peer) -> str | None:
    try:
        cccl = find_toolkit().cccl
    except Unavailable as error:
        return str(error)
    if cccl.version < peer.since:
        needed = ".".join(map(str, peer.since))
        return f"needs CCCL {needed} or newer, and this machine has {cccl.release}; install cuda-cccl"
    return None


class CcclReduction:
    """One reduction of one array by a function of peers.cu."""

    def __init__(self, gpu: Gpu, peer: _Peer, op: Op, dtype: DType, array: Any) -> None:
        import cupy

        missing = _missing(peer)
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
    for peer in _PEERS:
        if peer.name == strategy and (op, dtype) in peer.claims and _missing(peer) is None:
            with suppress(KernelError):
                build(_defines(peer, op_named(op), DTYPES[dtype]), gpu.arch, gpu.cache)


def _defines(peer: _Peer, op: Op, dtype: DType) -> Mapping[str, str]:
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

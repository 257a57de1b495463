"""Opens the device of a slot. The device's libraries are imported then, not before."""

import re
from contextlib import suppress
from importlib import import_module

from warpfold.kernels.backend import GANG
from warpfold.kernels.driver import Backend
from warpfold.kernels.errors import InvalidInput

_CUDA_SLOT = re.compile(r"cuda:(0|[1-9][0-9]{0,2})")


def open_backend(slot: str, *, cpu_cache_bytes: int | None = None) -> Backend:
    """The backend of a slot: "cpu", "cuda:0", "cuda:1", … for a GPU, or "gang" for all GPUs of this machine.

    `cpu_cache_bytes` stands for the size that the system gives for the last cache of its CPU.
    Raises InvalidInput for another name and Unavailable where this machine has no such device. Imports the device's
    libraries, so it takes seconds; the backend it returns does not.
    """
    if slot == "cpu":
        from warpfold.kernels.cpu.backend import CpuBackend

        return CpuBackend(cpu_cache_bytes, at_once=True)
    if slot == GANG:
        from warpfold.kernels.cuda.scaling.placement import Gang

        return Gang()
    match = _CUDA_SLOT.fullmatch(slot)
    if not match:
        raise InvalidInput(
            f"unknown slot {slot!r}; a slot is cpu, gang, dask, or cuda: and the number of a GPU", "slot"
        )
    from warpfold.kernels.cuda.backend import CudaBackend

    return CudaBackend(int(match[1]))


def import_libraries(slot: str) -> None:
    """Import ahead what `open_backend` would import for this slot. It touches no device: no CUDA context is made. What
    is not installed is left to `open_backend`, which says so."""
    if slot in ("cpu", "dask"):
        from warpfold.kernels.cpu import backend  # noqa: F401

        return
    with suppress(ImportError):
        import_module("warpfold.kernels.cuda.backend")
        for library in ("cupy", "cuda.core", "cuda.bindings.driver", "cuda.bindings.nvrtc", "pynvml"):
            import_module(library)

"""Opens the device of a slot. The device's libraries are imported then, not before."""

import re

from warpfold.kernels.backend import GANG, Backend
from warpfold.kernels.errors import InvalidInput

_CUDA_SLOT = re.compile(r"cuda:(0|[1-9][0-9]{0,2})")


def open_backend(slot: str) -> Backend:
    """The backend of a slot: "cpu", "cuda:0", "cuda:1", … for a GPU, or "gang" for all GPUs of this machine.

    Raises InvalidInput for another name and Unavailable where this machine has no such device. Imports the device's
    libraries, so it takes seconds; the backend it returns does not.
    """
    if slot == "cpu":
        from warpfold.kernels.cpu.backend import CpuBackend

        return CpuBackend()
    if slot == GANG:
        from warpfold.kernels.cuda.scaling.placement import Gang

        return Gang()
    match = _CUDA_SLOT.fullmatch(slot)
    if not match:
        raise InvalidInput(f"unknown slot {slot!r}; a slot is cpu, gang, or cuda: and the number of a GPU", "slot")
    from warpfold.kernels.cuda.backend import CudaBackend

    return CudaBackend(int(match[1]))

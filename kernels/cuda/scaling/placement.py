"""The GPUs of a machine as a place for ranks."""

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

from warpfold.kernels.backend import Backend, Device
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.exact import MOST_GPUS
from warpfold.kernels.cuda.scaling.gang import Gang
from warpfold.kernels.cuda.scaling.ranks import CudaRanks
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.scaling.axes import Algorithm, Mode
from warpfold.kernels.scaling.process import MakeRanks

_ALGORITHMS: Mapping[Algorithm, str | None] = MappingProxyType(
    {Algorithm.AUTO: None, Algorithm.RING: "Ring", Algorithm.TREE: "Tree"}
)
_MESSAGES = 5
"""Parts of a GPU's memory of which one is room enough for a message: it is sent, received and checked."""


class CudaPlacement:
    """One rank a GPU."""

    note = None

    def __init__(self, devices: Sequence[Device]) -> None:
        self.devices = tuple(devices)
        self.available = min(len(self.devices), MOST_GPUS)

    def processes(self, mode: Mode, algorithm: Algorithm, ranks: int, largest: int) -> Sequence[MakeRanks]:
        indices = [device.index for device in self.devices[:ranks]]
        if mode is Mode.ONE_PROCESS or ranks == 1:
            return [partial(CudaRanks, indices, 0, ranks)]
        return [partial(CudaRanks, [index], rank, ranks) for rank, index in enumerate(indices)]

    def environment(self, algorithm: Algorithm) -> Mapping[str, str | None]:
        # NCCL reads these once. NVLink SHARP stays off: with it sums of floats are not deterministic.
        return {"NCCL_ALGO": _ALGORITHMS[algorithm], "NCCL_NVLS_ENABLE": "0"}

    def memory(self, ranks: int) -> int:
        return ranks * min(device.memory_bytes for device in self.devices)

    def room(self, ranks: int) -> int:
        return self.memory(1) // _MESSAGES


def devices_of(backend: Backend) -> Sequence[Device]:
    """The GPUs that an open backend may use. Raises Unavailable for one that is not of GPUs."""
    match backend:
        case Gang():
            return backend.gpus
        case CudaBackend():
            return (backend.device,)
    raise Unavailable(f"{backend.device.name} is no GPU")

"""The GPUs of a machine together: as one device, the gang, and as a place for ranks."""

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

from warpfold.kernels.backend import Backend, Device, Progress, Reduction
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.exact import MOST_GPUS
from warpfold.kernels.cuda.gpu.device import driver_release, visible_devices
from warpfold.kernels.cuda.scaling.ranks import CudaRanks
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.ops import NanPolicy
from warpfold.kernels.scaling.axes import Algorithm, Mode
from warpfold.kernels.scaling.process import MakeRanks
from warpfold.kernels.sequential import Elements


class Gang:
    """The GPUs that CUDA shows this process. It holds no context on them: their memory stays with the slots of single
    GPUs until a job's processes ask for it. Raises Unavailable if there are none."""

    def __init__(self) -> None:
        self.gpus = visible_devices()
        if not self.gpus:
            raise Unavailable("CUDA shows no GPU, so this machine has no gang slot")
        names = dict.fromkeys(gpu.name for gpu in self.gpus)
        release = driver_release()
        self.device = Device(
            backend="cuda",
            name=" + ".join(f"{sum(gpu.name == name for gpu in self.gpus)} × {name}" for name in names),
            index=0,
            memory_bytes=sum(gpu.memory_bytes for gpu in self.gpus),
            cores=sum(gpu.cores for gpu in self.gpus),
            compute_capability=self.gpus[0].compute_capability,
            uuid=None,
            versions=(*((("driver", release),) if release else ()), *self.gpus[0].versions),
        )

    def reduce(
        self,
        source: Elements,
        op: str,
        *,
        strategy: str = "auto",
        nan_policy: NanPolicy = NanPolicy.PROPAGATE,
        progress: Progress | None = None,
        ddof: int = 0,
        other: Elements | None = None,
    ) -> Reduction:
        """Raises Unavailable: one array is a single GPU's work."""
        raise Unavailable("the gang of all GPUs runs scaling studies; a single reduction runs on one GPU")

    def close(self) -> None:
        """There is nothing to give back."""


_ALGORITHMS: Mapping[Algorithm, str | None] = MappingProxyType(
    {Algorithm.AUTO: None, Algorithm.RING: "Ring", Algorithm.TREE: "Tree"}
)
_MESSAGES = 5
"""A message takes at most one part in so many of a GPU's memory, which holds it several times: as sent, as received and
for the check."""


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
    raise Unavailable(f"{backend.device.name} is not a GPU")

"""The GPUs of a machine together: as one device, the gang, and as a place for ranks."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, cast

from warpfold.kernels.backend import Device, Progress
from warpfold.kernels.cuda.backend import CudaBackend, check_shaped
from warpfold.kernels.cuda.exact import MOST_GPUS
from warpfold.kernels.cuda.gpu.device import driver_release, visible_devices
from warpfold.kernels.cuda.keyed.reducing import check_reducible
from warpfold.kernels.cuda.scaling.ranks import CudaRanks
from warpfold.kernels.driver import Backend
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.parts.over_devices import reduce_spread
from warpfold.kernels.parts.shares import group_shares
from warpfold.kernels.query import Answer, ByKey, Query, Shaped
from warpfold.kernels.scaling.axes import Algorithm, Mode
from warpfold.kernels.scaling.process import MakeRanks

LEAST_MADE = 1 << 28
"""Generated rows that a GPU groups in about the time that merging its share with another takes."""


class GangMember(Protocol):
    """A GPU of the gang."""

    def most(self, query: Shaped) -> int: ...

    def at_once(self) -> Backend: ...

    def empty_pool(self) -> None: ...


class Gang(Backend):
    """The GPUs that CUDA shows this process, or `gpus`. It holds no context on them until a reduction asks for that,
    and from then on until its process ends; between jobs it holds no other memory of theirs, which stays with the slots
    of single GPUs. `open_member` opens one by its number. Raises Unavailable without a GPU."""

    def __init__(
        self, gpus: Sequence[Device] | None = None, open_member: Callable[[int], GangMember] = CudaBackend
    ) -> None:
        self.gpus = visible_devices() if gpus is None else gpus
        if not self.gpus:
            raise Unavailable("CUDA shows no GPU, so this machine has no gang slot")
        self._open_member = open_member
        self._members: tuple[GangMember, ...] = ()
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

    def aggregate(self, query: Query[Answer], progress: Progress | None = None) -> Answer:
        """As `Backend.aggregate`, with the bits of one GPU: each reduces blocks of whole values, or a share of the
        rows. Raises Unavailable for one value: one array is a single GPU's work."""
        answer: Any
        match query:
            case Shaped():
                check_shaped(query)
                members = self._opened()
                most = min(member.most(query) for member in members)
                answer = reduce_spread([member.at_once() for member in members], query, most, progress)
            case ByKey():
                check_reducible(query.source, query.plan)
                members = self._opened()
                at_once = [member.at_once() for member in members]
                answer = group_shares(at_once, query.source, query.plan, progress, LEAST_MADE)
            case _:
                raise Unavailable(
                    "the gang of all GPUs reduces to many values and by key, and runs scaling studies; a reduction to "
                    "one value runs on one GPU"
                )
        return cast(Answer, answer)

    def job_over(self) -> None:
        for member in self._members:
            member.empty_pool()

    def _opened(self) -> Sequence[GangMember]:
        self._members = self._members or tuple(self._open_member(gpu.index) for gpu in self.gpus)
        return self._members


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

"""The GPUs of a machine together: as one device, the gang, and as a place for ranks."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Protocol

from warpfold.kernels.backend import Backend, Device, GroupedReduction, Progress, Reduction
from warpfold.kernels.catalog import grouped_backends, refused_on_gpu, resolve_grouped
from warpfold.kernels.cpu.keyed.shares import group_shares
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.exact import MOST_GPUS
from warpfold.kernels.cuda.gpu.device import driver_release, visible_devices
from warpfold.kernels.cuda.keyed.reducing import check_reducible
from warpfold.kernels.cuda.scaling.ranks import CudaRanks
from warpfold.kernels.errors import InvalidInput, Unavailable
from warpfold.kernels.lowering.many_values import takes_meanings
from warpfold.kernels.lowering.nulls import group_with_nulls
from warpfold.kernels.lowering.reducing import group_meant
from warpfold.kernels.ops import NanPolicy, NullPolicy, op_named
from warpfold.kernels.ops.operands import check_states, operands
from warpfold.kernels.parts.grouping import Grouping
from warpfold.kernels.parts.keyed import GroupPlan, GroupTable, KeyedSource
from warpfold.kernels.parts.over_devices import Member, reduce_spread
from warpfold.kernels.scaling.axes import Algorithm, Mode
from warpfold.kernels.scaling.process import MakeRanks
from warpfold.kernels.sources.sequential import Elements


class GangMember(Protocol):
    """A GPU of the gang."""

    def most(self, source: Elements) -> int: ...

    def at_once(self) -> Member: ...


class Gang:
    """The GPUs that CUDA shows this process, or `gpus`. It holds no context on them until a reduction asks for that:
    their memory stays with the slots of single GPUs. `open_member` opens one by its number. Raises Unavailable without
    a GPU."""

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

    @property
    def spent(self) -> bool:
        """Whether GPUs were opened, whose memory only the end of this process gives back in full."""
        return bool(self._members)

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
        raise Unavailable(
            "the gang of all GPUs reduces to many values and by key, and runs scaling studies; a reduction to one "
            "value runs on one GPU"
        )

    @takes_meanings
    def reduce_groups(
        self,
        source: Elements,
        shape: tuple[int, ...],
        grouping: Grouping,
        op: str,
        *,
        strategy: str = "auto",
        nan_policy: NanPolicy = NanPolicy.PROPAGATE,
        progress: Progress | None = None,
        ddof: int = 0,
        other: Elements | None = None,
        states: bool = False,
    ) -> GroupedReduction:
        """Reduce blocks of whole values on all GPUs at once, as `CudaBackend.reduce_groups` does on one: with the same
        bits."""
        row = op_named(op)
        if states:
            check_states(row)
        operands(row, source, other, ddof)
        resolve_grouped(row, source.dtype, strategy)
        if "cuda" not in grouped_backends(row, source.dtype):
            raise InvalidInput(refused_on_gpu(row, source.dtype), "backend")
        members = self._opened()
        return reduce_spread(
            [member.at_once() for member in members], source, shape, grouping, op,
            min(member.most(source) for member in members),
            nan_policy=nan_policy, progress=progress, ddof=ddof, states=states,
        )  # fmt: skip

    def group_by(self, source: KeyedSource, plan: GroupPlan, progress: Progress | None = None) -> GroupTable:
        """Reduce the rows of each group on all GPUs at once, each of which has a share of the rows, as
        `CudaBackend.group_by` does on one: with the same bits."""
        if any(source.meanings):
            return group_meant(lambda rows, plain: self.group_by(rows, plain, progress), source, plan)
        if plan.null_policy is NullPolicy.PROPAGATE:
            return group_with_nulls(lambda rows, wider: self.group_by(rows, wider, progress), source, plan)
        check_reducible(source, plan)
        return group_shares([member.at_once() for member in self._opened()], source, plan, progress)

    def _opened(self) -> Sequence[GangMember]:
        self._members = self._members or tuple(self._open_member(gpu.index) for gpu in self.gpus)
        return self._members

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

"""Placements: where the ranks of a study run, on the GPUs of a machine or on its CPU."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from warpfold.kernels.backend import Device
from warpfold.kernels.driver import Backend
from warpfold.kernels.scaling.axes import Algorithm, Mode
from warpfold.kernels.scaling.process import MakeRanks


class Placement(Protocol):
    """A place for groups of ranks."""

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices of the ranks, in their order; a CPU is one device for all."""
        ...

    @property
    def available(self) -> int:
        """How many ranks there can be."""
        ...

    @property
    def note(self) -> str | None:
        """A sentence on what stands in for GPUs; None for GPUs."""
        ...

    def processes(self, mode: Mode, algorithm: Algorithm, ranks: int, largest: int) -> Sequence[MakeRanks]:
        """The functions that make the ranks of each process of a group, that of rank 0 first. Ranks exchange messages
        of up to `largest` bytes."""
        ...

    def environment(self, algorithm: Algorithm) -> Mapping[str, str | None]:
        """The variables to set in its processes before their libraries are loaded; None removes a name."""
        ...

    def memory(self, ranks: int) -> int:
        """Bytes that so many ranks have for an array, all together."""
        ...

    def room(self, ranks: int) -> int:
        """Bytes of the largest message that so many ranks have room for."""
        ...


def placement_on(backend: Backend) -> Placement:
    """Where an open backend lets ranks run: on all GPUs of the gang, on one GPU, or on the CPU."""
    if backend.device.backend == "cpu":
        from warpfold.kernels.scaling.cpu.ranks import CpuPlacement

        return CpuPlacement(backend.device)
    from warpfold.kernels.cuda.scaling.placement import CudaPlacement, devices_of

    return CudaPlacement(devices_of(backend))

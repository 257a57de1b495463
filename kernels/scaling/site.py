"""Where the ranks of a study run: on the GPUs of a machine, or on its CPU."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from kernels.backend import Backend, Device
from kernels.scaling.axes import Algorithm, Mode
from kernels.scaling.process import Recruit


class Site(Protocol):
    """A place for teams."""

    @property
    def devices(self) -> tuple[Device, ...]:
        """What the ranks run on, in their order; a CPU is one device for all."""
        ...

    @property
    def available(self) -> int:
        """How many ranks there can be."""
        ...

    @property
    def note(self) -> str | None:
        """What stands in for GPUs; None for GPUs."""
        ...

    def recruits(self, mode: Mode, algorithm: Algorithm, ranks: int, largest: int) -> Sequence[Recruit]:
        """The crews of a team, that of rank 0 first, which exchange messages of up to `largest` bytes."""
        ...

    def environment(self, algorithm: Algorithm) -> Mapping[str, str | None]:
        """What to set in its processes before their libraries are loaded; None removes a name."""
        ...

    def memory(self, ranks: int) -> int:
        """Bytes that so many ranks have for an array, all together."""
        ...

    def room(self, ranks: int) -> int:
        """Bytes of the largest message that so many ranks have room for."""
        ...


def open_site(backend: Backend) -> Site:
    """Where an open backend lets ranks run: on all GPUs of the gang, on one GPU, or on the CPU."""
    if backend.device.backend == "cpu":
        from kernels.scaling.cpu.site import CpuSite

        return CpuSite(backend.device)
    from kernels.cuda.scaling.site import CudaSite, devices_of

    return CudaSite(devices_of(backend))

"""Where a result comes from: the device, and what it takes to repeat it."""

from dataclasses import asdict
from typing import Literal, Self

from pydantic import Field

from warpfold.contract.frozen import Frozen
from warpfold.kernels.backend import Device


class DeviceView(Frozen):
    """A device, as `kernels.backend.Device` describes it."""

    backend: Literal["cpu", "cuda"]
    name: str
    index: int
    memory_bytes: int
    cores: int = Field(description="streaming multiprocessors, or logical CPUs")
    compute_capability: str | None = Field(description='"9.0" for an H200; null for a CPU')
    uuid: str | None
    versions: dict[str, str] = Field(description="driver, runtime and libraries in use")

    @classmethod
    def of(cls, device: Device) -> Self:
        return cls.model_validate({**asdict(device), "versions": dict(device.versions)})


class Provenance(Frozen):
    """What it takes to repeat the result."""

    warpfold: str = Field(description="version of the service")
    commit: str | None = Field(description="of the service's source, where known")
    python: str
    libraries: dict[str, str] = Field(description="versions of numpy, numba, cupy, driver, …")
    host: str
    worker: str
    attempt: int
    spec_sha256: str = Field(description="of the spec as canonical JSON")
    seed: int | None = Field(description="of a generated source")

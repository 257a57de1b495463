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
    cores: int = Field(description="The number of streaming multiprocessors, or of logical CPUs.")
    compute_capability: str | None = Field(description='It is "9.0" for an H200, and null for a CPU.')
    uuid: str | None
    versions: dict[str, str] = Field(description="The versions of the driver, the runtime and the libraries in use.")

    @classmethod
    def of(cls, device: Device) -> Self:
        return cls.model_validate({**asdict(device), "versions": dict(device.versions)})


class Provenance(Frozen):
    """What it takes to repeat the result."""

    warpfold: str = Field(description="The version of the service.")
    commit: str | None = Field(description="The commit of the service's source, where it is known.")
    python: str
    libraries: dict[str, str] = Field(description="The versions of numpy, numba, cupy, the driver, …")
    host: str
    worker: str
    attempt: int
    spec_sha256: str = Field(description="The SHA-256 of the spec as canonical JSON.")
    seed: int | None = Field(description="The seed of generated data.")

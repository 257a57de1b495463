"""Where a result comes from: the device, and what it takes to repeat it."""

from dataclasses import asdict
from typing import Literal, Self

from pydantic import Field

from warpfold.contract.frozen import Frozen
from warpfold.kernels.backend import Device


class DeviceView(Frozen):
    """A GPU, or the CPU of a machine."""

    backend: Literal["cpu", "cuda"]
    name: str = Field(description="Name of the device, as its driver or the machine reports it.")
    index: int = Field(description="Number of the GPU on its machine; 0 for a CPU.")
    memory_bytes: int = Field(description="Memory of the device, in bytes.")
    cores: int = Field(description="The number of streaming multiprocessors, or of logical CPUs.")
    compute_capability: str | None = Field(description='It is "9.0" for an H200, and null for a CPU.')
    uuid: str | None = Field(description="UUID of the GPU; null for a CPU.")
    versions: dict[str, str] = Field(description="The versions of the driver, the runtime and the libraries in use.")

    @classmethod
    def of(cls, device: Device) -> Self:
        fields = {name: value for name, value in asdict(device).items() if name in cls.model_fields}
        return cls.model_validate({**fields, "versions": dict(device.versions)})


class Provenance(Frozen):
    """Everything that is needed to repeat the result."""

    warpfold: str = Field(description="The version of the service.")
    commit: str | None = Field(description="The commit of the service's source, where it is known.")
    python: str
    libraries: dict[str, str] = Field(description="The versions of numpy, numba, cupy, the driver, …")
    host: str = Field(description="Name of the machine.")
    worker: str = Field(description="Id of the worker, as `host:slot`.")
    attempt: int = Field(description="Number of the attempt that gave the result. Attempts count from 1.")
    spec_sha256: str = Field(description="The SHA-256 of the spec as canonical JSON.")
    seed: int | None = Field(description="The seed of generated data.")

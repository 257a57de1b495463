"""Where a result comes from: the device, and what it takes to repeat it."""

from dataclasses import asdict
from typing import Literal, Self

from pydantic import Field
from pydantic.config import JsonDict

from warpfold.contract.frozen import Frozen
from warpfold.kernels.backend import Device

DEVICE_EXAMPLE: JsonDict = {
    "backend": "cpu",
    "name": "AMD EPYC",
    "index": 0,
    "memory_bytes": 25276502016,
    "cores": 2,
    "compute_capability": None,
    "uuid": None,
    "versions": {"python": "3.11.7", "numpy": "2.4.6", "numba": "0.68.1"},
}
"""The device in the examples of results."""


class DeviceView(Frozen):
    """A GPU, the CPU of a machine, or a Dask cluster."""

    backend: Literal["cpu", "cuda", "dask"]
    name: str = Field(
        description="Name of the device, as its driver or the machine reports it; for a cluster, with its address."
    )
    index: int = Field(description="Number of the GPU on its machine; 0 for a CPU and for a cluster.")
    memory_bytes: int = Field(description="Memory of the device, in bytes.")
    cores: int = Field(
        description="The number of streaming multiprocessors, of logical CPUs, or of a cluster's threads."
    )
    compute_capability: str | None = Field(
        description='The compute capability of the GPU, such as "9.0" for an H200; null for a CPU.'
    )
    uuid: str | None = Field(description="UUID of the GPU; null for a CPU.")
    versions: dict[str, str] = Field(description="The versions of the driver, the runtime and the libraries in use.")

    @classmethod
    def of(cls, device: Device) -> Self:
        fields = {name: value for name, value in asdict(device).items() if name in cls.model_fields}
        return cls.model_validate({**fields, "versions": dict(device.versions)})


PROVENANCE_EXAMPLE: JsonDict = {
    "warpfold": "0.1.0",
    "commit": None,
    "python": "3.11.7",
    "libraries": {"python": "3.11.7", "numpy": "2.4.6", "numba": "0.68.1"},
    "host": "gpu1",
    "worker": "gpu1:cpu",
    "attempt": 1,
    "spec_sha256": "6ae7a5f22ac4dbdcf606a179a2b62bdd93055e5a37993d04e0a47864e12858aa",
    "seed": None,
}
"""The provenance in the examples of results."""


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

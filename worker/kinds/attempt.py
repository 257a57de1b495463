"""What the execution of every kind is given besides its spec."""

from collections.abc import Callable
from dataclasses import dataclass

from app.results.reduce import DeviceView, Provenance
from kernels.backend import Backend


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a job on an open device. `elapsed_ms` tells how long it runs."""

    backend: Backend
    device: DeviceView
    provenance: Provenance
    queued_ms: float
    elapsed_ms: Callable[[], float]

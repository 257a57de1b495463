"""What the execution of every kind is given besides its spec."""

from collections.abc import Callable
from dataclasses import dataclass

from warpfold.contract.provenance import DeviceView, Provenance
from warpfold.contract.timings import StudyTimings
from warpfold.kernels.backend import Backend


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a job on an open device. `elapsed_ms` tells how long it runs."""

    backend: Backend
    device: DeviceView
    provenance: Provenance
    queued_ms: float
    elapsed_ms: Callable[[], float]

    def timings(self) -> StudyTimings:
        """Of a job of many points, up to now."""
        return StudyTimings(queued_ms=self.queued_ms, total_ms=self.elapsed_ms())

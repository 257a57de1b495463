"""An attempt of a job as its child runs it. It has everything that the function of a kind needs besides the spec."""

import time
from dataclasses import dataclass
from typing import Any

from warpfold.app.jobs.attempt import Lease
from warpfold.contract.folders import Folders
from warpfold.contract.kinds.spec import Task
from warpfold.contract.measurement import Measurement
from warpfold.contract.needs import ANY
from warpfold.contract.placement import Placement
from warpfold.contract.provenance import DeviceView, Provenance
from warpfold.contract.timings import StudyTimings
from warpfold.kernels.driver import Backend
from warpfold.kernels.machine.preparation import of_process
from warpfold.worker.messages import Measured, PointBegun, Progress, Tell

_MOST_UNITS = (1 << 63) - 1
"""The largest number of units that the database takes."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The attempt of `lease` at a job of `kind`, on an open device.

    `tell` sends news of the job to the parent. `started` is the time at which the attempt began, by
    `time.perf_counter`; `prepared_ms` what this process had spent by then on compiling and loading functions.
    """

    lease: Lease
    kind: str
    backend: Backend
    device: DeviceView
    provenance: Provenance
    folders: Folders
    tell: Tell
    started: float
    prepared_ms: float

    def placed(self, task: Task) -> Placement | None:
        """The reason for which the job was sent to this slot; None where its request named the backend."""
        if self.lease.placement is not None:
            return Placement.model_validate_json(self.lease.placement)
        backend = self.device.backend
        if backend == "dask":
            return None
        if task.needs() != ANY:
            chosen = getattr(task, "backend", None) != "auto"
            return None if chosen else Placement.for_only(backend, self.provenance.worker)
        return Placement.for_room(backend, self.provenance.worker, small=task.small())

    def elapsed_ms(self) -> float:
        """How long the attempt has run, in milliseconds."""
        return (time.perf_counter() - self.started) * 1000

    def prepare_ms(self, told_ms: float) -> float:
        """How long compiling and loading took: of a reduction whose backend `told_ms`, and of opening its sources."""
        return max(told_ms, of_process().total_ms - self.prepared_ms)

    def timings(self) -> StudyTimings:
        """The times of a job of many points, up to now."""
        return StudyTimings(queued_ms=self.lease.queued_ms, total_ms=self.elapsed_ms())

    def progress(self, done: int, total: int, unit: str = "points") -> None:
        """Report how many of the `total` units of work are done."""
        self.tell(Progress(min(done, _MOST_UNITS), min(total, _MOST_UNITS), unit))

    def begun(self, lost: Measurement) -> None:
        """Report that a point is being measured, and the row to keep if the child dies of it."""
        self.tell(PointBegun(lost))

    def measured(self, point: Measurement) -> None:
        """Report that a point is done, so that it need not be measured again."""
        self.tell(Measured(point))

    def point(self, **figures: Any) -> Measurement:
        """A point of this job, measured on this device. `figures` are the other fields of Measurement."""
        device = self.device
        return Measurement(
            kind=self.kind,
            backend=device.backend,
            device=device.name[:128],
            device_uuid=device.uuid,
            driver=device.versions.get("driver"),
            host=self.provenance.host[:64],
            **figures,
        )

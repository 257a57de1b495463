"""A finished job with all that its report needs, read from the database."""

from dataclasses import dataclass
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy import Connection

from warpfold.app.jobs import store
from warpfold.app.jobs.store import Job
from warpfold.app.results import repository as results
from warpfold.contract.jobs import JobResult, JobSpec, job_spec, result_of
from warpfold.contract.kinds.preset import PresetResult
from warpfold.contract.measurement import Measurement
from warpfold.contract.provenance import DeviceView, Provenance


@dataclass(frozen=True, slots=True)
class Finished:
    """A job that has ended: its spec (None if an older version accepted it), its result if it has one, a benchmark's
    points, a preset's jobs."""

    job: Job
    spec: JobSpec | None
    result: JobResult | None
    points: tuple[Measurement, ...]
    children: tuple["Finished", ...]

    @property
    def device(self) -> DeviceView | None:
        """Where it ran."""
        return None if self.result is None or isinstance(self.result, PresetResult) else self.result.device

    @property
    def provenance(self) -> Provenance | None:
        """The properties of the run that are needed to repeat the result."""
        return None if self.result is None or isinstance(self.result, PresetResult) else self.result.provenance

    @property
    def total_ms(self) -> float | None:
        """How long it ran."""
        if self.result is None:
            return None
        return self.result.total_ms if isinstance(self.result, PresetResult) else self.result.timings.total_ms


def finished(connection: Connection, job_id: UUID) -> Finished | None:
    """The job and, of a preset, its children; None if there is no such job."""
    job = store.get(connection, job_id)
    if job is None:
        return None
    children = (finished(connection, child.id) for child in job.children or ())
    return Finished(
        job=job,
        spec=_spec(job.spec),
        result=None if job.result is None else result_of(job.result),
        points=tuple(results.points_of(connection, job_id, None)) if job.kind == "benchmark" else (),
        children=tuple(child for child in children if child is not None),
    )


def _spec(text: str) -> JobSpec | None:
    try:
        return job_spec.validate_json(text)
    except ValidationError:
        return None

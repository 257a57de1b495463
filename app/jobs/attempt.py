"""An attempt at a job: the right to run it, which goes from its claim through the worker into the child, and the answer
that comes back. This module does not import the database, because the child of a slot does not need it."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from warpfold.contract.measurement import Measurement
from warpfold.contract.states import Reason


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to run one attempt at a job. Its `token` guards every write of the worker. `request_id` names the
    request that brought the job, for the logs; `traceparent` is the parent of the attempt's spans; a job that came
    without a request or a trace has none.

    `spec` is the stored JSON text: the child reads it, so that a worker's parent need know no kernels and a spec that
    cannot be read any more fails its job instead of the claim. `queued_ms` is how long the job waited for the claim,
    and `claimed_s` the time of the claim by `time.monotonic`, a clock that a worker and its child share. The attempt
    may run with others (`worker.group`) if it is `small`; one whose job a worker was lost with runs alone.
    `placement` is why the job was sent to this slot, as JSON text; None where its request named the backend, and where
    the service made no prediction. `child_died` tells that the attempt before this one ended so. `done` are the points
    that an earlier child of this attempt measured before it died.
    """

    job_id: UUID
    attempt: int
    token: UUID
    spec: str
    timeout_s: float
    queued_ms: float
    request_id: str | None = None
    traceparent: str | None = None
    small: bool = False
    placement: str | None = None
    child_died: bool = False
    done: tuple[Measurement, ...] = ()
    claimed_s: float = field(default_factory=time.monotonic, compare=False)

    @property
    def log_fields(self) -> dict[str, str | int | None]:
        """The fields of a line of the log that name the attempt."""
        return {"job": str(self.job_id), "attempt": self.attempt, "request_id": self.request_id}


@dataclass(frozen=True, slots=True)
class StoredResult:
    """The attempt wrote so many bytes of its result to files, in the folder of its own. `field` is the part of the spec
    that is at fault where they are too many."""

    bytes: int
    field: str


@dataclass(frozen=True, slots=True)
class Success:
    """The attempt succeeded: its result as JSON values, the points that were measured, and the part of the result that
    is stored in files. `began_s` is when its child took up the attempt, by `time.monotonic`.
    """

    result: Mapping[str, object]
    points: tuple[Measurement, ...] = ()
    stored: StoredResult | None = None
    began_s: float | None = None

    def after(self, lease: Lease) -> "Success":
        """This success of `lease` with the whole wait of its job: until the claim, and then until the child, which may
        have been busy, took it up."""
        timings = self.result.get("timings")
        if not isinstance(timings, Mapping):
            return self
        behind_s = 0.0 if self.began_s is None else max(0.0, self.began_s - lease.claimed_s)
        queued_ms = lease.queued_ms + behind_s * 1e3
        return replace(self, result={**self.result, "timings": {**timings, "queued_ms": queued_ms}})


@dataclass(frozen=True, slots=True)
class Failure:
    """The attempt failed, with a sentence for the job's owner. `replace` means that the child cannot be trusted any
    more."""

    reason: Reason
    error: str
    replace: bool


Answer = Success | Failure
"""How an attempt ended, as its child says."""

"""Leases of jobs that were never accepted, for what runs an attempt without a database."""

from typing import Any
from uuid import uuid4

from warpfold.app.jobs.attempt import Lease


def lease_on(spec: str, **changes: Any) -> Lease:
    """A lease on a job of its own with this spec, which is JSON; `changes` are other fields of the lease."""
    fields: dict[str, Any] = {"job_id": uuid4(), "attempt": 1, "token": uuid4(), "timeout_s": 60.0, "queued_ms": 0.0}
    return Lease(**{**fields, "spec": spec, **changes})

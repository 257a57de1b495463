"""What the owner of a job changes in it afterwards: its name, its note and its tags; and the end of its record.

What a job was asked to do, and what came out, stays as it is for as long as the job is there.
"""

from collections.abc import Mapping
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, select, update

from warpfold.app.auth import audit
from warpfold.app.auth.access_tokens import Principal
from warpfold.app.auth.audit import Action, Deed
from warpfold.app.auth.visibility import Viewer
from warpfold.app.http.errors import Conflict, Forbidden, Invalid
from warpfold.app.jobs import store, tags, transitions
from warpfold.app.jobs.store import Job
from warpfold.app.quotas.quota import Limits, counts_towards_quota, limits_of
from warpfold.app.tables.batches import batches
from warpfold.app.tables.jobs import jobs
from warpfold.contract.fields import JobName, JobNote, Tags
from warpfold.contract.states import EventType


class JobEdit(BaseModel):
    """What is to be changed in a job. A field that is left out stays as it is."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"name": "first sweep", "note": "with the new seeds", "tags": {"run": "7"}}]},
    )

    name: JobName | None = Field(None, description="The name of the job; null takes it away.")
    note: JobNote | None = Field(None, description="A note for people; null takes it away.")
    tags: Tags = Field(default_factory=dict, description="All tags of the job, in place of those that it has.")

    @property
    def changed(self) -> Mapping[str, object]:
        """The fields that the request has. An empty text is as good as none."""
        return {name: getattr(self, name) or ({} if name == "tags" else None) for name in self.model_fields_set}


def owned(connection: Connection, user: Principal, viewer: Viewer, job_id: UUID, deed: str) -> Job:
    """A job that the user may do something with, which the `deed` names. Raises NotFound and Forbidden."""
    job = store.existing(connection, job_id, viewer)
    if job.owner_id != user.id and not user.is_admin:
        raise Forbidden(f"The job belongs to {job.owner}; only its owner and admins may {deed} it.")
    return job


def edit(connection: Connection, user: Principal, viewer: Viewer, job_id: UUID, wanted: JobEdit) -> Job:
    """Change a job as `wanted`. Raises NotFound, Forbidden, and Invalid for the name of a part of a preset."""
    job = owned(connection, user, viewer, job_id, "change")
    if job.parent_id is not None and "name" in wanted.changed:
        raise Invalid.of("name", "stays as it is: the preset that the job is part of knows the job by it")
    if wanted.changed:
        # A search finds jobs by the words of both.
        tags.forget(connection, [job_id])
        change = update(jobs).where(jobs.c.id == job_id).values(wanted.changed)
        transitions.change(connection, change, EventType.EDITED, {"by": user.name})
        audit.record(connection, Deed(user, Action.EDIT_JOB, str(job_id), job.owner))
        tags.note(connection, [job_id])
    return store.existing(connection, job_id)


def delete(connection: Connection, user: Principal, viewer: Viewer, job_id: UUID, defaults: Limits) -> Job:
    """Delete a job with its events, its measurements and its stored result; of a preset its jobs, too. Returns the job
    as it was. Raises NotFound, Forbidden, and Conflict where it has not ended, or is still counted."""
    job = owned(connection, user, viewer, job_id, "delete")
    if not job.status.terminal:
        raise Conflict(f"The job is {job.status}: cancel it first.", extension={"job_status": job.status.value})
    if job.parent_id is not None:
        raise Conflict(f"The job is part of a preset: delete the preset's job, {job.parent_id}.")
    open_batch = select(batches.c.id).where(batches.c.id == job.batch_id, batches.c.settled_at.is_(None))
    if connection.execute(select(open_batch.exists())).scalar_one():
        raise Conflict(f"The job is part of the batch {job.batch_id}, whose jobs have not all ended.")
    if counts_towards_quota(connection, job_id, limits_of(connection, job.owner_id, defaults)):
        raise Conflict(
            "The job counts towards a quota of its owner: delete it an hour after it was submitted as high, or the day "
            "after it ran on a GPU."
        )
    transitions.remove(connection, [job_id])
    audit.record(connection, Deed(user, Action.DELETE_JOB, str(job_id), job.owner))
    return job

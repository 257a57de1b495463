"""Jobs as the api reads them: one job whole, and the stamp that polls compare. `app.jobs.listing` reads lists.

Statements are built once, here, with bound parameters: SQLAlchemy then finds their compiled form at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID
from zlib import crc32

from sqlalchemy import Connection, Text, bindparam, case, cast, func, literal_column, select, true

from warpfold.app.auth.visibility import THE_SERVICE, Viewer, sees
from warpfold.app.census import LIES
from warpfold.app.http.errors import no_such_job
from warpfold.app.jobs import outcome, presets
from warpfold.app.jobs.estimates import Estimate, Waiter
from warpfold.app.jobs.presets import Child, versions
from warpfold.app.jobs.workers import Place, Waiting, fingerprint, places, waiting_for
from warpfold.app.quotas.holds import HOLDING, holding
from warpfold.app.quotas.quota import Hold, QuotaName
from warpfold.app.tables.jobs import NONE, in_groups, jobs
from warpfold.app.tables.users import users
from warpfold.contract.jobs import Kind
from warpfold.contract.states import Status


@dataclass(frozen=True, slots=True)
class JobVersion:
    """Enough of a job to say whether an answer about it is still current. `children` is the sum of its children's
    versions, `hold` the quota that it waits for; `slots` tells, while it or a child of it waits, which slots there
    are, and `waiter` what decides its turn."""

    version: int
    status: Status
    queue_position: int | None
    children: int = 0
    hold: str | None = None
    slots: str = ""
    waiter: Waiter | None = None

    def etag(self, job_id: UUID) -> str:
        """The strong entity tag (RFC 9110, 8.8) of the job's answer in this state. It changes with everything that the
        answer shows but the estimate of the job's start, which is as old as the answer: the row's version, its
        children's, the place in the queue, the quota and the slots that the job waits for."""
        state = f"{self.version}.{self.queue_position or 0}.{self.children}.{self.hold or ''}"
        slots = f".{crc32(self.slots.encode()):08x}" if self.slots else ""
        return f'"{job_id.hex[-12:]}.{state}{slots}"'


@dataclass(frozen=True, slots=True)
class Job:
    """A job: as its submission makes it, and as its row is read. `spec` and `result` are JSON as text: the api passes
    both on and reads neither.

    `rank` is the priority as which the job waits. `queue_position` is 1 for the queued job that is next, None unless
    the job is queued and to be run. `children` are those of a preset that is read alone, in their order. `small`,
    `work` and the last five fields are stored with a new job and not read again: `shared` says whether everyone sees
    it. `slot` is the one that its acceptance handed it to, if any.
    """

    id: UUID
    seq: int
    version: int
    kind: str
    status: Status
    spec: str
    owner: str
    owner_id: int
    priority: int
    rank: int
    tags: Mapping[str, str]
    attempt: int
    worker: str | None
    cancel_requested_at: datetime | None
    reason: str | None
    error: str | None
    progress_done: int
    progress_total: int
    progress_unit: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    result: str | None
    queue_position: int | None
    parent_id: UUID | None
    name: str | None
    children: tuple[Child, ...] | None = None
    needs: str = NONE
    small: bool = False
    lies: str = ""
    work: Mapping[str, object] | None = None
    slot: str | None = None
    dispatched_at: datetime | None = None
    hold: Hold | None = None
    waiting: Waiting | None = None
    slots: str = ""
    batch_id: UUID | None = None
    estimated_start_at: datetime | None = None
    timeout_s: float | None = None
    spec_brief: str | None = None
    request_id: str | None = None
    traceparent: str | None = None
    secret: UUID | None = None
    shared: bool = True
    note: str | None = None

    @classmethod
    def new(
        cls,
        *,
        id: UUID,
        owner: str,
        owner_id: int,
        kind: str,
        priority: int,
        needs: str,
        timeout_s: float,
        spec: str,
        spec_brief: str | None = None,
        small: bool = False,
        work: Mapping[str, object] | None = None,
        tags: Mapping[str, str] | None = None,
        parent_id: UUID | None = None,
        name: str | None = None,
        request_id: str | None = None,
        traceparent: str | None = None,
        secret: UUID | None = None,
        shared: bool = True,
    ) -> "Job":
        """A job that is not accepted yet, as it will be right after its acceptance but for what Postgres adds: `seq`,
        `created_at`, `rank` and `queue_position`."""
        return cls(
            id=id,
            seq=0,
            version=1,
            kind=kind,
            status=Status.QUEUED,
            spec=spec,
            owner=owner,
            owner_id=owner_id,
            priority=priority,
            rank=priority,
            tags=tags or {},
            attempt=1,
            worker=None,
            cancel_requested_at=None,
            reason=None,
            error=None,
            progress_done=0,
            progress_total=0,
            progress_unit="",
            created_at=datetime.now(UTC),
            started_at=None,
            finished_at=None,
            result=None,
            queue_position=None,
            parent_id=parent_id,
            name=name,
            needs=needs,
            small=small,
            lies=str(work["lies"]) if work else "",
            work=work,
            timeout_s=timeout_s,
            spec_brief=spec_brief,
            request_id=request_id,
            traceparent=traceparent,
            secret=secret,
            shared=shared,
        )

    @property
    def stamp(self) -> JobVersion:
        return JobVersion(
            self.version,
            self.status,
            self.queue_position,
            sum(child.version for child in self.children or ()),
            None if self.hold is None else self.hold.quota,
            self.slots,
        )

    @property
    def waiter(self) -> Waiter | None:
        """What decides its turn; None unless it is queued and to be run."""
        if self.needs == NONE or self.status is not Status.QUEUED:
            return None
        return Waiter(self.id, self.owner_id, self.rank, self.needs, self.kind, self.small, self.lies, self.seq)

    def in_turn(self, estimate: Estimate) -> "Job":
        """The job with its place and its start, which is not before the end of its hold."""
        start_at, until = estimate.start_at, None if self.hold is None else self.hold.until
        if until is not None:
            start_at = until if start_at is None else max(start_at, until)
        return replace(self, queue_position=estimate.place, estimated_start_at=start_at)

    def seeing(self, slots: Sequence[Place]) -> "Job":
        """The job with what it waits for among `slots`, which are all live ones; unchanged if nothing of it waits."""
        queued = [child for child in self.children or () if child.status is Status.QUEUED]
        if not queued and self.status is not Status.QUEUED:
            return self
        seen = replace(self, slots=fingerprint(slots))
        if self.needs != NONE:
            return seen if self.dispatched_at else replace(seen, waiting=waiting_for(self.needs, slots))
        for child in queued:
            why = None if child.handed_over else waiting_for(child.needs, slots)
            if why is not None:
                return replace(seen, waiting=Waiting(why.reason, f"Its job {child.name} waits: {why.detail}"))
        return seen


COLUMNS = (
    jobs.c.id,
    jobs.c.seq,
    jobs.c.version,
    jobs.c.kind,
    jobs.c.status,
    users.c.name.label("owner"),
    jobs.c.owner_id,
    jobs.c.priority,
    jobs.c.rank,
    jobs.c.tags,
    jobs.c.attempt,
    jobs.c.worker,
    jobs.c.cancel_requested_at,
    jobs.c.reason,
    jobs.c.error,
    jobs.c.progress_done,
    jobs.c.progress_total,
    jobs.c.progress_unit,
    jobs.c.created_at,
    jobs.c.started_at,
    jobs.c.finished_at,
    jobs.c.parent_id,
    jobs.c.name,
    jobs.c.note,
    jobs.c.batch_id,
    jobs.c.needs,
    in_groups().label("small"),
    LIES,
    jobs.c.dispatched_at,
    cast(jobs.c.result, Text).label("result"),
)
# The plan goes from the job to its owner: the other way it would use an index of owners, which holds the whole history.
OWNED = jobs.join(users, users.c.id == jobs.c.owner_id + literal_column("0"))

_WAITER = (jobs.c.owner_id, jobs.c.rank, jobs.c.needs, jobs.c.kind, in_groups().label("small"), LIES, jobs.c.seq)
_ONE = jobs.c.id == bindparam("job_id")

_GET = (
    select(cast(jobs.c.spec, Text).label("spec"), *COLUMNS, *HOLDING)
    .select_from(OWNED.outerjoin(holding, true()))
    .where(_ONE)
)
_OUTCOME = [cast(each, Text).label("result") if each is jobs.c.result else each for each in outcome.COLUMNS]
_ENDED = select(*_OUTCOME).where(_ONE, jobs.c.finished_at.is_not(None))
_STAMP = (
    select(jobs.c.version, jobs.c.status, versions, holding.c.quota, presets.waiting, *_WAITER)
    .select_from(jobs.outerjoin(holding, true()))
    .where(_ONE)
)


def ended(connection: Connection, accepted: Job) -> Job | None:
    """A job that was read or `accepted` before, as it ended; None where it has not ended, and where retention has
    removed it. Only the columns of its row that may have changed are read."""
    row = connection.execute(_ENDED, {"job_id": accepted.id}).mappings().one_or_none()
    if row is None:
        return None
    job = with_outcome(accepted, {**row, "status": Status(row["status"])})
    return replace(job, children=presets.children(connection, job.id)) if job.needs == NONE else job


def with_outcome(accepted: Job, values: Mapping[str, Any]) -> Job:
    """A job that was read or `accepted` before, as it ended; `values` are those of `outcome.COLUMNS`."""
    ended = replace(accepted, queue_position=None, waiting=None, slots="", hold=None, estimated_start_at=None)
    return replace(ended, **values)


def get(connection: Connection, job_id: UUID) -> Job | None:
    """Read one job, whole, without its place in the queue; None if no job has this id."""
    row = connection.execute(_GET, {"job_id": job_id}).mappings().one_or_none()
    if row is None:
        return None
    job = job_of(row)
    if job.needs == NONE:
        job = replace(job, children=presets.children(connection, job.id))
    return job if job.status.terminal else job.seeing(places(connection))


def existing(connection: Connection, job_id: UUID, viewer: Viewer = THE_SERVICE) -> Job:
    """Read one job, whole. Raises NotFound, also where the viewer does not see it."""
    job = get(connection, job_id)
    if job is None or not sees(connection, viewer, jobs, job_id, job.owner_id):
        raise no_such_job()
    return job


def stamp(connection: Connection, job_id: UUID, viewer: Viewer) -> JobVersion:
    """Read one job's stamp, for polls, without its place in the queue: one row by primary key. Raises NotFound, also
    where the viewer does not see the job."""
    row = connection.execute(_STAMP, {"job_id": job_id}).one_or_none()
    if row is None or not sees(connection, viewer, jobs, job_id, row.owner_id):
        raise no_such_job()
    waits_for_slots = row.status == Status.QUEUED or row.children_wait
    slots = fingerprint(places(connection)) if waits_for_slots else ""
    in_queue = row.status == Status.QUEUED and row.needs != NONE
    waiter = Waiter(job_id, row.owner_id, row.rank, row.needs, row.kind, row.small, row.lies, row.seq)
    return JobVersion(row[0], Status(row[1]), None, int(row[2]), row[3], slots, waiter if in_queue else None)


def job_of(row: Mapping[Any, Any]) -> Job:
    """The job of a row that has `COLUMNS` and `spec`, and perhaps `HOLDING`; without its place in the queue."""
    columns = {"queue_position": None, **row, "status": Status(row["status"])}
    quota, limit, until = (columns.pop(column.name, None) for column in HOLDING)
    return Job(**columns, hold=None if quota is None else Hold(QuotaName(quota), limit, until))


brief_spec = cast(func.coalesce(jobs.c.spec_brief, jobs.c.spec), Text).label("spec")
"""The form of a spec in lists."""

# A study's result has up to megabytes of points: a page of fifty would be as heavy as all of them.
_STUDIES: tuple[Kind, ...] = ("benchmark", "accuracy", "scaling", "profile")
light_result = case((jobs.c.kind.not_in(_STUDIES), cast(jobs.c.result, Text))).label("result")
"""The form of a result in lists, which is None for a study."""

"""Quotas: how much of the service one user may use at a time, the limits set for each user, and the present use."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, Select, Subquery, and_, bindparam, func, literal, or_, select, union_all
from sqlalchemy.dialects.postgresql import insert as upsert

from warpfold.app.census import waiting_by_owner
from warpfold.app.config import Settings
from warpfold.app.tables.jobs import in_hand as is_in_hand
from warpfold.app.tables.jobs import is_, jobs, still, workers
from warpfold.app.tables.users import quotas, users
from warpfold.contract.states import PRIORITIES, Status


class QuotaName(StrEnum):
    """What a quota limits."""

    RUNNING = "running"
    QUEUED = "queued"
    GPU_SECONDS_PER_DAY = "gpu_seconds_per_day"


@dataclass(frozen=True, slots=True)
class Limits:
    """Jobs that run at once, jobs in the queue, GPU-seconds a day (UTC), jobs of an hour that wait as high. None: no
    limit, or not set for this user."""

    running: int | None = None
    queued: int | None = None
    gpu_seconds_per_day: float | None = None
    high_per_hour: int | None = None

    @classmethod
    def of(cls, settings: Settings) -> "Limits":
        """The limits of users for whom nothing else was set."""
        return cls(
            settings.max_running_per_user,
            settings.max_queued_per_user,
            settings.gpu_seconds_per_day,
            settings.max_high_per_hour,
        )

    def over(self, defaults: "Limits") -> "Limits":
        """The limits in force: these, and the defaults where a limit is not set."""
        return Limits(
            defaults.running if self.running is None else self.running,
            defaults.queued if self.queued is None else self.queued,
            defaults.gpu_seconds_per_day if self.gpu_seconds_per_day is None else self.gpu_seconds_per_day,
            defaults.high_per_hour if self.high_per_hour is None else self.high_per_hour,
        )


@dataclass(frozen=True, slots=True)
class Usage:
    """The use of a user's quotas: jobs running (or handed to a slot), jobs in the queue (beyond a thousand, those of
    the latest census), GPU-seconds since midnight UTC."""

    running: int
    queued: int
    gpu_seconds_today: float


@dataclass(frozen=True, slots=True)
class UserQuota:
    """A user's quotas: `limits` in force, `own` where they were set for this user, and what of them is used."""

    user: str
    limits: Limits
    own: Limits
    usage: Usage


@dataclass(frozen=True, slots=True)
class Hold:
    """A quota that keeps a user's jobs waiting, and until when if that is known."""

    quota: QuotaName
    limit: float
    until: datetime | None


MIDNIGHT = func.date_trunc("day", func.now())
"""When the day began, in UTC, like our sessions."""

_ON_GPU = (
    select(
        jobs.c.owner_id,
        func.extract(
            "epoch", func.coalesce(jobs.c.finished_at, func.now()) - func.greatest(jobs.c.started_at, MIDNIGHT)
        ).label("seconds"),
    )
    .join(workers, and_(workers.c.id == jobs.c.worker, workers.c.backend == "cuda"))
    .where(jobs.c.started_at.is_not(None))
)
# Two reads, each of an index: what ended today, and what runs. A service that never had a GPU reads nothing of today.
_had_gpu = select(workers.c.id).where(workers.c.backend == "cuda").exists()
_today = union_all(
    _ON_GPU.where(_had_gpu, jobs.c.finished_at >= MIDNIGHT), _ON_GPU.where(is_(Status.RUNNING))
).subquery("today")
gpu_seconds = (
    select(_today.c.owner_id, func.sum(_today.c.seconds).label("seconds")).group_by(_today.c.owner_id)
).subquery("gpu_seconds")
"""GPU-seconds since midnight by owner, of the latest attempt of each job that ran on a GPU. An attempt whose worker
was lost is not charged."""

# First these few, and then their owners: an index in the order of the owners has the whole history.
_in_hand = select(jobs.c.owner_id).where(is_in_hand()).offset(0).subquery("jobs_in_hand")
in_hand = (select(_in_hand.c.owner_id, func.count().label("count")).group_by(_in_hand.c.owner_id)).subquery("in_hand")
"""Jobs by owner that run or were handed to a slot, and so may run at any moment."""

_OWN = (quotas.c.running, quotas.c.queued, quotas.c.gpu_seconds_per_day, quotas.c.high_per_hour)
_LIMITS = select(*_OWN).where(quotas.c.user_id == bindparam("user_id"))
# What was handed over and waits is few.
_handed = select(jobs.c.owner_id).where(is_in_hand(), still(Status.QUEUED)).offset(0).subquery("handed")


def _usage(waiting: Subquery) -> Select[Any]:
    """The limits and the usage of all users, by what waits of each."""
    parts = union_all(select(waiting.c.owner_id, waiting.c.number), select(_handed.c.owner_id, literal(1)))
    part = parts.subquery("parts")
    queued = (
        select(part.c.owner_id, func.sum(part.c.number).label("number")).group_by(part.c.owner_id).subquery("queued")
    )
    return (
        select(
            users.c.name,
            *_OWN,
            func.coalesce(in_hand.c.count, 0).label("running_now"),
            func.coalesce(queued.c.number, 0).label("queued_now"),
            func.coalesce(gpu_seconds.c.seconds, 0).label("gpu_seconds_now"),
        )
        .outerjoin(quotas, quotas.c.user_id == users.c.id)
        .outerjoin(in_hand, in_hand.c.owner_id == users.c.id)
        .outerjoin(queued, queued.c.owner_id == users.c.id)
        .where(users.c.removed_at.is_(None))
        .outerjoin(gpu_seconds, gpu_seconds.c.owner_id == users.c.id)
        .order_by(users.c.name)
    )


_named = select(users.c.id).where(users.c.name == bindparam("user")).scalar_subquery()
_ALL = _usage(waiting_by_owner())
_ONE = _usage(waiting_by_owner(_named)).where(users.c.name == bindparam("user"))


def limits_of(connection: Connection, user_id: int, defaults: Limits) -> Limits:
    """The limits in force for a user."""
    row = connection.execute(_LIMITS, {"user_id": user_id}).one_or_none()
    return defaults if row is None else Limits(*row).over(defaults)


def counts_towards_quota(connection: Connection, job_id: UUID, limits: Limits) -> bool:
    """Whether a job that has ended, or a part of it, is still counted for a quota of the hour or of the day."""
    high = PRIORITIES["high"]
    of_the_hour = and_(
        literal(limits.high_per_hour is not None),
        jobs.c.priority == high,
        jobs.c.rank == high,
        jobs.c.created_at > func.now() - func.make_interval(0, 0, 0, 0, 1),
    )
    on_gpu = select(workers.c.id).where(workers.c.id == jobs.c.worker, workers.c.backend == "cuda").exists()
    of_today = and_(literal(limits.gpu_seconds_per_day is not None), jobs.c.finished_at >= MIDNIGHT, on_gpu)
    its = or_(jobs.c.id == job_id, jobs.c.parent_id == job_id)
    return connection.execute(select(select(jobs.c.id).where(its, or_(of_the_hour, of_today)).exists())).scalar_one()


def all_quotas(connection: Connection, defaults: Limits) -> Sequence[UserQuota]:
    """The quotas of all users, by name."""
    return [_quota(row, defaults) for row in connection.execute(_ALL)]


def quota_of(connection: Connection, user: str, defaults: Limits) -> UserQuota | None:
    """One user's quotas; None if there is no such user."""
    row = connection.execute(_ONE, {"user": user}).one_or_none()
    return None if row is None else _quota(row, defaults)


def put_limits(connection: Connection, user: str, own: Limits) -> bool:
    """Set a user's limits; a limit of None follows the settings. False if there is no such user."""
    user_id = connection.execute(
        select(users.c.id).where(users.c.name == user, users.c.removed_at.is_(None))
    ).scalar_one_or_none()
    if user_id is None:
        return False
    values = asdict(own)
    connection.execute(
        upsert(quotas).values(user_id=user_id, **values).on_conflict_do_update(index_elements=["user_id"], set_=values)
    )
    return True


def _quota(row: Row[*tuple[Any, ...]], defaults: Limits) -> UserQuota:
    own = Limits(row.running, row.queued, row.gpu_seconds_per_day, row.high_per_hour)
    usage = Usage(row.running_now, int(row.queued_now), float(row.gpu_seconds_now))
    return UserQuota(row.name, own.over(defaults), own, usage)

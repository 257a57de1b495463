"""Direct hand-over: a small job that comes while nothing waits goes to an idle slot by the statement that accepts it.

The dispatcher would decide the same a few milliseconds later. The worker hears of the job by a notification, as soon as
the acceptance is committed. Like a message in Redis, that notification is a hint: where it is lost, the job was handed
over and not claimed, and the dispatcher withdraws it (docs/decisions/0029-the-short-way-of-a-lone-job.md).
"""

from typing import Any
from uuid import UUID

from sqlalchemy import (
    CTE,
    BigInteger,
    Boolean,
    ColumnElement,
    String,
    Text,
    bindparam,
    cast,
    exists,
    func,
    literal_column,
    or_,
    select,
)

from warpfold.app.quotas.quota import QuotaName
from warpfold.app.tables.jobs import OPEN, in_hand, in_lanes, jobs, workers
from warpfold.app.tables.users import quota_holds, quotas
from warpfold.contract.needs import ALL, ANY, DASK, ONE_DEVICE

LISTEN = """
    select pg_advisory_lock(hashtextextended('warpfold listens ' || %(worker)s, 0)),
           'warpfold_slot_' || md5(%(worker)s) as channel
"""
"""A statement for psycopg that takes the lock by which `worker` shows that it listens, until the session ends, and
returns the name of its channel."""


def idle_slot() -> CTE:
    """The idle slot that is to have the new job of the parameters `needs` and `owner_id`: a part of the statement that
    accepts it. It has no row unless the job may be handed over `directly`, and none where the dispatcher has to decide:
    because any job waits, because no slot that suits is idle and listens, because the job prefers some kinds of slots
    to others, or because the owner has a limit of running jobs, which only the dispatcher keeps exactly."""
    held = jobs.alias("held")
    needs = bindparam("needs", type_=String)
    owner_id = bindparam("owner_id", type_=BigInteger)
    limited = select(quotas.c.user_id).where(quotas.c.user_id == owner_id, quotas.c.running.is_not(None)).exists()
    one_device = or_(*(workers.c.backend == backend for backend in ONE_DEVICE))  # `in_` would have no text of its own
    kept_from_gpus = select(quota_holds.c.user_id).where(
        quota_holds.c.user_id == owner_id,
        quota_holds.c.quota == QuotaName.GPU_SECONDS_PER_DAY.value,
        quota_holds.c.until > func.now(),
    )
    return (
        select(workers.c.id.label("slot"))
        .where(
            bindparam("directly", type_=Boolean),
            ~exists().where(in_lanes(ALL)),
            ~limited,
            OPEN,
            or_(workers.c.backend == needs, (needs == ANY) & one_device),
            or_(workers.c.backend == "cpu", workers.c.backend == DASK, ~kept_from_gpus.exists()),
            ~select(held.c.id).where(held.c.slot == workers.c.id, in_hand(held)).exists(),
            # The worker has this lock to itself while it listens. Nobody but a worker keeps the others out by it.
            ~func.pg_try_advisory_xact_lock_shared(
                func.hashtextextended(literal_column("'warpfold listens '", Text) + workers.c.id, literal_column("0"))
            ),
        )
        .order_by(workers.c.backend != "cuda", workers.c.id)
        .limit(1)
        .cte("idle_slot")
    )


def tell(slot: ColumnElement[Any], job_id: ColumnElement[Any]) -> ColumnElement[Any]:
    """Notify the worker of `slot`, when this transaction commits, of the first attempt of a job."""
    channel = literal_column("'warpfold_slot_'", Text) + func.md5(slot)
    return func.pg_notify(channel, cast(job_id, Text) + literal_column("' 1'", Text))


def attempt_of(payload: str) -> tuple[UUID, int]:
    """The job's id and the number of the attempt that a notification tells of."""
    job_id, attempt = payload.split()
    return UUID(job_id), int(attempt)

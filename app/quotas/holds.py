"""Holds: the users whose jobs the dispatcher makes wait for a quota, noted so that the api can say why a job waits."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Connection,
    Double,
    String,
    TextClause,
    bindparam,
    delete,
    func,
    literal,
    or_,
    select,
    text,
    tuple_,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from warpfold.app.quotas.quota import MIDNIGHT, Limits, QuotaName, gpu_seconds, in_hand
from warpfold.app.tables.jobs import jobs, lives, waits, workers
from warpfold.app.tables.users import quota_holds, quotas, users
from warpfold.contract.needs import ALL


@dataclass(frozen=True, slots=True)
class UserOnHold:
    """A user whose jobs wait for a quota."""

    user_id: int
    quota: str
    limit: float
    until: datetime | None


_seconds = func.coalesce(quotas.c.gpu_seconds_per_day, bindparam("gpu_seconds_per_day", type_=Double))
_IN_HAND = select(in_hand.c.owner_id, in_hand.c.count)
_OWN = select(quotas.c.user_id, quotas.c.running).where(quotas.c.running.is_not(None))
_EVERYBODY = select(users.c.id)
# One probe of the index of waiting jobs for each user, rank and need.
_WAIT: TextClause = text("""
    select asked.id
    from unnest(:users) as asked(id) cross join lateral (
        select 1
        from unnest(array[0, 1, 2]::smallint[]) as ranks(rank)
        cross join unnest(:needs) as lane(needs)
        cross join lateral (
            select 1 from jobs
            where status = 'queued' and dispatched_at is null and needs <> 'none'
              and rank = ranks.rank and needs = lane.needs and owner_id = asked.id
            limit 1
        ) as held
        limit 1
    ) as now_held
""").bindparams(bindparam("users", type_=ARRAY(BigInteger)), bindparam("needs", list(ALL), type_=ARRAY(String)))
# Whether or not anything waits: the next job may come before we look again.
_A_DAY = (
    select(
        users.c.id,
        literal(QuotaName.GPU_SECONDS_PER_DAY.value),
        _seconds,
        MIDNIGHT + func.make_interval(0, 0, 0, 1),
    )
    .outerjoin(quotas, quotas.c.user_id == users.c.id)
    .outerjoin(gpu_seconds, gpu_seconds.c.owner_id == users.c.id)
    .where(func.coalesce(gpu_seconds.c.seconds, 0) >= _seconds)
)
_KEPT = select(quota_holds.c.user_id, quota_holds.c.quota, quota_holds.c.limit, quota_holds.c.until)
_SET = select(func.count(quotas.c.running), func.count(quotas.c.gpu_seconds_per_day))


def refresh(connection: Connection, defaults: Limits) -> Sequence[UserOnHold]:
    """Find out anew who has to wait; returns the new holds. It costs next to nothing where nothing is limited."""
    own_running, own_seconds = connection.execute(_SET).one()
    now_held: set[UserOnHold] = set()
    if own_running or defaults.running is not None:
        now_held |= _at_once(connection, defaults.running)
    if own_seconds or defaults.gpu_seconds_per_day is not None:
        default = {"gpu_seconds_per_day": defaults.gpu_seconds_per_day}
        now_held |= {UserOnHold(*row) for row in connection.execute(_A_DAY, default)}
    kept = {UserOnHold(*row) for row in connection.execute(_KEPT)}
    if gone := kept - now_held:
        keys = [(held.user_id, held.quota) for held in gone]
        connection.execute(delete(quota_holds).where(tuple_(quota_holds.c.user_id, quota_holds.c.quota).in_(keys)))
    new = sorted(now_held - kept, key=lambda held: (held.user_id, held.quota))
    for held in new:
        row = {"limit": held.limit, "until": held.until}
        connection.execute(
            upsert(quota_holds)
            .values(user_id=held.user_id, quota=held.quota, **row)
            # A dispatcher that has not yet heard that it no longer leads may be at it, too.
            .on_conflict_do_update(index_elements=["user_id", "quota"], set_=row)
        )
    return new


def _at_once(connection: Connection, most: int | None) -> set[UserOnHold]:
    """Users who have as many jobs in hand as they may have, and others that wait; `most` where nothing else is set."""
    now: dict[int, int] = {row[0]: row[1] for row in connection.execute(_IN_HAND)}
    limits: dict[int, int] = {}
    if most is not None:
        limits = dict.fromkeys(connection.execute(_EVERYBODY).scalars() if most == 0 else now, most)
    limits |= {row[0]: row[1] for row in connection.execute(_OWN)}
    full = [user for user, limit in limits.items() if now.get(user, 0) >= limit]
    if not full:
        return set()
    waiting = connection.execute(_WAIT, {"users": full}).scalars()
    return {UserOnHold(user, QuotaName.RUNNING.value, float(limits[user]), None) for user in waiting}


_cpu_takes = select(workers.c.id).where(workers.c.backend == "cpu", lives(), ~workers.c.draining).exists()
holding = (
    select(quota_holds.c.quota, quota_holds.c.limit, quota_holds.c.until)
    .where(
        quota_holds.c.user_id == jobs.c.owner_id,
        waits(),
        jobs.c.dispatched_at.is_(None),
        or_(
            quota_holds.c.until.is_(None),
            # GPU-seconds keep nothing from a CPU.
            (quota_holds.c.until > func.now()) & ((jobs.c.needs == "cuda") | ((jobs.c.needs == "any") & ~_cpu_takes)),
        ),
    )
    .order_by(quota_holds.c.until.desc().nulls_last())
    .limit(1)
    .correlate(jobs)
    .lateral("holding")
)
"""The quota that a waiting job waits for, at most one row, to be joined to `jobs`."""

HOLDING = (
    holding.c.quota.label("hold_quota"),
    holding.c.limit.label("hold_limit"),
    holding.c.until.label("hold_until"),
)

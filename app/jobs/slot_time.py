"""The time for which users' jobs hold slots: between users of a rank, it decides who is next.

Each kind of slot counts by itself. The count begins when jobs wait that slots have no room for, and ends when a slot
has room that nobody wants: then all users are equal again. While it goes on, a user who comes to a rank begins with
what the user there has who has used the least, so that nobody saves time up
(docs/decisions/0097-users-share-time-not-turns.md).

The dispatcher stores the count with each hand-over. What jobs have held slots since then is added when it is read, so
that a new leader goes on where the last one ended.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Connection,
    DateTime,
    Double,
    Integer,
    SmallInteger,
    String,
    TextClause,
    Uuid,
    bindparam,
    text,
)

from warpfold.app.jobs.dispatch_state import TimeUsed

_FEW, _LATEST = 8, 500
"""How many of the latest jobs that ended are looked at: the few, and the others where more ended since the count was
stored, which are some 64 a slot if any wait. With a condition on the time beside the limit, or a limit that the plan
knows, a plan that was made while the table was empty would read all that have ended."""

# Small jobs of a group are claimed together and run one after the other. The time of a slot is therefore shared by
# those who held it, each by the time from the claim to the end.
TIME_USED = (
    text("""
    with stored as (
        select backend, max(counted_at) as at from slot_time group by backend
    ), held as (
        select slot as worker, owner_id, started_at, now() as until from jobs
        where slot is not null and finished_at is null and started_at is not null
        union all
        select worker, owner_id, started_at, finished_at from (
            select worker, owner_id, started_at, finished_at from jobs
            where finished_at is not null order by finished_at desc limit (
                select case when finished_at > (select min(at) from stored) then :latest else :few end from jobs
                where finished_at is not null order by finished_at desc offset :few limit 1
            )
        ) as latest
        where started_at is not null and finished_at > (select min(at) from stored)
    ), stretches as (
        select stored.backend, held.worker, held.owner_id, greatest(held.started_at, stored.at) as began, held.until
        from held join workers on workers.id = held.worker join stored on stored.backend = workers.backend
        where held.until > greatest(held.started_at, stored.at)
    ), slots as (
        select worker, least(
            1, extract(epoch from max(until) - min(began)) / extract(epoch from sum(until - began))
        ) as part
        from stretches group by worker
    ), since as (
        select backend, owner_id, sum(extract(epoch from until - began) * part) as held_s
        from stretches join slots using (worker) group by backend, owner_id
    )
    select backend, null::smallint as rank, owner_id,
           coalesce(slot_time.used_s, 0) + coalesce(since.held_s, 0)::float8 as used_s,
           since.held_s is not null as grows, now() as at
    from slot_time full join since using (backend, owner_id)
    union all
    select backend, rank, null, used_s, false, now() from turns
    """)
    .bindparams(bindparam("latest", _LATEST, Integer), bindparam("few", _FEW, Integer))
    .columns(backend=String, rank=SmallInteger, owner_id=BigInteger, used_s=Double, grows=Boolean, at=DateTime(True))
)
"""Rows of `time_used`."""

COUNTED = """
    insert into slot_time (backend, owner_id, used_s, counted_at)
    select backend, owner_id, used_s, coalesce(:counted_at, now())
    from unnest(:used_backends, :used_owners, :used_seconds) as used(backend, owner_id, used_s)
    on conflict (backend, owner_id) do update set used_s = excluded.used_s, counted_at = excluded.counted_at
"""
"""SQL that stores the time used, by the parameters `PARAMETERS`."""
PARAMETERS = (
    bindparam("counted_at", type_=DateTime(True)),
    bindparam("used_backends", type_=ARRAY(String)),
    bindparam("used_owners", type_=ARRAY(BigInteger)),
    bindparam("used_seconds", type_=ARRAY(Double)),
)

_FORGET: TextClause = text("""
    with forgotten as (delete from slot_time where :of_all or backend = any(:backends))
    update turns set used_s = 0 where (:of_all or backend = any(:backends)) and used_s > 0
""").bindparams(bindparam("backends", type_=ARRAY(String)), bindparam("of_all", type_=Boolean))

_ADD_LOST: TextClause = text("""
    insert into slot_time (backend, owner_id, used_s, counted_at)
    select backend, owner_id, sum(held_s), max(at) from (
        select stored.backend, jobs.owner_id, stored.at,
               extract(epoch from now() - greatest(jobs.started_at, stored.at))::float8
               / count(*) over (partition by jobs.worker) as held_s
        from jobs join workers on workers.id = jobs.worker
        join (select backend, max(counted_at) as at from slot_time group by backend) as stored
            on stored.backend = workers.backend
        where jobs.id = any(:ids) and jobs.started_at is not null
    ) as lost
    group by backend, owner_id order by backend, owner_id
    on conflict (backend, owner_id) do update set used_s = slot_time.used_s + excluded.used_s
""").bindparams(bindparam("ids", type_=ARRAY(Uuid)))


def time_used(rows: Iterable[Sequence[Any]]) -> TimeUsed:
    """The time that rows of `TIME_USED` tell of."""
    used: dict[tuple[str, int], float] = {}
    floors: dict[tuple[str, int], float] = {}
    growing: set[tuple[str, int]] = set()
    counted_at: datetime | None = None
    for backend, rank, owner_id, used_s, grows, at in rows:
        counted_at = at
        if owner_id is None:
            floors[backend, rank] = used_s
        else:
            used[backend, owner_id] = used_s
            if grows:
                growing.add((backend, owner_id))
    return TimeUsed(used, floors, growing, counted_at)


def read(connection: Connection) -> TimeUsed:
    """How much time users have used."""
    return time_used(connection.execute(TIME_USED))


def forget(connection: Connection, backends: Collection[str] | None = None) -> None:
    """All users are equal again on slots of these backends, or on all slots."""
    connection.execute(_FORGET, {"backends": sorted(backends or ()), "of_all": backends is None})


def add_lost(connection: Connection, ids: Collection[UUID]) -> None:
    """Count the time of running attempts that are lost: no row tells of it after they are taken back."""
    connection.execute(_ADD_LOST, {"ids": list(ids)})

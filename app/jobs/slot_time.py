"""The time for which users' jobs hold slots: between users of a rank, it decides who is next.

Each kind of slot counts by itself. The count begins when jobs wait that slots have no room for, and ends when a slot
has room that nobody wants: then all users are equal again. While it goes on, a user who comes to a rank begins with
what the user there has who has used the least, so that nobody saves time up
(docs/decisions/0097-users-share-time-not-turns.md).

The dispatcher stores the count with a hand-over, of all users in one row a kind of slot. What jobs have held slots
since then is added when it is read, so that a new leader goes on where the last one ended.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    JSON,
    Boolean,
    Connection,
    DateTime,
    Integer,
    SmallInteger,
    String,
    Text,
    TextClause,
    Uuid,
    bindparam,
    text,
)

from warpfold.app.jobs.dispatch_state import TimeUsed

FEW, _LATEST = 8, 500
"""How many of the latest jobs that ended are looked at: the few, and the others where more ended since the count was
stored, which are some 64 a slot if any wait. After a few the count is stored anew. With a condition on the time beside
the limit, or a limit that the plan knows, a plan that was made while the table was empty would read all that have
ended."""

# Small jobs of a group are claimed together and run one after the other. The time of a slot is therefore shared by
# those who held it, each by the time from the claim to the end.
TIME_USED = (
    text("""
    with stored as (
        select backend, counted_at as at from slot_time
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
        select backend, owner_id, sum(extract(epoch from until - began) * part)::float8 as held_s,
               count(*) as stretches
        from stretches join slots using (worker) group by backend, owner_id
    )
    select backend, null::smallint as rank, to_json(owners) as owners, to_json(used_s) as used_s, 0 as stretches,
           now() as at
    from slot_time
    union all
    select backend, null, json_agg(owner_id), json_agg(held_s), sum(stretches), now() from since group by backend
    union all
    select backend, rank, null, json_build_array(used_s), 0, now() from turns
    """)
    .bindparams(bindparam("latest", _LATEST, Integer), bindparam("few", FEW, Integer))
    .columns(backend=String, rank=SmallInteger, owners=JSON, used_s=JSON, stretches=Integer, at=DateTime(timezone=True))
)
"""Rows of `time_used`: what is stored and what came since by backend, and the floors by backend and rank."""

COUNTED = """
    insert into slot_time (backend, owners, used_s, counted_at)
    select backend, cast(owners as bigint[]), cast(used_s as float8[]), coalesce(:counted_at, now())
    from unnest(:used_backends, :used_owners, :used_seconds) as used(backend, owners, used_s) order by backend
    on conflict (backend) do update
        set owners = excluded.owners, used_s = excluded.used_s, counted_at = excluded.counted_at
"""
"""SQL that stores the time used, by the parameters `PARAMETERS`: an array of texts `as_array` a kind of slot."""
PARAMETERS = (
    bindparam("counted_at", type_=DateTime(True)),
    bindparam("used_backends", type_=ARRAY(String)),
    bindparam("used_owners", type_=ARRAY(Text)),
    bindparam("used_seconds", type_=ARRAY(Text)),
)

_FORGET: TextClause = text("""
    with forgotten as (delete from slot_time where :of_all or backend = any(:backends))
    update turns set used_s = 0 where (:of_all or backend = any(:backends)) and used_s > 0
""").bindparams(bindparam("backends", type_=ARRAY(String)), bindparam("of_all", type_=Boolean))

_ADD_LOST: TextClause = text("""
    with lost as (
        select stored.backend, jobs.owner_id, extract(epoch from now() - greatest(jobs.started_at, stored.counted_at))
               / count(*) over (partition by jobs.worker) as held_s
        from jobs join workers on workers.id = jobs.worker join slot_time as stored on stored.backend = workers.backend
        where jobs.id = any(:ids) and jobs.started_at is not null
    )
    update slot_time set (owners, used_s) = (
        select array_agg(owner_id), array_agg(seconds) from (
            select owner_id, sum(seconds)::float8 as seconds from (
                select * from unnest(slot_time.owners, slot_time.used_s) as so_far(owner_id, seconds)
                union all
                select owner_id, held_s from lost where lost.backend = slot_time.backend
            ) as parts group by owner_id
        ) as totals
    )
    where backend in (select backend from lost)
""").bindparams(bindparam("ids", type_=ARRAY(Uuid)))


def as_array(numbers: Iterable[float]) -> str:
    """Numbers as a text that Postgres casts to an array. The driver takes longer to write as many values."""
    return "{" + ",".join(map(str, numbers)) + "}"


def time_used(rows: Iterable[Sequence[Any]]) -> TimeUsed:
    """The time that rows of `TIME_USED` tell of."""
    used: defaultdict[tuple[str, int], float] = defaultdict(float)
    floors: dict[tuple[str, int], float] = {}
    since: Counter[str] = Counter()
    counted_at: datetime | None = None
    for backend, rank, owners, seconds, stretches, at in rows:
        counted_at = at
        if owners is None:
            [floors[backend, rank]] = seconds
        else:
            since[backend] += int(stretches)
            for owner_id, used_s in zip(owners, seconds, strict=True):
                used[backend, owner_id] += used_s
    return TimeUsed(used, floors, since, counted_at)


def read(connection: Connection) -> TimeUsed:
    """How much time users have used."""
    return time_used(connection.execute(TIME_USED))


def forget(connection: Connection, backends: Collection[str] | None = None) -> None:
    """All users are equal again on slots of these backends, or on all slots."""
    connection.execute(_FORGET, {"backends": sorted(backends or ()), "of_all": backends is None})


def add_lost(connection: Connection, ids: Collection[UUID]) -> None:
    """Count the time of running attempts that are lost: no row tells of it after they are taken back."""
    connection.execute(_ADD_LOST, {"ids": list(ids)})

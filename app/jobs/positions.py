"""Places in the queue, which is in the order of rank and age, and the jobs ahead of a job.

The first thousand places are counted by the index of the queue. Behind them, the count begins at the nearest mark that
the latest census left (`app.census`), so that a place costs the same however many jobs wait; it is as old as that
census.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import ARRAY, BigInteger, ColumnElement, Connection, TextClause, Uuid, bindparam, literal_column, text

from warpfold.app.census import BEGINNING, END, LAST_SEQ, NEAR, RANKS, waiting_between

_FRONT = f"""
    select rank, seq from ({waiting_between(BEGINNING, END, NEAR)}) as first
    order by rank desc, seq offset {NEAR - 1} limit 1
"""  # noqa: S608 - all of it stands here
"""SQL of the last of the places that are near; nothing where all are."""


def _number_between(after: tuple[str, str], before: tuple[str, str]) -> str:
    """SQL of how many jobs wait between two places. Beyond a thousand, which no census has seen yet, as many more are
    assumed as were accepted."""
    rank, seq = before
    last = f"coalesce(max(seq) filter (where rank = {rank}), {seq})"
    return f"""
        select count(*) + case when count(*) > {NEAR} then greatest(0, {seq} - 1 - {last}) else 0 end as number
        from ({waiting_between(after, before, NEAR + 1)}) as counted
    """  # noqa: S608 - all of it stands here


def _mark(rank: str, seq: str) -> str:
    """SQL of the last mark before a place."""
    return f"""
        select mark.* from {RANKS} cross join lateral (
            select place, rank, seq, ahead from queue_marks as nearest
            where nearest.rank = ranks.rank
              and nearest.seq < case ranks.rank when {rank} then {seq} else {LAST_SEQ} end
            order by seq desc limit 1
        ) as mark
        where ranks.rank >= {rank} order by ranks.rank limit 1
    """  # noqa: S608 - all of it stands here


def place_of(rank: str, seq: str) -> ColumnElement[int]:
    """The place of a waiting job, whose rank and `seq` are given as SQL."""
    place = f"""(
        select 1 + case when near.number < {NEAR} then near.number else greatest({NEAR}, start.place + (
            {_number_between(("start.rank", "start.seq"), (rank, seq))}
        )) end
        from (
            select coalesce(mark.place, 0) as place, coalesce(mark.rank, {BEGINNING[0]}) as rank,
                   coalesce(mark.seq, {BEGINNING[1]}) as seq
            from (values (1)) as always(one) left join lateral ({_mark(rank, seq)}) as mark on true
        ) as start left join lateral (
            select count(*) as number from ({waiting_between(BEGINNING, (rank, seq), NEAR)}) as first
        ) as near on start.place <= {2 * NEAR}
    )"""  # noqa: S608 - all of it stands here
    return literal_column(" ".join(place.split()), BigInteger)  # psycopg remembers statements of up to 4 kB


# Of several jobs each is counted from the latest of these: the beginning, the job before it, and, if it is not near,
# the last mark.
_POSITIONS: TextClause = text(f"""
    with front as materialized ({_FRONT}), asked as materialized (
        select id, rank, seq, lag(rank) over in_order as rank_before, lag(seq) over in_order as seq_before,
               exists (
                   select 1 from front
                   where front.rank > jobs.rank or (front.rank = jobs.rank and front.seq < jobs.seq)
               ) as far
        from jobs where id = any(:ids) and status || '' = 'queued' and needs <> 'none'
        window in_order as (order by rank desc, seq)
    )
    select asked.id, start.place, between_both.number
    from asked cross join lateral (
        select * from (
            select 0::bigint as place, {BEGINNING[0]} as rank, {BEGINNING[1]} as seq
            union all
            select null, asked.rank_before, asked.seq_before - 1 where asked.seq_before is not null
            union all
            select place, rank, seq from ({_mark("asked.rank", "asked.seq")}) as mark where asked.far
        ) as starts
        order by rank, seq desc, place limit 1
    ) as start cross join lateral (
        {_number_between(("start.rank", "start.seq"), ("asked.rank", "asked.seq"))}
    ) as between_both
    order by asked.rank desc, asked.seq
""").bindparams(bindparam("ids", type_=ARRAY(Uuid)))  # noqa: S608 - all of it stands here

_COLUMNS = "kind, needs, waiting.rank, waiting.seq"
_AHEAD: TextClause = text(f"""
    with mine as materialized (
        select rank, seq from jobs where id = :job_id
    ), front as materialized ({_FRONT}), start as materialized (
        select coalesce(mark.rank, {BEGINNING[0]}) as rank, coalesce(mark.seq, {BEGINNING[1]}) as seq, mark.ahead
        from mine left join lateral ({_mark("mine.rank", "mine.seq")}) as mark on exists (
            select 1 from front
            where front.rank > mine.rank or (front.rank = mine.rank and front.seq < mine.seq)
        )
    )
    select kind, needs, count(*) as number
    from mine cross join start cross join lateral (
        {waiting_between(("start.rank", "start.seq"), ("mine.rank", "mine.seq"), NEAR + 1, _COLUMNS)}
    ) as counted
    group by kind, needs
    union all
    select split_part(key, ' ', 1), split_part(key, ' ', 2), value::bigint
    from start cross join lateral json_each_text(start.ahead)
""").bindparams(bindparam("job_id", type_=Uuid))  # noqa: S608 - all of it stands here


@dataclass(frozen=True, slots=True)
class Ahead:
    """The number of jobs ahead of a job that have the same kind and need the same backend."""

    kind: str
    needs: str
    number: int


def positions_of(connection: Connection, ids: Collection[UUID]) -> Mapping[UUID, int]:
    """The place of each job that waits."""
    positions: dict[UUID, int] = {}
    latest = 0
    for row in connection.execute(_POSITIONS, {"ids": list(ids)}):
        latest = (latest if row.place is None else row.place + 1) + row.number
        positions[row.id] = latest
    return positions


def ahead_of(connection: Connection, job_id: UUID) -> list[Ahead]:
    """The jobs ahead of a waiting job, counted by kind and need."""
    return [Ahead(*row) for row in connection.execute(_AHEAD, {"job_id": job_id})]

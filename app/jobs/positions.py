"""Places in the queue, which is in the order of rank and age."""

from collections.abc import Collection, Mapping
from uuid import UUID

from sqlalchemy import ARRAY, Connection, TextClause, Uuid, bindparam, text

# From each of the jobs to the next of them in the queue, the jobs between are counted by the index of the queue alone;
# the sums of these numbers are the places.
_POSITIONS: TextClause = text("""
    with asked as (
        select id, rank, seq, lag(rank) over in_order as rank_before, lag(seq) over in_order as seq_before
        from jobs where id = any(:ids) and status = 'queued' and needs <> 'none'
        window in_order as (order by rank desc, seq)
    )
    select asked.id, sum(between_both.number) over (order by asked.rank desc, asked.seq) as position
    from asked cross join lateral (
        select count(*) as number
        from unnest(array[0, 1, 2]::smallint[]) as ranks(rank) cross join lateral (
            select 1 from jobs
            where status = 'queued' and needs <> 'none' and rank = ranks.rank
              and seq > case ranks.rank when asked.rank_before then asked.seq_before else -1 end
              and seq <= case ranks.rank when asked.rank then asked.seq else 9223372036854775807 end
        ) as waiting
        where ranks.rank between asked.rank and coalesce(asked.rank_before, 2)
    ) as between_both
""").bindparams(bindparam("ids", type_=ARRAY(Uuid)))


def positions_of(connection: Connection, ids: Collection[UUID]) -> Mapping[UUID, int]:
    """The place of each job that waits, in one pass over the queue as far as the last of them."""
    rows = connection.execute(_POSITIONS, {"ids": list(ids)})
    return {row.id: int(row.position) for row in rows}

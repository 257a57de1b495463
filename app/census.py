"""The census: how many jobs wait and are on record, counted in the background, so that no answer counts them all.

Up to `NEAR` jobs are counted when somebody asks, by an index that ends there. Larger numbers come from the latest
census, which the dispatcher's housekeeping takes every few seconds. A census reads the whole queue, so the
pauses between two of them grow with the time that one takes (docs/decisions/0022-a-census-and-room).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    JSON,
    BigInteger,
    ColumnElement,
    CompoundSelect,
    Connection,
    Double,
    Select,
    Subquery,
    Text,
    TextClause,
    bindparam,
    cast,
    delete,
    func,
    insert,
    null,
    select,
    text,
    union_all,
)

from warpfold.app.tables.jobs import in_groups, in_lanes, jobs
from warpfold.app.tables.queue import census_counts, queue_lanes
from warpfold.contract.needs import ALL

NEAR = 1000
"""How many jobs are counted when somebody asks."""

PRIORITY, STATUS, REASON = "priority", "status", "reason"
"""The topics of `census_counts`."""

_LOCK = 0x63_65_6E_73_75_73  # advisory lock "census": of several dispatchers one takes it
_SITUATION: TextClause = text(f"""
    select pg_try_advisory_xact_lock({_LOCK}) as mine,
           (select count(*) from (
               select 1 from jobs where status = 'queued' and needs <> 'none' limit {NEAR + 1}) as few) as waiting,
           (select count(*) from (
               select 1 from jobs where finished_at is not null limit {NEAR + 1}) as few) as ended,
           (select min(finished_at) from jobs where finished_at is not null) as first,
           (select max(finished_at) from jobs where finished_at is not null) as last,
           exists (select 1 from queue_lanes) as laned,
           exists (select 1 from census_counts where topic in ('{STATUS}', '{REASON}')) as recorded
""")  # noqa: S608 - all of it stands here
_PRIORITIES: TextClause = text("""
    select priority, count(*) as number from jobs where status = 'queued' and needs <> 'none' group by priority
""")
# One status after the other, each by the index of lists.
_RECORD: TextClause = text(f"""
    select '{STATUS}' as topic, status as label, count(*) as number from jobs where status = 'succeeded' group by status
    union all
    select '{STATUS}', status, count(*) from jobs where status = 'cancelled' group by status
    union all
    select '{REASON}', reason, count(*) from jobs where status = 'failed' group by reason
""")  # noqa: S608 - all of it stands here
_NO_LANES = delete(queue_lanes)
_FORGET: TextClause = text("delete from census_counts where topic = any(:topics)").bindparams(
    bindparam("topics", type_=ARRAY(Text))
)
_COUNT: TextClause = text("""
    insert into census_counts (topic, label, number) select * from unnest(:topics, :labels, :numbers)
""").bindparams(
    bindparam("topics", type_=ARRAY(Text)),
    bindparam("labels", type_=ARRAY(Text)),
    bindparam("numbers", type_=ARRAY(BigInteger)),
)
_ALIKE = tuple(column.name for column in queue_lanes.primary_key)


def _in_lanes(waiting: Select[Any], *, seqs: bool = False) -> Select[Any]:
    """Rows of `queue_lanes`, of jobs that wait; with `seqs` those of the jobs besides, in any order."""
    those = waiting.subquery("those")
    size = cast(those.c.work.op("->>")("bytes"), Double)
    return select(
        *(those.c[name] for name in _ALIKE),
        func.count().label("number"),
        func.coalesce(func.sum(size), 0).label("bytes"),
        func.count().filter(size.is_(None)).label("unsized"),
        func.min(those.c.seq).label("oldest"),
        func.max(those.c.seq).label("newest"),
        *((func.json_agg(those.c.seq).label("seqs"),) if seqs else ()),
    ).group_by(*(those.c[name] for name in _ALIKE))


LIES = func.coalesce(jobs.c.work.op("->>")("lies"), "").label("lies")
"""Where the elements of a job lie, as its lane says it."""

_waiting = select(
    *(jobs.c.owner_id, jobs.c.rank, jobs.c.needs, jobs.c.kind, in_groups().label("small"), LIES),
    *(jobs.c.work, jobs.c.seq),
).where(in_lanes(ALL))
_LANES = insert(queue_lanes).from_select([column.name for column in queue_lanes.c], _in_lanes(_waiting))


RANKS = "unnest(array[2, 1, 0]::smallint[]) as ranks(rank)"
LAST_SEQ = "9223372036854775807"
BEGINNING = ("2::smallint", "-1::bigint")
END = ("0::smallint", LAST_SEQ)
"""SQL of the ranks in the order of the queue, of the largest `seq`, and of places before the first and after the last
job: the rank and the `seq` of each."""


def waiting_between(after: tuple[str, str], before: tuple[str, str], most: int, columns: str = "rank, seq") -> str:
    """SQL of the waiting jobs between two places, each given as SQL of its rank and `seq`, neither of them included; at
    most so many. A rank from itself to itself, and the order of both columns: only `ix_jobs_queue` has that order."""
    (rank_after, seq_after), (rank_before, seq_before) = after, before
    return f"""
        select each.* from {RANKS} cross join lateral (
            select {columns} from jobs as waiting
            where status = 'queued' and needs <> 'none' and waiting.rank >= ranks.rank and waiting.rank <= ranks.rank
              and waiting.seq > case ranks.rank when {rank_after} then {seq_after} else -1 end
              and waiting.seq < case ranks.rank when {rank_before} then {seq_before} else {LAST_SEQ} end
            order by waiting.rank desc, waiting.seq limit {most}
        ) as each
        where ranks.rank between {rank_before} and {rank_after} limit {most}
    """  # noqa: S608 - all of it stands here


@dataclass(frozen=True, slots=True)
class RecordSpan:
    """When the first and the last of the jobs on record ended. While both times stay the same, no job has ended and no
    job was removed."""

    first: datetime | None
    last: datetime | None


@dataclass(frozen=True, slots=True)
class _Count:
    """A row of `census_counts`."""

    topic: str
    label: str
    number: int


@dataclass(frozen=True, slots=True)
class Lane:
    """Waiting jobs that are alike: a row of `queue_lanes`. `seqs` are those of the jobs in their order, if each was
    read."""

    owner_id: int
    rank: int
    needs: str
    kind: str
    small: bool
    lies: str
    number: int
    bytes: float
    unsized: int
    oldest: int
    newest: int
    seqs: Sequence[int] = ()


def take(connection: Connection, recorded: RecordSpan | None) -> RecordSpan | None:
    """Take a census: of the queue, and of the jobs on record unless they are those of `recorded`, which the latest
    census returned. Nothing is counted where nobody needs it, or where another dispatcher is at it."""
    now = connection.execute(_SITUATION).one()
    if not now.mine:
        return recorded
    if now.waiting > NEAR:
        _take_of_queue(connection)
    elif now.laned:
        connection.execute(_NO_LANES)
        _store(connection, (PRIORITY,), ())
    span = RecordSpan(now.first, now.last)
    if now.ended > NEAR and span != recorded:
        counts = [_Count(row.topic, row.label or "", row.number) for row in connection.execute(_RECORD)]
        _store(connection, (STATUS, REASON), counts)
    elif now.ended <= NEAR and now.recorded:
        _store(connection, (STATUS, REASON), ())
    return span


def _take_of_queue(connection: Connection) -> None:
    connection.execute(_NO_LANES)
    connection.execute(_LANES)
    counts = [_Count(PRIORITY, str(row.priority), row.number) for row in connection.execute(_PRIORITIES)]
    _store(connection, (PRIORITY,), counts)


def _store(connection: Connection, topics: Sequence[str], counts: Sequence[_Count]) -> None:
    connection.execute(_FORGET, {"topics": list(topics)})
    if counts:
        connection.execute(
            _COUNT,
            {
                "topics": [count.topic for count in counts],
                "labels": [count.label for count in counts],
                "numbers": [count.number for count in counts],
            },
        )


def latest(connection: Connection) -> Mapping[tuple[str, str], int]:
    """The counts of the latest census by topic and label."""
    rows = connection.execute(select(census_counts.c.topic, census_counts.c.label, census_counts.c.number))
    return {(row.topic, row.label): row.number for row in rows}


def few(statement: Select[Any], name: str) -> Subquery:
    """The rows of a statement, at most one more than `NEAR`."""
    return statement.limit(NEAR + 1).subquery(name)


def waiting_by_owner(owner: ColumnElement[int] | None = None) -> Subquery:
    """How many jobs of each owner wait for a slot and were not handed over, and the `seq` of the oldest: `owner_id`,
    `number`, `oldest`. Where more than `NEAR` wait, those of the census; with `owner`, where more of that owner's
    do."""
    chosen = select(jobs.c.owner_id, jobs.c.seq).where(in_lanes(ALL))
    counted = select(
        queue_lanes.c.owner_id,
        cast(func.sum(queue_lanes.c.number), BigInteger).label("number"),
        func.min(queue_lanes.c.oldest).label("oldest"),
    ).group_by(queue_lanes.c.owner_id)
    if owner is not None:
        chosen = chosen.where(jobs.c.owner_id == owner)
        counted = counted.where(queue_lanes.c.owner_id == owner)
    near = chosen.limit(NEAR + 1).cte("near")
    cut = select(func.count()).select_from(near).scalar_subquery() > NEAR
    both = union_all(
        select(near.c.owner_id, func.count().label("number"), func.min(near.c.seq).label("oldest")).group_by(
            near.c.owner_id
        ),
        counted.where(cut),
    ).subquery("both")
    return (
        select(
            both.c.owner_id,
            func.max(both.c.number).label("number"),
            func.min(both.c.oldest).label("oldest"),
        )
        .group_by(both.c.owner_id)
        .subquery("waiting_by_owner")
    )


_near = _waiting.limit(NEAR + 1).cte("near_lanes")
_cut = select(func.count()).select_from(_near).scalar_subquery() > NEAR
WAITING_LANES: CompoundSelect[Any] = union_all(
    _in_lanes(select(_near), seqs=True),
    select(*queue_lanes.c, cast(null(), JSON)).where(_cut),
)
"""The jobs that wait for a slot and were not handed over, in lanes: of up to `NEAR` jobs those of now, of more those of
the latest census beside them. `lanes_of` reads the rows."""


def lanes_of(rows: Iterable[Sequence[Any]]) -> Sequence[Lane]:
    """The lanes of rows of `WAITING_LANES`; before the first census they hold `NEAR` jobs and one at most."""
    every = [Lane(*(*row[:-1], tuple(sorted(row[-1] or ())))) for row in rows]
    counted = [lane for lane in every if not lane.seqs]
    return counted or every

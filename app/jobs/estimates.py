"""When it is whose turn: reads the queue as it stands, and asks `app.jobs.queue_model`.

Of up to a thousand waiting jobs the model has the lanes of this moment, of more those of the latest census, so that a
turn costs the same however many jobs wait.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from sqlalchemy import ARRAY, BigInteger, Connection, Integer, TextClause, Uuid, any_, bindparam, select, text

from warpfold.app.census import NEAR, Lane
from warpfold.app.jobs.queue_model import Asked, Prospect
from warpfold.app.jobs.standing import Standing, standing_now
from warpfold.app.tables.users import users

_OWNERS = bindparam("ids", type_=ARRAY(BigInteger))
# Of each owner and rank that is asked for the oldest jobs are counted, of all together about as many as are near.
_AHEAD: TextClause = text("""
    with asked as materialized (
        select id, owner_id, rank, seq, needs, kind, small and losses = 0 as small,
               coalesce(work ->> 'lies', '') as lies
        from jobs where id = any(:ids) and status || '' = 'queued' and dispatched_at is null and needs <> 'none'
    ), reach as materialized (
        select owner_id, rank, needs, cast(:most / count(*) over () as integer) as share
        from asked group by owner_id, rank, needs
    ), front as materialized (
        select reach.owner_id, reach.rank, reach.needs, own.seq, own.kind, own.small, own.lies
        from reach cross join lateral (
            select seq, kind, small and losses = 0 as small, coalesce(work ->> 'lies', '') as lies from jobs
            where status = 'queued' and dispatched_at is null and jobs.needs <> 'none'
              and rank = reach.rank and jobs.needs = reach.needs and owner_id = reach.owner_id
            order by seq limit reach.share
        ) as own
    )
    select asked.id, asked.owner_id, asked.rank, asked.needs, asked.kind, asked.small, asked.lies, asked.seq,
           reach.share, count(front.seq) as number,
           count(front.seq) filter (
               where front.kind = asked.kind and front.small = asked.small and front.lies = asked.lies
           ) as alike
    from asked
    join reach on reach.owner_id = asked.owner_id and reach.rank = asked.rank and reach.needs = asked.needs
    left join front on front.owner_id = asked.owner_id and front.rank = asked.rank and front.needs = asked.needs
                   and front.seq < asked.seq
    group by asked.id, asked.owner_id, asked.rank, asked.needs, asked.kind, asked.small, asked.lies, asked.seq,
             reach.share
""").bindparams(
    bindparam("ids", type_=ARRAY(Uuid)),
    bindparam("most", NEAR, type_=Integer),
)


@dataclass(frozen=True, slots=True)
class OwnersTurn:
    """When the next job of an owner that waits is to start, and the last one; None where that is unknown."""

    next_at: datetime | None
    last_at: datetime | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """The place of a waiting job in the queue, from 1, and when it is to start, None where that is unknown."""

    place: int
    start_at: datetime | None


@dataclass(frozen=True, slots=True)
class _Ahead:
    """A job that is asked for, as a lane of its own, and the number of jobs of its owner, rank and needs that are ahead
    of it: all, and those that are alike. No more than `share` were counted."""

    lane: Lane
    share: int
    number: int
    alike: int


def estimate(connection: Connection, job_id: UUID) -> Estimate:
    """The place and the start of a job that waits."""
    return estimates(connection, [job_id])[job_id]


def estimates(connection: Connection, ids: Sequence[UUID]) -> Mapping[UUID, Estimate]:
    """The places and the starts of jobs that wait. A job that has begun meanwhile is at the first place."""
    asked = _ahead(connection, ids)
    standing = standing_now(connection)
    in_hand = {job_id: standing.queue.turn_in_hand(job_id) for job_id in ids}
    turns = {job_id: turn for job_id, turn in in_hand.items() if turn is not None}
    waiting = {job_id: asked[job_id] for job_id in ids if job_id in asked and job_id not in turns}
    turns |= _turns(standing, waiting)
    begun = Prospect(1, 0.0)
    return {
        job_id: Estimate(turn.place, standing.at(turn))
        for job_id, turn in ((job_id, turns.get(job_id, begun)) for job_id in ids)
    }


def owners_turns(connection: Connection) -> Mapping[str, OwnersTurn]:
    """When the next and the last job of each owner who has jobs waiting is to start, by the owner's name."""
    standing = standing_now(connection)
    lines = [standing.line_of(lane) for lane in standing.lanes]
    asked = [Asked(index, ahead, 0) for index, line in enumerate(lines) for ahead in (0, line.number - 1)]
    queue = replace(standing.queue, lines=lines)
    starts: defaultdict[int, list[datetime | None]] = defaultdict(list)
    for held in queue.held:
        if (turn := queue.turn_in_hand(held.job_id)) is not None:
            starts[held.owner_id].append(standing.at(turn))
    for one, turn in zip(asked, queue.turns(asked), strict=True):
        starts[lines[one.line].owner_id].append(standing.at(turn))
    names = connection.execute(select(users.c.id, users.c.name).where(users.c.id == any_(_OWNERS)), {"ids": [*starts]})
    return {name: _both(starts[owner_id]) for owner_id, name in names}


def _both(starts: Sequence[datetime | None]) -> OwnersTurn:
    known = [at for at in starts if at is not None]
    return OwnersTurn(min(known, default=None), max(known) if known and len(known) == len(starts) else None)


def _turns(standing: Standing, waiting: Mapping[UUID, _Ahead]) -> Mapping[UUID, Prospect]:
    """The turns of waiting jobs."""
    lanes = {_alike(lane): lane for lane in standing.lanes}
    wanted: list[tuple[Lane, int, int]] = []
    for ahead in waiting.values():
        alike, own = _ahead_of(ahead, standing)
        lane = lanes.get(_alike(ahead.lane), ahead.lane)
        lanes[_alike(lane)] = replace(lane, number=max(lane.number, alike + 1), newest=max(lane.newest, lane.oldest))
        wanted.append((lane, alike, own))
    index = {key: number for number, key in enumerate(lanes)}
    queue = replace(standing.queue, lines=[standing.line_of(lane) for lane in lanes.values()])
    turns = queue.turns([Asked(index[_alike(lane)], alike, own) for lane, alike, own in wanted])
    return dict(zip(waiting, turns, strict=True))


def _ahead_of(ahead: _Ahead, standing: Standing) -> tuple[int, int]:
    """How many jobs that are alike, and how many of its owner that go to the same slots, are ahead of a job."""
    job = ahead.lane
    mine = standing.takers(job.owner_id, job.needs)

    def meets(needs: str) -> bool:
        takers = standing.takers(job.owner_id, needs)
        return needs == job.needs or any(taker in mine for taker in takers) or not (mine or takers)

    of_owner = [lane for lane in standing.lanes if lane.owner_id == job.owner_id and meets(lane.needs)]
    of_rank = {_alike(lane): _before(lane, job.oldest) for lane in of_owner if lane.rank == job.rank}
    alike, own = ahead.alike, ahead.number
    if own >= ahead.share:  # they were not all counted
        alike = max(alike, of_rank.get(_alike(job), 0))
        own = max(own, sum(number for key, number in of_rank.items() if key[2] == job.needs))
    own += sum(number for key, number in of_rank.items() if key[2] != job.needs)
    return alike, own + sum(lane.number for lane in of_owner if lane.rank > job.rank)


def _before(lane: Lane, seq: int) -> int:
    """How many jobs of a lane were accepted before `seq`, if they came evenly."""
    part = (seq - lane.oldest) / (lane.newest - lane.oldest + 1)
    return round(lane.number * min(1.0, max(0.0, part)))


def _alike(lane: Lane) -> tuple[int, int, str, str, bool, str]:
    return lane.owner_id, lane.rank, lane.needs, lane.kind, lane.small, lane.lies


def _ahead(connection: Connection, ids: Sequence[UUID]) -> Mapping[UUID, _Ahead]:
    return {
        row.id: _Ahead(
            Lane(row.owner_id, row.rank, row.needs, row.kind, row.small, row.lies, 1, 0.0, 1, row.seq, row.seq),
            row.share,
            row.number,
            row.alike,
        )
        for row in connection.execute(_AHEAD, {"ids": list(ids)})
    }

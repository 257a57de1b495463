"""Who is next: which waiting jobs the slots with room should get, and the hand-over itself.

Between users the rank decides, then who has the fewest jobs in hand, then whose turn it is: users of a rank take turns
in the order of their ids, and `turns` keeps who had the last one. Among a user's own jobs the rank decides, then age.
Every statement reads what an index answers, and as many rows as there are places to fill and jobs in hand, however
many jobs wait or have ended (docs/decisions/0012).
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Connection,
    Integer,
    SmallInteger,
    String,
    TextClause,
    Uuid,
    bindparam,
    func,
    null,
    select,
    text,
    union_all,
)

from warpfold.app.jobs.queue import HandOver, taken_by
from warpfold.app.quotas.quota import QuotaName
from warpfold.app.tables.jobs import OPEN, in_hand, jobs, lives, workers
from warpfold.app.tables.users import quota_holds, quotas

ANY_NUMBER = (1 << 31) - 1
_PLACES = 16
"""How many places are filled at a time at most: what is read grows with the square."""


@dataclass(frozen=True, slots=True)
class OpenSlot:
    """A live worker that takes jobs, and how many more it has room for."""

    worker: str
    backend: str
    room: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job that may be next; those of a backend come in the order of rank, turn and age."""

    job_id: UUID
    owner_id: int
    rank: int


@dataclass(frozen=True, slots=True)
class Board:
    """What decides who is next, at a moment: slots, the backends that live, jobs in hand by owner, how many jobs of an
    owner may be in hand (those for whom that is set, and all others), and the users who get nothing on a GPU today."""

    slots: Sequence[OpenSlot]
    live: Collection[str]
    in_hand: Mapping[int, int]
    most_of: Mapping[int, int]
    most_of_others: int
    kept_from_gpus: Collection[int]

    def may_have(self, owner_id: int, number: int) -> bool:
        """Whether an owner with so many jobs in hand may have one more."""
        return number < self.most_of.get(owner_id, self.most_of_others)

    def named(self, backend: str) -> tuple[Collection[int], bool]:
        """The ids of the users who get nothing at a slot of `backend` now or, if the second value is True, of the
        only users who get anything."""
        kept = frozenset() if backend == "cpu" else frozenset(self.kept_from_gpus)
        known = {*self.in_hand, *self.most_of}
        free = {owner for owner in known if self.may_have(owner, self.in_hand.get(owner, 0))}
        return (kept | (known - free), False) if self.most_of_others > 0 else (free - kept, True)


@dataclass(frozen=True, slots=True)
class Assignment:
    """A job and the slot that it goes to."""

    job: Candidate
    slot: OpenSlot


_WORKERS = select(workers.c.id, workers.c.backend, OPEN.label("open")).where(
    lives(), workers.c.state != "stopped", ~workers.c.draining
)
# First these few, and then their owners: an index in the order of the owners has the whole history.
_jobs_in_hand = select(jobs.c.slot, jobs.c.owner_id).where(in_hand()).offset(0).subquery("jobs_in_hand")
_in_hand = select(_jobs_in_hand, func.count().label("number")).group_by(_jobs_in_hand.c.slot, _jobs_in_hand.c.owner_id)
_own_limits = select(null(), quotas.c.user_id, quotas.c.running).where(quotas.c.running.is_not(None))
_no_gpu = select(null(), quota_holds.c.user_id, null()).where(
    quota_holds.c.quota == QuotaName.GPU_SECONDS_PER_DAY.value, quota_holds.c.until > func.now()
)
_HELD = union_all(_in_hand, _own_limits, _no_gpu)

# Owners are found one after the other, for each rank from the one after the last that had a turn to the end (lap 0),
# and from the beginning to that one (lap 1). A step is a probe of the index for each word of `needs`: it finds the next
# owner, not the next job. Owners who get nothing now do not count.
_NEXT: TextClause = text("""
    with recursive in_turn(rank, last_id, lap, owner_id, found) as (
        select ranks.rank, coalesce(turns.owner_id, 0), 0, coalesce(turns.owner_id, 0), 0
        from unnest(array[2, 1, 0]::smallint[]) as ranks(rank)
        left join turns on turns.backend = :backend and turns.rank = ranks.rank
        union all
        select in_turn.rank, in_turn.last_id,
               case when following.owner_id is null then 1 else in_turn.lap end,
               coalesce(following.owner_id, 0),
               in_turn.found + (
                   following.owner_id is not null and (following.owner_id = any(:named)) = :only_named
               )::int
        from in_turn cross join lateral (
            select min(head.owner_id) as owner_id
            from unnest(:needs) as lane(needs) cross join lateral (
                select owner_id from jobs
                where status = 'queued' and dispatched_at is null and needs <> 'none'
                  and rank = in_turn.rank and needs = lane.needs and owner_id > in_turn.owner_id
                  and owner_id <= case in_turn.lap when 0 then 9223372036854775807 else in_turn.last_id end
                order by owner_id limit 1
            ) as head
        ) as following
        where in_turn.found < :most and (following.owner_id is not null or in_turn.lap = 0)
    )
    select oldest.id, in_turn.owner_id, in_turn.rank
    from in_turn cross join lateral (
        select own.id, own.seq
        from unnest(:needs) as lane(needs) cross join lateral (
            select id, seq from jobs
            where status = 'queued' and dispatched_at is null and needs <> 'none'
              and rank = in_turn.rank and needs = lane.needs and owner_id = in_turn.owner_id
              and id <> all(:locked)
            order by seq limit :places
        ) as own
        order by own.seq limit :places
    ) as oldest
    where (in_turn.owner_id = any(:named)) = :only_named
      and case in_turn.lap when 0 then in_turn.owner_id > in_turn.last_id else in_turn.owner_id > 0 end
    order by in_turn.rank desc, in_turn.lap, in_turn.owner_id, oldest.seq
""").bindparams(
    bindparam("backend", type_=String),
    bindparam("needs", type_=ARRAY(String)),
    bindparam("named", type_=ARRAY(BigInteger)),
    bindparam("only_named", type_=Boolean),
    bindparam("locked", type_=ARRAY(Uuid)),
    bindparam("places", type_=Integer),
    bindparam("most", type_=Integer),
)

_HAND_OVER: TextClause = text("""
    with given as (
        select * from unnest(:ids, :slots) as given(id, slot)
    ), free as (
        select id from jobs
        where id = any(:ids) and status || '' = 'queued' and dispatched_at is null  -- as app.tables.jobs.still says
        for update skip locked
    ), had_turns as (
        insert into turns (backend, rank, owner_id)
        select * from unnest(:backends, :ranks, :owners)
        on conflict (backend, rank) do update set owner_id = excluded.owner_id
    )
    update jobs set slot = given.slot, dispatched_at = now()
    from given join free using (id)
    where jobs.id = given.id
    returning jobs.id, jobs.attempt, jobs.slot, jobs.request_id, jobs.traceparent, jobs.created_at, jobs.dispatched_at
""").bindparams(
    bindparam("ids", type_=ARRAY(Uuid)),
    bindparam("slots", type_=ARRAY(String)),
    bindparam("backends", type_=ARRAY(String)),
    bindparam("ranks", type_=ARRAY(SmallInteger)),
    bindparam("owners", type_=ARRAY(BigInteger)),
)


def live_slots(connection: Connection, prefetch: int) -> Sequence[OpenSlot]:
    """Every worker with an unexpired heartbeat that takes jobs: one that drains gets none."""
    return look(connection, prefetch).slots


def look(connection: Connection, prefetch: int, max_running: int = ANY_NUMBER) -> Board:
    """Read how things stand. An owner for whom nothing else was set may have `max_running` jobs in hand."""
    rows = connection.execute(_WORKERS).all()
    by_slot: Counter[str] = Counter()
    by_owner: Counter[int] = Counter()
    limits: dict[int, int] = {}
    no_gpu: set[int] = set()
    for slot, owner_id, number in connection.execute(_HELD):
        if slot is not None:
            by_slot[slot] += number
            by_owner[owner_id] += number
        elif number is not None:
            limits[owner_id] = number
        else:
            no_gpu.add(owner_id)
    slots = [OpenSlot(row.id, row.backend, max(0, prefetch - by_slot[row.id])) for row in rows if row.open]
    return Board(slots, {row.backend for row in rows}, by_owner, limits, max_running, no_gpu)


def hand_over_some(
    connection: Connection, prefetch: int, max_running: int = ANY_NUMBER, locked: Collection[UUID] = ()
) -> tuple[Sequence[HandOver], Collection[UUID]]:
    """Mark the jobs that are next as dispatched, up to sixteen of them; returns these, and the ids of jobs that
    somebody else had locked or changed meanwhile. Jobs in `locked` are not looked at. Both are empty if nothing
    that waits suits a slot with room."""
    now = look(connection, prefetch, max_running)
    places = min(_PLACES, sum(slot.room for slot in now.slots))
    if places == 0:
        return (), ()
    backends = sorted({slot.backend for slot in now.slots if slot.room})
    waiting = {backend: _next(connection, now, backend, places, locked) for backend in backends}
    assignments = allot(now, waiting, places)
    if not assignments:
        return (), ()
    last = {(each.slot.backend, each.job.rank): each.job.owner_id for each in assignments}
    rows = connection.execute(
        _HAND_OVER,
        {
            "ids": [each.job.job_id for each in assignments],
            "slots": [each.slot.worker for each in assignments],
            "backends": [backend for backend, _ in last],
            "ranks": [rank for _, rank in last],
            "owners": list(last.values()),
        },
    ).all()
    handed = {
        row.id: HandOver(
            row.id,
            row.attempt,
            row.slot,
            waited=(row.created_at, row.dispatched_at),
            request_id=row.request_id,
            traceparent=row.traceparent,
        )
        for row in rows
    }
    order = [each.job.job_id for each in assignments]
    return [handed[job_id] for job_id in order if job_id in handed], [
        job_id for job_id in order if job_id not in handed
    ]


def _next(
    connection: Connection, now: Board, backend: str, places: int, locked: Collection[UUID]
) -> Sequence[Candidate]:
    named, only_named = now.named(backend)
    asked = {
        "backend": backend,
        "needs": taken_by(backend, now.live),
        "named": sorted(named),
        "only_named": only_named,
        "locked": list(locked),
        "places": places,
        # So that as many are found as there are places who have nothing in hand, if there are.
        "most": places + len(now.in_hand),
    }
    return [Candidate(*row) for row in connection.execute(_NEXT, asked)]


def allot(now: Board, waiting: Mapping[str, Sequence[Candidate]], places: int) -> list[Assignment]:
    """Assign the candidates in `waiting`, which are by backend, to slots, in this order.

    The slot with the most room gets the next job, a GPU before a CPU: jobs that either can run go to the faster.
    """
    room = {slot: slot.room for slot in now.slots}
    in_hand = Counter(now.in_hand)
    left = {backend: list(those) for backend, those in waiting.items()}
    turn: dict[tuple[str, int, int], int] = {}
    for backend, those in waiting.items():
        for place, job in enumerate(those):
            turn.setdefault((backend, job.rank, job.owner_id), place)
    assignments: list[Assignment] = []
    while len(assignments) < places and (open_ := [slot for slot in room if room[slot] > 0 and left.get(slot.backend)]):
        slot = max(open_, key=lambda slot: (room[slot], slot.backend == "cuda"))
        backend = slot.backend
        may = [job for job in left[backend] if now.may_have(job.owner_id, in_hand[job.owner_id])]
        if not may:
            left[backend] = []
            continue
        following = min(may, key=lambda job: (-job.rank, in_hand[job.owner_id], turn[backend, job.rank, job.owner_id]))
        assignments.append(Assignment(following, slot))
        room[slot] -= 1
        in_hand[following.owner_id] += 1
        turn[backend, following.rank, following.owner_id] = len(turn) + len(waiting[backend]) + len(assignments)
        for others in left.values():
            if following in others:
                others.remove(following)
    return assignments

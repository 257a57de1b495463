"""Who is next: which waiting jobs the slots with room should get, and the hand-over itself.

Between users the rank decides, then who has used the least time of such slots (`app.jobs.slot_time`), with the time
that the jobs in hand are predicted to take, then whose turn it is: in the order of the users' ids, and `turns` keeps
who had the last one. Among a user's own jobs the rank decides, then age. Every statement reads what an index answers,
and as many rows as there are users who wait, places to fill and jobs in hand, however many jobs wait or have ended
(docs/decisions/0012-users-take-turns.md, docs/decisions/0097-users-share-time-not-turns.md).

This module reads who waits; `app.jobs.assignment` assigns their jobs to slots.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    JSON,
    BigInteger,
    Boolean,
    Connection,
    Double,
    Integer,
    SmallInteger,
    String,
    Text,
    TextClause,
    Uuid,
    bindparam,
    case,
    cast,
    exists,
    func,
    literal_column,
    null,
    select,
    text,
    union_all,
)

from warpfold.app.jobs import slot_time
from warpfold.app.jobs.assignment import Assignment, assign
from warpfold.app.jobs.dispatch_state import ANY_NUMBER, Candidate, Depth, DispatchState, OpenSlot
from warpfold.app.jobs.forecast import UNKNOWN_S, small_s
from warpfold.app.jobs.queue import HandOver, taken_by
from warpfold.app.jobs.slot_time import FEW, as_array
from warpfold.app.quotas.quota import QuotaName
from warpfold.app.tables import jobs as tables
from warpfold.app.tables.jobs import OPEN, in_groups, in_hand, in_lanes, jobs, lives, workers
from warpfold.app.tables.users import quota_holds, quotas
from warpfold.contract.needs import ALL
from warpfold.contract.placement import RatesView, Work

_PLACES = 64
"""How many places are filled at a time at most."""
_OWNERS = 16
"""Of how many owners of a rank who wait those with the least time are found, or of as many as there are places for long
jobs. Of more, those who follow the last that had a turn: all come in reach when the turns go round."""
_SPARE = 3
"""How many jobs of each owner are read beyond an equal share of the places: who has used less time gets more."""

_PLANNED = "warpfold: who is next"
"""Whether a connection has its plan of who is next, in what SQLAlchemy keeps of the connection."""
_ENOUGH_FOR_A_PLAN = 10
"""psycopg prepares a statement that it has seen five times. The plan of who is next is made before anything waits: made
first when thousands of jobs wait whom no statistics know yet, it would read them all."""


@dataclass(frozen=True, slots=True)
class DispatchPass:
    """The outcome of one pass: the hand-overs, the ids of jobs that somebody else had locked or changed meanwhile,
    and whether another pass may find more."""

    messages: Sequence[HandOver] = ()
    missed: Collection[UUID] = ()
    more: bool = False


_TEXT, _BOOL, _NUMBER, _SECONDS, _JSON = (cast(null(), kind) for kind in (String, Boolean, BigInteger, Double, JSON))
_WORKERS = select(
    workers.c.id.label("worker"),
    workers.c.backend,
    OPEN.label("is_so"),
    _NUMBER.label("owner_id"),
    _NUMBER.label("number"),
    _SECONDS.label("busy_s"),
    workers.c.rates,
).where(lives(), workers.c.state != "stopped", ~workers.c.draining)
# These few rows are found first and their owners afterwards: an index of owners holds the whole history.
_ran_s = cast(func.extract("epoch", func.now() - jobs.c.started_at), Double)
_expected_s = func.coalesce(jobs.c.expected_s, literal_column(str(UNKNOWN_S), Double))
# A job that has run for longer than it was predicted to is thought to run as long again.
_left_s = case((jobs.c.started_at.is_(None), _expected_s), (_ran_s < _expected_s, _expected_s - _ran_s), else_=_ran_s)
_jobs_in_hand = (
    select(jobs.c.slot, jobs.c.owner_id, in_groups().label("small"), _left_s.label("left_s"))
    .where(in_hand())
    .offset(0)
    .subquery("jobs_in_hand")
)
_whose = (_jobs_in_hand.c.slot, _TEXT, _jobs_in_hand.c.small, _jobs_in_hand.c.owner_id)
_in_hand = select(*_whose, func.count(), func.sum(_jobs_in_hand.c.left_s), _JSON).group_by(
    _jobs_in_hand.c.slot, _jobs_in_hand.c.small, _jobs_in_hand.c.owner_id
)
_own_limits = select(_TEXT, _TEXT, _BOOL, quotas.c.user_id, quotas.c.running, _SECONDS, _JSON).where(
    quotas.c.running.is_not(None)
)
_no_gpu = select(_TEXT, _TEXT, _BOOL, quota_holds.c.user_id, _NUMBER, _SECONDS, _JSON).where(
    quota_holds.c.quota == QuotaName.GPU_SECONDS_PER_DAY.value, quota_holds.c.until > func.now()
)
_counts = select(func.count()).select_from(tables.slot_time).scalar_subquery()
_any_waits = select(_TEXT, _TEXT, exists().where(in_lanes(ALL)), _NUMBER, _counts, _SECONDS, _JSON)
# One statement, because it runs at each end of a job. The columns that are null tell the kinds of rows apart.
_LOOK = union_all(_WORKERS, _in_hand, _own_limits, _no_gpu, _any_waits)

# Owners are found one after the other, for each rank and word of `needs` from the one after the last that had a turn to
# the end (lap 0), and from the beginning to that one (lap 1). A step is a probe of the index: it finds the next owner,
# not the next job. Owners who get nothing now do not count. Those who have used the least time are in reach. Of
# each one's jobs the oldest are read: of all of a rank together about as many as there are places. Of all indexes
# `ix_jobs_waiting` alone has the orders of both steps and answers rows of `needs`, owner and `seq`. With an owner given
# as one value, and in the order of `seq` alone, the plan read all jobs of a user who waited alone.
_NEXT: TextClause = text("""
    with recursive in_turn(rank, needs, floor_s, last_id, lap, owner_id, owners) as (
        select ranks.rank, lane.needs, coalesce(turns.used_s, 0), coalesce(turns.owner_id, 0), 0,
               coalesce(turns.owner_id, 0), 0
        from unnest(array[2, 1, 0]::smallint[]) as ranks(rank) cross join unnest(:needs) as lane(needs)
        left join turns on turns.backend = :backend and turns.rank = ranks.rank
        union all
        select in_turn.rank, in_turn.needs, in_turn.floor_s, in_turn.last_id,
               case when following.owner_id is null then 1 else in_turn.lap end,
               coalesce(following.owner_id, 0),
               in_turn.owners + (
                   following.owner_id is not null and (following.owner_id = any(:named)) = :only_named
               )::int
        from in_turn left join lateral (
            select owner_id from jobs
            where status = 'queued' and dispatched_at is null and needs <> 'none'
              and rank = in_turn.rank and jobs.needs = in_turn.needs and owner_id > in_turn.owner_id
              and owner_id <= case in_turn.lap when 0 then 9223372036854775807 else in_turn.last_id end
            order by owner_id, seq limit 1
        ) as following on true
        where in_turn.owners < :looked_at and (following.owner_id is not null or in_turn.lap = 0)
    ), by_time as (
        select rank, lap, owner_id, row_number() over (
            partition by rank
            order by greatest(coalesce(known.used_s, 0), floor_s) + coalesce(known.held_s, 0), lap, owner_id
        ) as place
        from (
            select distinct rank, floor_s, lap, owner_id from in_turn
            where (owner_id = any(:named)) = :only_named
              and case lap when 0 then owner_id > last_id else owner_id > 0 end
        ) as waiting
        left join unnest(cast(:known as bigint[]), cast(:used as float8[]), cast(:held as float8[]))
            as known(owner_id, used_s, held_s) using (owner_id)
    ), in_reach as (
        select owner_id, rank, lap,
               least(:places, ceil(cast(:places as numeric) / count(*) over (partition by rank)) + :spare)::int as share
        from by_time where place <= :most
    )
    select oldest.id, in_reach.owner_id, in_reach.rank, oldest.small, in_reach.share, oldest.anywhere, oldest.work
    from in_reach cross join lateral (
        select own.id, own.seq, own.small, own.anywhere, own.work
        from unnest(:needs) as lane(needs) cross join lateral (
            select id, seq, small and losses = 0 as small, needs = 'any' as anywhere, work from jobs
            where status = 'queued' and dispatched_at is null and needs <> 'none'
              and rank = in_reach.rank
              and (jobs.needs, owner_id, seq) > (lane.needs, in_reach.owner_id, -1)
              and (jobs.needs, owner_id, seq) < (lane.needs, in_reach.owner_id, 9223372036854775807)
              and id <> all(:locked)
            order by jobs.needs, owner_id, seq limit in_reach.share
        ) as own
        order by own.seq limit in_reach.share
    ) as oldest
    order by in_reach.rank desc, in_reach.lap, in_reach.owner_id, oldest.seq
""").bindparams(
    bindparam("backend", type_=String),
    bindparam("needs", type_=ARRAY(String)),
    bindparam("named", type_=ARRAY(BigInteger)),
    bindparam("only_named", type_=Boolean),
    bindparam("locked", type_=ARRAY(Uuid)),
    bindparam("places", type_=Integer),
    bindparam("spare", _SPARE, Integer),
    bindparam("most", type_=Integer),
    bindparam("looked_at", type_=Integer),
    bindparam("known", type_=Text),
    bindparam("used", type_=Text),
    bindparam("held", type_=Text),
)

_HAND_OVER: TextClause = text(f"""
    with chosen as (
        select * from unnest(:ids, :slots, :expected, :placements) as parameters(id, slot, expected_s, placement)
    ), free as (
        select id from jobs
        where id = any(:ids) and status || '' = 'queued' and dispatched_at is null  -- as app.tables.jobs.still says
        for update skip locked
    ), had_turns as (
        insert into turns (backend, rank, owner_id, used_s)
        select * from unnest(:backends, :ranks, :owners, :floors)
        on conflict (backend, rank) do update set owner_id = excluded.owner_id, used_s = excluded.used_s
    ), counted as (
        {slot_time.COUNTED}
    )
    update jobs set slot = chosen.slot, dispatched_at = now(), expected_s = chosen.expected_s,
                    placement = cast(chosen.placement as json)
    from chosen join free using (id)
    where jobs.id = chosen.id
    returning jobs.id, jobs.attempt, jobs.slot, jobs.request_id, jobs.traceparent, jobs.created_at, jobs.dispatched_at
""").bindparams(  # noqa: S608 - all of it is ours
    bindparam("ids", type_=ARRAY(Uuid)),
    bindparam("slots", type_=ARRAY(String)),
    bindparam("expected", type_=ARRAY(Double)),
    bindparam("placements", type_=ARRAY(Text)),
    bindparam("backends", type_=ARRAY(String)),
    bindparam("ranks", type_=ARRAY(SmallInteger)),
    bindparam("owners", type_=ARRAY(BigInteger)),
    bindparam("floors", type_=ARRAY(Double)),
    *slot_time.PARAMETERS,
)


def live_slots(connection: Connection) -> Sequence[OpenSlot]:
    """Every worker with an unexpired heartbeat that takes jobs; a worker that drains takes no jobs."""
    return look(connection).slots


def look(connection: Connection, max_running: int = ANY_NUMBER) -> DispatchState:
    """Read how things stand. An owner for whom nothing else was set may have `max_running` jobs in hand."""
    places: list[OpenSlot] = []
    backends: dict[str, str] = {}
    small_jobs_s: dict[str, float] = {}
    long: Counter[str] = Counter()
    small: Counter[str] = Counter()
    by_owner: Counter[int] = Counter()
    limits: dict[int, int] = {}
    no_gpu: set[int] = set()
    busy_s: defaultdict[str, float] = defaultdict(float)
    held_s: defaultdict[tuple[str, int], float] = defaultdict(float)
    waiting = counts = False
    for worker, backend, is_so, owner_id, number, left_s, rates in connection.execute(_LOOK):
        if backend is not None:
            backends[worker] = backend
            slot = OpenSlot(worker, backend, rates=RatesView.stored(rates))
            small_jobs_s[worker] = small_s(slot)
            if is_so:
                places.append(slot)
        elif worker is not None:
            (small if is_so else long)[worker] += number
            by_owner[owner_id] += number
            busy_s[worker] += 0.0 if is_so else left_s
            if worker in backends:
                held_s[backends[worker], owner_id] += number * small_jobs_s[worker] if is_so else left_s
        elif owner_id is None:
            waiting, counts = is_so, number > 0
        elif number is not None:
            limits[owner_id] = number
        else:
            no_gpu.add(owner_id)
    slots = [
        replace(slot, long=long[slot.worker], small=small[slot.worker], busy_s=busy_s[slot.worker]) for slot in places
    ]
    live = set(backends.values())
    return DispatchState(slots, live, by_owner, limits, max_running, no_gpu, waiting, held_s, counts)


def hand_over_some(
    connection: Connection, depth: Depth, max_running: int = ANY_NUMBER, locked: Collection[UUID] = ()
) -> DispatchPass:
    """Mark the jobs that are next as dispatched, up to 64 of them. Jobs in `locked` are not looked at."""
    now = look(connection, max_running)
    if not now.waiting:
        _plan(connection, now)
        if now.counts:
            slot_time.forget(connection)
        return DispatchPass()
    places = min(_PLACES, sum(slot.places(depth) for slot in now.slots))
    if places == 0:
        return DispatchPass()
    backends = sorted({slot.backend for slot in now.slots if slot.places(depth)})
    looked_at = max(_OWNERS, min(_PLACES, sum(slot.long_places(depth) for slot in now.slots)))
    # So that owners with nothing in hand are found, as many as there are places.
    owners = min(looked_at, places + len(now.in_hand))
    now = replace(now, time=slot_time.read(connection))
    # One job more than there are places: it tells whether another pass would find a place for it.
    asked = {"locked": list(locked), "places": places + 1, "most": owners, "looked_at": looked_at}
    waiting = {backend: _next(connection, now, backend, asked) for backend in backends}
    counted = {backend for backend, _ in now.time.used}
    if unwanted := [backend for backend in backends if backend in counted and not waiting[backend]]:
        slot_time.forget(connection, unwanted)
    assignments, more = assign(now, waiting, owners, places, depth)
    if not assignments:
        return DispatchPass(more=more)
    rows = connection.execute(
        _HAND_OVER,
        {
            **_turns_and_time(now, waiting, assignments),
            "ids": [each.job.job_id for each in assignments],
            "slots": [each.slot.worker for each in assignments],
            "expected": [each.expected_s for each in assignments],
            "placements": [
                None if each.placement is None else each.placement.model_dump_json() for each in assignments
            ],
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
    missed = [job_id for job_id in order if job_id not in handed]
    return DispatchPass([handed[job_id] for job_id in order if job_id in handed], missed, more or bool(missed))


def _turns_and_time(
    now: DispatchState, waiting: Mapping[str, Sequence[Candidate]], assignments: Sequence[Assignment]
) -> Mapping[str, object]:
    """The parameters of a hand-over that say who had the last turns, what time whoever comes begins with, and what time
    users have used at those kinds of slots where that is to be stored: some jobs have held slots since it was, or
    somebody begins."""
    last = {(each.slot.backend, each.job.rank): each.job.owner_id for each in assignments}
    floors = {
        (backend, rank): min(now.time.of(backend, rank, job.owner_id) for job in waiting[backend] if job.rank == rank)
        for backend, rank in last
    }
    to_store = {backend for backend, number in now.time.since.items() if number >= FEW and waiting.get(backend)}
    used_s = dict(now.time.used)
    for each in assignments:
        key = each.slot.backend, each.job.owner_id
        begins_s = now.time.of(each.slot.backend, each.job.rank, each.job.owner_id)
        if key not in used_s or used_s[key] < begins_s:
            used_s[key] = begins_s
            to_store.add(each.slot.backend)
    stored = {
        backend: [(owner, so_far_s) for (of, owner), so_far_s in used_s.items() if of == backend]
        for backend in to_store
    }
    return {
        "backends": [backend for backend, _ in last],
        "ranks": [rank for _, rank in last],
        "owners": list(last.values()),
        "floors": [floors[lane] for lane in last],
        "counted_at": now.time.counted_at,
        "used_backends": list(stored),
        "used_owners": [as_array(owner for owner, _ in those) for those in stored.values()],
        "used_seconds": [as_array(so_far_s for _, so_far_s in those) for those in stored.values()],
    }


def _plan(connection: Connection, now: DispatchState) -> None:
    """Have Postgres plan who is next, unless this connection has a plan."""
    if connection.info.get(_PLANNED):
        return
    for _ in range(_ENOUGH_FOR_A_PLAN):
        _next(connection, now, "cpu", {"locked": [], "places": 1, "most": 1, "looked_at": 1})
        slot_time.read(connection)
    connection.info[_PLANNED] = True


def _next(connection: Connection, now: DispatchState, backend: str, asked: Mapping[str, object]) -> Sequence[Candidate]:
    named, only_named = now.named(backend)
    known = sorted(owner for of, owner in {*now.time.used, *now.held_s} if of == backend)
    of_backend = {
        "backend": backend,
        "needs": taken_by(backend, now.live),
        "named": sorted(named),
        "only_named": only_named,
        "known": as_array(known),
        "used": as_array(now.time.used.get((backend, owner), 0.0) for owner in known),
        "held": as_array(now.held_s.get((backend, owner), 0.0) for owner in known),
    }
    return [
        Candidate(*columns, work=None if work is None else Work.model_validate(work))
        for *columns, work in connection.execute(_NEXT, {**asked, **of_backend})
    ]

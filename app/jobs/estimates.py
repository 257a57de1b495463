"""When it is whose turn: the queue as it was seen at a moment, and what `app.jobs.queue_model` makes of it.

Up to a thousand waiting jobs are seen one by one. Of more there are the lanes of the latest census, and the oldest jobs
of each owner who asks, so that a look costs the same however many jobs wait. A job that is newer than the look stands
behind the jobs of its owner that were seen, and behind those newer ones that were asked for.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import ARRAY, BigInteger, Connection, Integer, SmallInteger, String, TextClause, bindparam, text

from warpfold.app.census import NEAR, Lane
from warpfold.app.jobs.queue_model import Asked, Course, Prospect
from warpfold.app.jobs.standing import Standing, standing_now

# Of each owner, rank and word of `needs` the oldest jobs, of all together about as many as are near. The condition
# and the order are those of `ix_jobs_waiting` alone, as in `app.jobs.turns`.
_FRONTS: TextClause = text("""
    select reach.owner_id, reach.rank, reach.needs, own.kind, own.small, own.lies, json_agg(own.seq) as seqs
    from unnest(:owners, :ranks, :words) as reach(owner_id, rank, needs) cross join lateral (
        select seq, kind, small and losses = 0 as small, coalesce(work ->> 'lies', '') as lies from jobs
        where status = 'queued' and dispatched_at is null and jobs.needs <> 'none'
          and rank = reach.rank
          and (jobs.needs, jobs.owner_id, seq) > (reach.needs, reach.owner_id, -1)
          and (jobs.needs, jobs.owner_id, seq) < (reach.needs, reach.owner_id, 9223372036854775807)
        order by jobs.needs, jobs.owner_id, seq limit :share
    ) as own
    group by reach.owner_id, reach.rank, reach.needs, own.kind, own.small, own.lies
""").bindparams(
    bindparam("owners", type_=ARRAY(BigInteger)),
    bindparam("ranks", type_=ARRAY(SmallInteger)),
    bindparam("words", type_=ARRAY(String)),
    bindparam("share", type_=Integer),
)


class Reach(NamedTuple):
    """Waiting jobs that one index has in their order."""

    owner_id: int
    rank: int
    needs: str


class _Alike(NamedTuple):
    """What the jobs of a lane have in common."""

    owner_id: int
    rank: int
    needs: str
    kind: str
    small: bool
    lies: str

    @property
    def reach(self) -> Reach:
        return Reach(self.owner_id, self.rank, self.needs)


@dataclass(frozen=True, slots=True)
class Waiter:
    """A job that waits, handed over or not: what decides when it has its turn."""

    id: UUID
    owner_id: int
    rank: int
    needs: str
    kind: str
    small: bool
    lies: str
    seq: int


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
class _Front:
    """The `seq` of the oldest jobs of a reach by lane, up to `last`; `whole` where there are no others."""

    lanes: Mapping[_Alike, Sequence[int]]
    last: int
    whole: bool


class QueueSeen:
    """The queue as it was seen at a moment. What was worked out for one job serves the next."""

    def __init__(self, standing: Standing) -> None:
        self._standing = standing
        self._handed = {held.job_id for held in standing.queue.held if not held.runs}
        self._lanes = {_alike(lane): lane for lane in standing.lanes}
        self._counted = any(not lane.seqs for lane in standing.lanes)
        self._lanes_of: defaultdict[int, set[_Alike]] = defaultdict(set)
        for alike in self._lanes:
            self._lanes_of[alike.owner_id].add(alike)
        # How many jobs of its lane a job may have ahead that they are counted: of all owners about as many as are near.
        self._close = NEAR // max(1, len(self._lanes_of))
        self._fronts: dict[Reach, _Front] = {}
        self._newer: defaultdict[_Alike, list[int]] = defaultdict(list)
        queue = replace(standing.queue, lines=[standing.line_of(lane) for lane in standing.lanes])
        self._queue, self._course = queue, Course(queue)
        self._index = {alike: index for index, alike in enumerate(self._lanes)}
        self._others: dict[_Alike, Course] = {}

    def unread(self, waiters: Iterable[Waiter]) -> Sequence[Reach]:
        """Of which reaches the oldest jobs are still to be read to tell the turns of some jobs."""
        if not self._counted:
            return ()
        near = (waiter for waiter in waiters if waiter.id not in self._handed and self._is_near(waiter))
        reaches = dict.fromkeys(_alike(waiter).reach for waiter in near)
        return [reach for reach in reaches if reach not in self._fronts]

    def read(self, connection: Connection, reaches: Sequence[Reach]) -> None:
        """Read the oldest jobs of some reaches."""
        share = max(1, NEAR // len(reaches))
        owners, ranks, words = (list(column) for column in zip(*reaches, strict=True))
        by_reach: defaultdict[Reach, dict[_Alike, Sequence[int]]] = defaultdict(dict)
        asked = {"owners": owners, "ranks": ranks, "words": words, "share": share}
        for *columns, seqs in connection.execute(_FRONTS, asked):
            alike = _Alike(*columns)
            by_reach[alike.reach][alike] = sorted(seqs)
            self._lanes_of[alike.owner_id].add(alike)
        for reach in reaches:
            lanes = by_reach[reach]
            last = max((seqs[-1] for seqs in lanes.values()), default=0)
            self._fronts[reach] = _Front(lanes, last, sum(map(len, lanes.values())) < share)
            for alike in lanes:
                self._newer[alike] = [seq for seq in self._newer[alike] if seq > self._last(alike)]

    def estimates(self, waiters: Sequence[Waiter]) -> Mapping[UUID, Estimate]:
        """The places and the starts of jobs, of which nothing is `unread`."""
        for waiter in waiters:
            self._note(waiter)
        turns = {waiter.id: self._turn(waiter) for waiter in waiters}
        return {job_id: Estimate(turn.place, self._standing.at(turn)) for job_id, turn in turns.items()}

    def owners_turns(self) -> Mapping[int, OwnersTurn]:
        """When the next and the last job of each owner who has jobs waiting is to start, by the owner's id."""
        starts: defaultdict[int, list[datetime | None]] = defaultdict(list)
        for held in self._queue.held:
            if (turn := self._queue.turn_in_hand(held.job_id)) is not None:
                starts[held.owner_id].append(self._standing.at(turn))
        for index, line in enumerate(self._queue.lines):
            for ahead in (0, line.number - 1):
                turn = self._course.turn(Asked(index, ahead, 0))
                starts[line.owner_id].append(self._standing.at(turn))
        return {owner_id: _both(those) for owner_id, those in starts.items()}

    def _is_near(self, waiter: Waiter) -> bool:
        """Whether the oldest jobs of a job's reach tell its place better than the census does."""
        lane = self._lanes.get(_alike(waiter))
        if lane is None:
            return True
        return lane.number < self._close if waiter.seq > lane.newest else _part(lane, waiter.seq) < self._close

    def _turn(self, waiter: Waiter) -> Prospect:
        if waiter.id in self._handed:
            turn = self._queue.turn_in_hand(waiter.id)
            assert turn is not None, "it is among those in hand"
            return turn
        alike = _alike(waiter)
        asked = Asked(
            self._index.get(alike, len(self._lanes)), self._before(alike, waiter.seq), self._own_ahead(waiter)
        )
        if alike in self._index:
            return self._course.turn(asked)
        if alike not in self._others:
            self._others[alike] = self._course_with(alike)
        return self._others[alike].turn(asked)

    def _course_with(self, alike: _Alike) -> Course:
        """The course of the queue with a lane that was not counted yet."""
        front = self._fronts.get(alike.reach)
        seqs = (front and front.lanes.get(alike)) or ()
        oldest, newest = (seqs[0], seqs[-1]) if seqs else (0, 0)
        line = self._standing.line_of(Lane(*alike, len(seqs), 0.0, len(seqs), oldest, newest))
        return Course(replace(self._queue, lines=[*self._queue.lines, line]))

    def _own_ahead(self, waiter: Waiter) -> int:
        """How many jobs of a job's owner that go to the same slots are ahead of it."""
        mine = self._standing.takers(waiter.owner_id, waiter.needs)

        def meets(needs: str) -> bool:
            takers = self._standing.takers(waiter.owner_id, needs)
            return needs == waiter.needs or any(taker in mine for taker in takers) or not (mine or takers)

        own = [alike for alike in self._lanes_of[waiter.owner_id] if alike.rank >= waiter.rank and meets(alike.needs)]
        return sum(
            self._before(alike, waiter.seq) if alike.rank == waiter.rank else self._number(alike) for alike in own
        )

    def _note(self, waiter: Waiter) -> None:
        """Remember a job that is newer than those that were seen: later ones stand behind it."""
        alike = _alike(waiter)
        newer = self._newer[alike]
        if waiter.id not in self._handed and waiter.seq > self._last(alike) and waiter.seq not in newer:
            insort(newer, waiter.seq)
            self._lanes_of[alike.owner_id].add(alike)

    def _last(self, alike: _Alike) -> int:
        """The largest `seq` of a lane that was seen."""
        lane, front = self._lanes.get(alike), self._fronts.get(alike.reach)
        newest = 0 if lane is None else lane.newest
        if front is None:
            return newest
        return front.last if front.whole else max(front.last, newest)

    def _number(self, alike: _Alike) -> int:
        """How many jobs a lane has."""
        lane, front = self._lanes.get(alike), self._fronts.get(alike.reach)
        if front is not None and front.whole:
            seen = len(front.lanes.get(alike, ()))
        else:
            seen = 0 if lane is None else lane.number
        return seen + len(self._newer[alike])

    def _before(self, alike: _Alike, seq: int) -> int:
        """How many jobs of a lane were accepted before `seq`."""
        lane, front = self._lanes.get(alike), self._fronts.get(alike.reach)
        seen = 0 if front is None else bisect_left(front.lanes.get(alike, ()), seq)
        if lane is not None and (front is None or not (front.whole or seq <= front.last)):
            seen = max(seen, _part(lane, seq))
        return seen + bisect_left(self._newer[alike], seq)


def see(connection: Connection) -> QueueSeen:
    """The queue as it stands."""
    return QueueSeen(standing_now(connection))


def _part(lane: Lane, seq: int) -> int:
    """How many jobs of a lane were accepted before `seq`; if they came evenly, where they were only counted."""
    if lane.seqs:
        return bisect_left(lane.seqs, seq)
    part = (seq - lane.oldest) / (lane.newest - lane.oldest + 1)
    return round(lane.number * min(1.0, max(0.0, part)))


def _alike(each: Lane | Waiter) -> _Alike:
    return _Alike(each.owner_id, each.rank, each.needs, each.kind, each.small, each.lies)


def _both(starts: Sequence[datetime | None]) -> OwnersTurn:
    known = [at for at in starts if at is not None]
    return OwnersTurn(min(known, default=None), max(known) if known and len(known) == len(starts) else None)

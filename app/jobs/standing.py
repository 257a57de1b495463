"""How things stand in the queue: slots, jobs in hand, lanes that wait, limits, turns and durations, read for
`app.jobs.queue_model`."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    Double,
    SelectBase,
    Text,
    cast,
    func,
    literal_column,
    null,
    select,
    union_all,
)

from warpfold.app.census import WAITING_LANES, Lane, lanes_of
from warpfold.app.jobs import durations, slot_time
from warpfold.app.jobs.dispatch_state import OpenSlot
from warpfold.app.jobs.durations import Alike, Durations
from warpfold.app.jobs.queue import taken_by
from warpfold.app.jobs.queue_model import CLOSED, Held, Line, Prospect, Queue
from warpfold.app.quotas.quota import QuotaName
from warpfold.app.tables.jobs import OPEN, in_groups, in_hand, is_, jobs, lives, turns, workers
from warpfold.app.tables.users import quota_holds, quotas
from warpfold.contract.needs import DASK
from warpfold.contract.placement import RatesView, Work
from warpfold.contract.states import Status


def _together(rows: SelectBase, name: str) -> ColumnElement[Any]:
    """All rows of a statement as one JSON array of arrays: what is read together is one statement, because each costs
    more than its rows."""
    those = rows.subquery(name)
    return func.coalesce(
        select(func.json_agg(func.json_build_array(*those.c))).scalar_subquery(), literal_column("'[]'::json", JSON)
    ).label(name)


# A slot that takes no more jobs goes on with those that it has.
_SLOTS = select(
    workers.c.id, workers.c.backend, OPEN.label("open"), workers.c.draining, cast(workers.c.rates, JSON).label("rates")
).where(lives(), workers.c.state != "stopped")
_HELD = select(
    cast(jobs.c.id, Text).label("id"),
    jobs.c.seq,
    jobs.c.slot,
    jobs.c.owner_id,
    jobs.c.kind,
    in_groups().label("small"),
    is_(Status.RUNNING).label("runs"),
    jobs.c.expected_s,
    func.extract("epoch", jobs.c.dispatched_at).label("sent_at"),
    func.extract("epoch", func.now() - jobs.c.started_at).label("ran_s"),
    jobs.c.progress_done,
    jobs.c.progress_total,
).where(in_hand())
_running = quota_holds.c.quota == QuotaName.RUNNING.value
_until_midnight = (quota_holds.c.quota == QuotaName.GPU_SECONDS_PER_DAY.value) & (quota_holds.c.until > func.now())
# How many jobs of a user may be in hand, or no number for a user who gets no GPU today. A default limit stands in the
# hold of each user who has reached it.
_LIMITS = union_all(
    select(quotas.c.user_id, cast(quotas.c.running, Double).label("most")).where(quotas.c.running.is_not(None)),
    select(quota_holds.c.user_id, quota_holds.c.limit).where(_running),
    select(quota_holds.c.user_id, cast(null(), Double)).where(_until_midnight),
)
_TURNS = select(turns.c.rank, turns.c.owner_id, turns.c.backend)
_STANDING = select(
    func.now().label("now"),
    _together(_SLOTS, "slots"),
    _together(_HELD, "held"),
    _together(_LIMITS, "limits"),
    _together(_TURNS, "turns"),
    _together(slot_time.TIME_USED, "time_used"),
    _together(durations.TOOK, "took"),
    _together(WAITING_LANES, "lanes"),
)


class _Slot(NamedTuple):
    worker: str
    backend: str
    open: bool
    draining: bool
    rates: object


class _InHand(NamedTuple):
    id: str
    seq: int
    slot: str
    owner_id: int
    kind: str
    small: bool
    runs: bool
    expected_s: float | None
    sent_at: float | None
    ran_s: float | None
    progress_done: int
    progress_total: int


@dataclass(frozen=True, slots=True)
class Standing:
    """What the model goes by, at the time `now` of Postgres."""

    slots: Sequence[OpenSlot]
    queue: Queue
    lanes: Sequence[Lane]
    durations: Durations
    live: Collection[str]
    no_gpu: Collection[int]
    now: datetime

    def takers(self, owner_id: int, needs: str) -> Collection[str]:
        """The backends of open slots that take jobs of an owner with these needs."""
        takers = {slot.backend for slot in self.slots if needs in taken_by(slot.backend, self.live)}
        return takers & {"cpu", DASK} if owner_id in self.no_gpu else takers

    def line_of(self, lane: Lane) -> Line:
        """A lane with the seconds that its jobs take each slot that takes them."""
        rates = {slot.backend: slot.rates for slot in self.slots if slot.rates is not None}
        alike, work = Alike(lane.owner_id, lane.kind, lane.small), _work_of(lane)
        seconds = {
            backend: self.durations.of(alike, backend, work, rates.get(backend))
            for backend in self.takers(lane.owner_id, lane.needs)
        }
        return Line(lane.owner_id, lane.rank, lane.number, lane.oldest, lane.newest, seconds)

    def at(self, turn: Prospect) -> datetime | None:
        """When a job has its turn."""
        return None if turn.start_s is None else self.now + timedelta(seconds=turn.start_s)


def _work_of(lane: Lane) -> Work | None:
    """The work of a job of the lane, in the mean."""
    if not lane.lies:
        return None
    sized = lane.number - lane.unsized
    return Work.model_validate({"lies": lane.lies, "bytes": round(lane.bytes / sized) if sized > 0 else None})


def standing_now(connection: Connection) -> Standing:
    """Read how things stand."""
    row = connection.execute(_STANDING).one()
    took = Durations.of_rows(row.took)
    slots = [_Slot(*each) for each in row.slots]
    limits: Sequence[tuple[int, float | None]] = row.limits
    queue = Queue(
        slots=[slot.backend if slot.open else CLOSED for slot in slots],
        held=_held([_InHand(*each) for each in row.held], slots, took),
        lines=(),
        limits={owner_id: int(most) for owner_id, most in limits if most is not None},
        last_turns={rank: owner_id for rank, owner_id, _ in row.turns},
        time=slot_time.time_used(row.time_used),
    )
    return Standing(
        slots=[OpenSlot(slot.worker, slot.backend, rates=RatesView.stored(slot.rates)) for slot in slots if slot.open],
        queue=queue,
        lanes=lanes_of(row.lanes),
        durations=took,
        live={slot.backend for slot in slots if not slot.draining},
        no_gpu={owner_id for owner_id, most in limits if most is None},
        now=row.now,
    )


def _held(rows: Sequence[_InHand], slots: Sequence[_Slot], took: Durations) -> Sequence[Held]:
    """The jobs in hand at live slots, in the order in which they were handed over, the running ones first."""
    index = {slot.worker: number for number, slot in enumerate(slots)}
    held = []
    for row in sorted(rows, key=lambda row: (not row.runs, row.sent_at or 0.0, row.seq)):
        if row.slot in index:
            at, alike = index[row.slot], Alike(row.owner_id, row.kind, row.small)
            backend = slots[at].backend
            predicted = None if row.expected_s is None else took.corrected(row.expected_s, alike, backend)
            left_s = _left(row, took.of(alike, backend) if predicted is None else predicted)
            held.append(Held(UUID(row.id), at, row.owner_id, row.runs, left_s))
    return held


def _left(row: _InHand, takes_s: float | None) -> float | None:
    """The seconds that a job in hand still takes: at the pace of its progress if it tells one, or else what such a job
    takes less what it has run. A job that has run for longer is thought to run as long again."""
    if not row.runs or row.ran_s is None:
        return takes_s
    if 0 < row.progress_done < row.progress_total:
        return row.ran_s * (row.progress_total - row.progress_done) / row.progress_done
    if takes_s is None:
        return None
    return takes_s - row.ran_s if row.ran_s < takes_s else row.ran_s

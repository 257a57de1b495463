"""Assigns jobs to slots, in plain Python: candidates come in the order in which `app.jobs.turns` reads them.

Between users the rank decides, then who has used the least time of such slots, with that of the jobs in hand, then
whose turn it is; among a user's own jobs of a rank the order in which they were read. A slot holds a few long jobs and
many small ones (docs/decisions/0021-small-jobs-in-groups.md). No job waits for one that comes after it: where there is
no room for the job that is next, nothing is handed over in its place.

A long job that slots of several kinds can run goes where `app.jobs.forecast` predicts its end first. If there is no
room, it waits for that kind of slot, as if its request had named it, and other jobs pass it by at the others
(docs/decisions/0030-where-work-ends-first.md).
"""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from uuid import UUID

from warpfold.app.jobs.dispatch_state import Candidate, Depth, DispatchState, OpenSlot
from warpfold.app.jobs.forecast import Forecast, seconds
from warpfold.contract.placement import Placement


@dataclass(frozen=True, slots=True)
class Assignment:
    """A job and the slot that it goes to, where it is predicted to run for `expected_s` seconds; None where no
    prediction was made. `placement` says why it goes there, where there was a choice."""

    job: Candidate
    slot: OpenSlot
    expected_s: float | None = None
    placement: Placement | None = None


def assign(
    now: DispatchState, waiting: Mapping[str, Sequence[Candidate]], owners: int, places: int, depth: Depth
) -> tuple[Sequence[Assignment], bool]:
    """Assign the candidates in `waiting`, which are by backend, to `places` places of slots, in this order. They are of
    up to `owners` owners a rank. The second value tells that more could be assigned with more places, or if more
    candidates were read.

    The slot with the fewest long jobs in hand gets the next job, then the one with the fewest small ones, a GPU before
    a CPU: jobs that either can run go to the faster. Of a job whose end can be predicted the prediction decides. A
    small job is sent behind a long one only where every slot that could take it has a long one.
    """
    slots = {slot.worker: slot for slot in now.slots}
    hungry = {slot.worker for slot in now.slots if slot.wants_small(depth)}
    lanes = {backend: _Lanes(now, backend, those, owners) for backend, those in waiting.items()}
    forecast = Forecast(now)
    in_hand = Counter(now.in_hand)
    gone: set[UUID] = set()
    assignments: list[Assignment] = []
    more = False
    while lanes:
        choices: list[tuple[OpenSlot, str, Candidate]] = []
        for backend, theirs in list(lanes.items()):
            job = theirs.following(in_hand, gone)
            while job is not None and forecast.sends_elsewhere(job, backend):
                theirs.pass_by()
                job = theirs.following(in_hand, gone)
            suited = [each for each in slots.values() if each.backend == backend]
            slot = None if job is None else _slot_for(job, suited, hungry, depth, forecast)
            if job is None or slot is None:
                more = more or theirs.cut
                del lanes[backend]
            else:
                choices.append((slot, backend, job))
        if not choices:
            break
        if len(assignments) == places:
            more = any(not job.small or slot.wants_small(depth) for slot, _, job in choices)
            break
        slot, backend, job = min(choices, key=lambda choice: _by_room(choice[0]))
        assignments.append(Assignment(job, slot, *forecast.assigned(job, slot)))
        slots[slot.worker] = replace(slot, long=slot.long + (not job.small), small=slot.small + job.small)
        in_hand[job.owner_id] += 1
        gone.add(job.job_id)
        lanes[backend].had_turn(job, seconds(job, slot))
    return assignments, more


def _by_room(slot: OpenSlot) -> tuple[int, int, bool]:
    return slot.long, slot.small, slot.backend != "cuda"


def _slot_for(
    job: Candidate, slots: Sequence[OpenSlot], hungry: Collection[str], depth: Depth, forecast: Forecast
) -> OpenSlot | None:
    """The slot that is to take a job, of the slots of its backend; None if no slot has room for it. Only the `hungry`
    slots get small jobs."""
    if job.small:
        quick = [slot for slot in slots if slot.long == 0]
        able = [slot for slot in quick or slots if slot.worker in hungry and slot.takes_small(depth)]
    else:
        able = [slot for slot in slots if slot.long < depth.long]
        if able and (first := forecast.first_of(job, able)) is not None:
            return first
    return min(able, key=_by_room, default=None)


class _Lanes:
    """The candidates of one backend: a lane for each owner and rank, in a heap by who is next.

    The time of the jobs in hand only grows while jobs are assigned, so an entry of the heap may come too early and
    never too late: it is put back where it belongs when it comes out.
    """

    def __init__(self, now: DispatchState, backend: str, candidates: Sequence[Candidate], owners: int) -> None:
        self._now, self._backend = now, backend
        self._added_s: defaultdict[int, float] = defaultdict(float)
        self._lanes: dict[tuple[int, int], deque[Candidate]] = {}
        for job in candidates:
            self._lanes.setdefault((job.rank, job.owner_id), deque()).append(job)
        self._cut = {lane: len(those) >= those[0].read for lane, those in self._lanes.items()}
        self._others_wait = max(Counter(rank for rank, _ in self._lanes).values(), default=0) >= owners
        self._turns = len(self._lanes)
        self._heap = [
            (-rank, self._given_s(rank, owner), turn, owner) for turn, (rank, owner) in enumerate(self._lanes)
        ]
        heapify(self._heap)
        self.cut = False

    def following(self, in_hand: Mapping[int, int], gone: Collection[UUID]) -> Candidate | None:
        """The next candidate that is not in `gone`. None where no candidate is left, and where the next job was not
        read, or more owners may wait than were read; then `cut` is True."""
        while self._heap:
            rank, given_s, turn, owner = self._heap[0]
            lane = self._lanes[-rank, owner]
            while lane and lane[0].job_id in gone:
                lane.popleft()
            if not self._now.may_have(owner, in_hand[owner]) or not (lane or self._cut[-rank, owner]):
                heappop(self._heap)
            elif given_s < self._given_s(-rank, owner):
                heappop(self._heap)
                heappush(self._heap, (rank, self._given_s(-rank, owner), turn, owner))
            elif not lane:
                self.cut = True
                return None
            else:
                return lane[0]
        self.cut = self._others_wait
        return None

    def pass_by(self) -> None:
        """Pass over the next candidate, which slots of another backend will take. Its lane stays next."""
        _, _, _, owner = self._heap[0]
        self._lanes[-self._heap[0][0], owner].popleft()

    def had_turn(self, job: Candidate, takes_s: float) -> None:
        """The lane that was next has had its turn, by a job that takes so many seconds."""
        rank, _, _, owner = heappop(self._heap)
        assert (-rank, owner) == (job.rank, job.owner_id), "only the candidate that is next can be assigned"
        self._turns += 1
        self._added_s[owner] += takes_s
        heappush(self._heap, (rank, self._given_s(-rank, owner), self._turns, owner))

    def _given_s(self, rank: int, owner: int) -> float:
        return self._now.given_s(self._backend, rank, owner) + self._added_s[owner]

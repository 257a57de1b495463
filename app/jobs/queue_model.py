"""The queue as it is going to be served: when each waiting job starts, and after how many others.

One model answers whenever somebody asks "when is it my turn?". It hands jobs over in the order of
`app.jobs.assignment`, and lets time pass from one end to the next: between users the rank decides, then who has used
the least time, with that of the jobs in hand, then whose turn it is; among a user's own jobs the rank, then age. It
knows nothing of jobs that are still to come.

Waiting jobs of one owner that are alike make one line. The first 64 jobs are handed over one by one. Then a step hands
over the more jobs of a line, the further the line is served, so that the steps grow with the logarithm of the queue.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from uuid import UUID

from warpfold.app.jobs.dispatch_state import TimeUsed
from warpfold.app.jobs.forecast import UNKNOWN_S

_DEPTH = 2
"""How many jobs a slot holds, the running one included. It is what WARPFOLD_PREFETCH is unless somebody sets it."""

_ONE_BY_ONE = 64

NOWHERE, CLOSED = "nowhere", "closed"
"""In place of the backend of a slot: it stands for all slots that are missing, and for one that takes no more jobs."""


@dataclass(frozen=True, slots=True)
class Held:
    """A job in hand: it runs at a slot, given by its index, or was handed to it. It takes `left_s` seconds more, None
    where nobody knows."""

    job_id: UUID
    slot: int
    owner_id: int
    runs: bool
    left_s: float | None


@dataclass(frozen=True, slots=True)
class Line:
    """Waiting jobs of an owner that are alike, `number` of them, whose `seq` go from `oldest` to `newest`. `seconds`
    has the backends that take them, with the seconds that such a job takes there, None where nobody knows."""

    owner_id: int
    rank: int
    number: int
    oldest: int
    newest: int
    seconds: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Asked:
    """A waiting job: the index of its line, how many jobs of that line and how many of its owner are ahead of it. All
    jobs of the line are ahead of one that is newer."""

    line: int
    ahead: int
    own_ahead: int


@dataclass(frozen=True, slots=True)
class Prospect:
    """When a waiting job is to start, in seconds from now, None where that is unknown; and its place in the queue, from
    1: the number of jobs that slots of its kind are handed before it, and have been handed and not begun."""

    place: int
    start_s: float | None


@dataclass(frozen=True, slots=True)
class Queue:
    """All that decides when a job starts: the backends of the slots, the jobs that they have in hand, in the order in
    which they were handed over, the lines that wait, how many jobs of an owner may be in hand, where that is limited,
    who had the last turn of each rank, and the time that owners have used."""

    slots: Sequence[str]
    held: Sequence[Held]
    lines: Sequence[Line]
    limits: Mapping[int, int]
    last_turns: Mapping[int, int]
    time: TimeUsed = field(default_factory=TimeUsed)

    def turn_in_hand(self, job_id: UUID) -> Prospect | None:
        """The turn of a job that was handed to a slot and has not begun; None where it is no longer in hand."""
        mine = next((held for held in self.held if held.job_id == job_id and not held.runs), None)
        if mine is None:
            return None
        ahead = self.held[: self.held.index(mine)]
        place = 1 + sum(not held.runs and self.slots[held.slot] == self.slots[mine.slot] for held in ahead)
        before = [held.left_s for held in ahead if held.slot == mine.slot]
        known = [left_s for left_s in before if left_s is not None]
        return Prospect(place, sum(known) if len(known) == len(before) and self.slots[mine.slot] != CLOSED else None)


@dataclass(frozen=True, slots=True)
class _Step:
    """Jobs of a line that were handed over at once: when the first starts, in how many seconds the next follows,
    whether that is certain, and how many jobs of other owners were handed to the same slots before."""

    start_s: float
    seconds: float
    sure: bool
    others: int


class Course:
    """How a queue is going to be served. It is worked out as far as somebody has asked, and kept.

    Behind the last job of each line a turn is found for one more, which takes no slot and no time: for jobs that are
    newer than the line.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._backends = [*queue.slots, NOWHERE]
        self._now, self._certain = 0.0, True
        self._free_at = [0.0] * len(self._backends)
        self._known = [True] * len(queue.slots) + [False]
        self._load = [0] * len(self._backends)
        self._in_hand: Counter[int] = Counter()
        self._given_s: defaultdict[tuple[str, int], float] = defaultdict(float)
        self._ends: list[tuple[float, int, int, bool]] = []
        for held in queue.held:
            self._take(held.slot, held.owner_id, held.left_s, 1)
        self._seconds = [line.seconds or {NOWHERE: None} for line in queue.lines]
        self._kinds = [frozenset(seconds) for seconds in self._seconds]
        self._served = [0] * len(queue.lines)
        self._over = [False] * len(queue.lines)
        self._handed: Counter[frozenset[str]] = Counter()
        self._handed_of: Counter[tuple[int, frozenset[str]]] = Counter()
        self._begun: dict[frozenset[str], int] = {}
        self._number, self._handed_s = 0, 0.0
        self._firsts: list[list[int]] = [[] for _ in queue.lines]
        self._steps: list[list[_Step]] = [[] for _ in queue.lines]
        self._blocked: set[frozenset[str]] = set()
        self._lines_of: defaultdict[int, list[int]] = defaultdict(list)
        for index, line in enumerate(queue.lines):
            self._lines_of[line.owner_id].append(index)
        self._turn = self._first_turns()
        self._version: Counter[int] = Counter()
        self._heaps: dict[frozenset[str], list[tuple[int, float, int, float, int, int]]] = {
            kinds: [] for kinds in self._kinds
        }
        for owner in self._lines_of:
            self._line_up(owner)

    def turn(self, asked: Asked) -> Prospect:
        """The turn of a job."""
        index = asked.line
        while not self._over[index] and self._served[index] <= asked.ahead:
            if not self._go_on():
                return Prospect(self._place(asked, self._others(index)), None)
        at = bisect_right(self._firsts[index], asked.ahead) - 1
        step = self._steps[index][at]
        later_s = (asked.ahead - self._firsts[index][at]) * step.seconds
        return Prospect(self._place(asked, step.others), step.start_s + later_s if step.sure else None)

    def _go_on(self) -> bool:
        """Hand over the next jobs, or let time pass until there is room. False where nothing more is going to
        happen."""
        index = self._next(self._blocked)
        if index is None:
            if not self._ends:
                return False
            self._pass_time()
            self._blocked.clear()
            return True
        slot = self._slot_for(index)
        if slot is None:
            self._blocked.add(self._kinds[index])
            return True
        start_s, seconds = self._begin_at(slot, index)
        sure = self._certain and (self._known[slot] or start_s <= self._now) and slot < len(self._queue.slots)
        self._firsts[index].append(self._served[index])
        self._steps[index].append(_Step(start_s, seconds, sure, self._others(index)))
        if self._served[index] == self._queue.lines[index].number:
            self._over[index] = True
        else:
            self._hand_over(index, slot, self._step(index, seconds))
        return True

    def _first_turns(self) -> dict[tuple[int, int], int]:
        """The order of the owners of each rank, from the one after the last that had a turn."""
        lanes = {(line.rank, line.owner_id) for line in self._queue.lines}
        in_order = sorted(lanes, key=lambda lane: (lane[1] <= self._queue.last_turns.get(lane[0], 0), lane[1]))
        return {lane: turn for turn, lane in enumerate(in_order)}

    def _line_up(self, owner: int) -> None:
        """Put the lines of an owner where they belong now; where they stood before counts no more."""
        self._version[owner] += 1
        for index in self._lines_of[owner]:
            line, served = self._queue.lines[index], self._served[index]
            if not self._over[index]:
                age = line.oldest + served * (line.newest - line.oldest) / max(1, line.number - 1)
                age = age if served < line.number else inf
                turn = self._turn[line.rank, owner]
                entry = (-line.rank, self._time(index), turn, age, index, self._version[owner])
                heappush(self._heaps[self._kinds[index]], entry)

    def _time(self, index: int) -> float:
        """The time of a line's owner with that of what the owner was given, on the slots where it is least."""
        line = self._queue.lines[index]
        return min(
            self._queue.time.of(backend, line.rank, line.owner_id) + self._given_s[backend, line.owner_id]
            for backend in self._kinds[index]
        )

    def _next(self, blocked: set[frozenset[str]]) -> int | None:
        """The line that is next, of those whose slots may have room."""
        best: tuple[int, float, int, float, int, int] | None = None
        for kinds, heap in self._heaps.items():
            if kinds in blocked:
                continue
            while heap and not self._stands(heap[0]):
                heappop(heap)
            if heap and (best is None or heap[0] < best):
                best = heap[0]
        return None if best is None else best[4]

    def _stands(self, entry: tuple[int, float, int, float, int, int]) -> bool:
        if self._over[entry[4]]:
            return False
        owner = self._queue.lines[entry[4]].owner_id
        limit = self._queue.limits.get(owner)
        return entry[5] == self._version[owner] and (limit is None or self._in_hand[owner] < limit)

    def _slot_for(self, index: int) -> int | None:
        """The slot that ends a job of a line first, or one of the same backend; None where those have no room."""
        seconds = self._seconds[index]
        ends = sorted(
            (max(self._now, self._free_at[slot]) + _known(seconds[backend]), self._load[slot], slot)
            for slot, backend in enumerate(self._backends)
            if backend in seconds
        )
        first = self._backends[ends[0][2]]
        able = (slot for _, load, slot in ends if load < _DEPTH and self._backends[slot] == first)
        return next(able, None)

    def _begin_at(self, slot: int, index: int) -> tuple[float, float]:
        """When a job of a line starts at a slot, and how long it takes there."""
        return max(self._now, self._free_at[slot]), _known(self._seconds[index][self._backends[slot]])

    def _step(self, index: int, seconds: float) -> int:
        """How many jobs of a line, which take so long each, are handed over at once."""
        served, slots = self._served[index], len(self._queue.slots) or 1
        left = self._queue.lines[index].number - served
        if self._number < _ONE_BY_ONE:
            return min(1, left)
        part_s = self._handed_s / _ONE_BY_ONE
        in_part = int(part_s / seconds) if part_s < left * seconds else left
        return min(max(1, served // (4 * slots), in_part), left)

    def _hand_over(self, index: int, slot: int, number: int) -> None:
        line, kinds = self._queue.lines[index], self._kinds[index]
        seconds = self._seconds[index][self._backends[slot]]
        self._take(slot, line.owner_id, seconds, number)
        self._served[index] += number
        self._handed[kinds] += number
        self._handed_of[line.owner_id, kinds] += number
        self._number += number
        self._handed_s += number * _known(seconds)
        self._turn[line.rank, line.owner_id] = len(self._turn) + self._number
        self._line_up(line.owner_id)

    def _take(self, slot: int, owner: int, seconds: float | None, number: int) -> None:
        """Have a slot hold so many jobs as one, behind those that it holds."""
        self._free_at[slot] = max(self._now, self._free_at[slot]) + number * _known(seconds)
        self._known[slot] &= seconds is not None
        self._load[slot] += 1
        self._in_hand[owner] += 1
        self._given_s[self._backends[slot], owner] += number * _known(seconds)
        heappush(self._ends, (self._free_at[slot], slot, owner, self._known[slot]))

    def _pass_time(self) -> None:
        """Go on to the next moment at which a job ends."""
        self._now = self._ends[0][0]
        while self._ends and self._ends[0][0] <= self._now:
            _, slot, owner, known = heappop(self._ends)
            self._certain &= known
            self._load[slot] -= 1
            self._in_hand[owner] -= 1
            self._line_up(owner)

    def _others(self, index: int) -> int:
        """How many jobs of other owners were handed to slots of a line's kinds."""
        kinds, owner = self._kinds[index], self._queue.lines[index].owner_id
        return sum(
            number - self._handed_of[owner, of] for of, number in self._handed.items() if not kinds.isdisjoint(of)
        )

    def _place(self, asked: Asked, others: int) -> int:
        kinds = self._kinds[asked.line]
        if kinds not in self._begun:
            queue = self._queue
            self._begun[kinds] = sum(not held.runs and queue.slots[held.slot] in kinds for held in queue.held)
        return 1 + self._begun[kinds] + others + asked.own_ahead


def _known(seconds: float | None) -> float:
    return UNKNOWN_S if seconds is None else seconds

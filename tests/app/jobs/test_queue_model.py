"""When it is whose turn: simulated queues, in which no time passes but that of the simulation."""

import random
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID, uuid4

import pytest

from warpfold.app.jobs.assignment import assign
from warpfold.app.jobs.dispatch_state import ANY_NUMBER, Candidate, Depth, DispatchState, OpenSlot
from warpfold.app.jobs.queue_model import Asked, Course, Held, Line, Prospect, Queue

ADA, BOB, CLEO = 1, 2, 3
DEPTH = Depth(2)


def line(owner: int, number: int, seconds: float | None, *, rank: int = 1, seq: int = 0, on: str = "cpu") -> Line:
    return Line(owner, rank, number, seq, seq + number - 1, {on: seconds} if on else {})


def runs(owner: int, left_s: float | None, slot: int = 0) -> Held:
    return Held(uuid4(), slot, owner, True, left_s)


def turns(queue: Queue, asked: Sequence[Asked]) -> list[Prospect]:
    course = Course(queue)
    return [course.turn(each) for each in asked]


def turn(
    lines: Sequence[Line], ahead: int = 0, *, held: Sequence[Held] = (), slots: Sequence[str] = ("cpu",), of: int = -1
) -> Prospect:
    """The turn of a job of a line, of the last one unless another is named, with so many jobs of that line ahead."""
    index = of % len(lines)
    return Course(Queue(slots, held, lines, {}, {})).turn(Asked(index, ahead, ahead))


def test_a_job_behind_a_long_one_starts_when_that_ends() -> None:
    assert turn([line(ADA, 1, 1.0)], held=[runs(BOB, 196.0)]) == Prospect(1, 196.0)


def test_a_job_before_a_free_slot_starts_now() -> None:
    assert turn([line(ADA, 1, 60.0)]) == Prospect(1, 0.0)
    assert turn([line(ADA, 1, 60.0)], held=[runs(BOB, 100.0)], slots=("cpu", "cpu")) == Prospect(1, 0.0)


def test_a_job_behind_many_small_ones_waits_for_all_of_them() -> None:
    small, mine = line(ADA, 100, 0.002), line(ADA, 1, 60.0, seq=100)
    answer = Course(Queue(("cpu",), (), (small, mine), {}, {})).turn(Asked(1, 0, 100))
    assert answer.place == 101
    assert answer.start_s == pytest.approx(0.2)


def test_two_slots_take_half_as_long() -> None:
    assert turn([line(ADA, 20, 10.0)], 10, slots=("cpu", "cpu")) == Prospect(11, 50.0)


def test_users_take_turns_however_many_jobs_one_of_them_has() -> None:
    lines = (line(ADA, 1000, 10.0), line(BOB, 1, 10.0, seq=1000))
    assert turn(lines, held=[runs(ADA, 5.0)]) == Prospect(1, 5.0)
    assert turn(lines, 3, held=[runs(ADA, 5.0)], of=0) == Prospect(5, 45.0)


def test_whoever_had_the_last_turn_comes_after_the_others() -> None:
    lines = (line(ADA, 2, 10.0), line(BOB, 2, 10.0, seq=2))
    asked = [Asked(0, 0, 0), Asked(1, 0, 0)]
    assert [each.place for each in turns(Queue(("cpu",), (), lines, {}, {}), asked)] == [1, 2]
    assert [each.place for each in turns(Queue(("cpu",), (), lines, {}, {1: ADA}), asked)] == [2, 1]


def test_on_two_slots_a_user_of_long_jobs_keeps_one_and_leaves_the_other() -> None:
    lines = (line(ADA, 100, 100.0), line(BOB, 100, 1.0, seq=100))
    tenth = turn(lines, 50, slots=("cpu", "cpu"))
    assert tenth.start_s is not None
    assert tenth.start_s < 300, "with turns by count alone it would start after 2,500 s"


def test_a_higher_rank_goes_first_and_another_kind_of_slot_is_not_in_the_way() -> None:
    high, cuda = line(BOB, 3, 10.0, rank=2), line(CLEO, 50, 10.0, on="cuda")
    assert turn([high, cuda, line(ADA, 1, 1.0)], slots=("cpu", "cuda")) == Prospect(4, 30.0)


def test_where_a_duration_is_unknown_the_place_is_told_and_the_start_is_not() -> None:
    assert turn([line(ADA, 1, 1.0)], held=[runs(BOB, None)]) == Prospect(1, None)
    assert turn([line(ADA, 5, None)], 3) == Prospect(4, None)
    assert turn([line(ADA, 5, None)]) == Prospect(1, 0.0)
    assert turn([line(ADA, 5, 1.0, on="")], 3, slots=()) == Prospect(4, None)


def test_a_user_who_may_have_no_more_in_hand_waits_for_an_end() -> None:
    held, lines = [runs(ADA, 30.0)], (line(ADA, 1, 1.0), line(BOB, 1, 1.0, seq=1))
    asked = [Asked(0, 0, 0), Asked(1, 0, 0)]
    limited = turns(Queue(("cpu", "cpu"), held, lines, {ADA: 1}, {}), asked)
    assert [each.start_s for each in limited] == [30.0, 0.0]
    assert [each.start_s for each in turns(Queue(("cpu", "cpu"), held, lines, {ADA: 0}, {}), asked)] == [None, 0.0]


def test_a_job_that_was_handed_over_starts_after_those_before_it_at_its_slot() -> None:
    mine = Held(uuid4(), 0, ADA, False, 9.0)
    held = [runs(BOB, 10.0), runs(BOB, 500.0, 1), Held(uuid4(), 0, CLEO, False, 7.0), mine]
    queue = Queue(("cpu", "cpu"), held, (), {}, {})
    assert queue.turn_in_hand(mine.job_id) == Prospect(2, 17.0)
    assert queue.turn_in_hand(uuid4()) is None


def test_a_job_that_is_newer_than_its_line_has_its_turn_behind_it() -> None:
    """The place is that of one more job of the line, and the lines of others are as long as before."""
    mine, other = line(ADA, 3, 10.0), line(BOB, 5, 10.0, seq=3)
    longer = turn([other, line(ADA, 4, 10.0)], 3)
    assert turn([other, mine], 3) == longer
    assert turn([other, line(ADA, 0, 10.0)]) == turn([other, line(ADA, 1, 10.0)])
    course = Course(Queue(("cpu",), (), (other, mine), {}, {}))
    assert course.turn(Asked(1, 3, 3)) == longer
    assert course.turn(Asked(0, 4, 4)) == turn([mine, other], 4)
    assert course.turn(Asked(1, 0, 0)) == turn([other, mine]), "what is asked later is told alike"


def test_a_new_job_of_a_kind_waits_for_all_that_its_owner_has_sent_before() -> None:
    lines = (line(ADA, 2, 1.0), line(ADA, 2, 10.0, seq=2))
    assert Course(Queue(("cpu",), (), lines, {}, {})).turn(Asked(0, 2, 4)) == Prospect(5, 22.0)


@pytest.mark.parametrize(("owners", "slots"), [(1, 1), (3, 2), (100, 2), (100, 8)])
def test_the_last_of_a_hundred_thousand_is_found_in_few_steps(owners: int, slots: int) -> None:
    each = 100_000 // owners
    lines = [line(owner, each, 1.0, seq=owner * each) for owner in range(1, owners + 1)]
    began = time.process_time()
    last = turn(lines, each - 1, slots=("cpu",) * slots)
    took_s = time.process_time() - began
    assert last.start_s == pytest.approx(100_000 / slots, rel=0.15)
    assert last.place == pytest.approx(100_000, rel=0.15)
    assert took_s < 0.5


@dataclass
class Job:
    owner: int
    kind: str
    seconds: float
    came: float
    seq: int
    id: UUID = field(default_factory=uuid4)
    started: float | None = None
    forecast: list[tuple[float, float]] = field(default_factory=list)
    """When the start was asked for, and what was answered."""


class Day:
    """A day of a service that hands jobs over by `assign`, and knows of their durations what ended jobs took."""

    def __init__(self, jobs: Sequence[Job], slots: int) -> None:
        self.coming = sorted(jobs, key=lambda job: job.came)
        self.waiting: list[Job] = []
        self.slots: list[list[Job]] = [[] for _ in range(slots)]
        self.took: defaultdict[tuple[int, str], list[float]] = defaultdict(list)
        self.last_turn = 0
        self.now = 0.0

    def pass_by(self) -> None:
        """Let the day pass. Whenever a job comes, its start is asked for; so are those of all that wait."""
        while self.coming or self.waiting or any(self.slots):
            ends = [(own[0].started or 0.0) + own[0].seconds for own in self.slots if own]
            self.now = min([*ends, *(job.came for job in self.coming[:1])])
            for own in self.slots:
                if own and own[0].started is not None and own[0].started + own[0].seconds <= self.now:
                    ended = own.pop(0)
                    self.took[ended.owner, ended.kind].append(ended.seconds)
            came = [job for job in self.coming if job.came <= self.now]
            self.coming = self.coming[len(came) :]
            self.waiting += came
            self.hand_over()
            if came:
                self.ask()

    def hand_over(self) -> None:
        slots = [OpenSlot(f"{index}", "cpu", len(own)) for index, own in enumerate(self.slots)]
        in_hand: dict[int, int] = defaultdict(int)
        for own in self.slots:
            for job in own:
                in_hand[job.owner] += 1
        first = [job for owner in (ADA, BOB, CLEO) for job in self.of(owner)[: 2 * len(slots)]]
        in_turn = sorted(first, key=lambda job: (job.owner <= self.last_turn, job.owner, job.seq))
        candidates = [Candidate(job.id, job.owner, 1) for job in in_turn]
        by_id = {job.id: job for job in first}
        state = DispatchState(slots, {"cpu"}, in_hand, {}, ANY_NUMBER, ())
        for each in assign(state, {"cpu": candidates}, ANY_NUMBER, 64, DEPTH)[0]:
            job = by_id[each.job.job_id]
            self.waiting.remove(job)
            self.slots[int(each.slot.worker)].append(job)
            self.last_turn = job.owner
        for own in self.slots:
            if own and own[0].started is None:
                own[0].started = self.now

    def of(self, owner: int) -> list[Job]:
        return [job for job in self.waiting if job.owner == owner]

    def mean(self, job: Job) -> float | None:
        took = self.took[job.owner, job.kind][-50:]
        return statistics.fmean(took) if took else None

    def left(self, job: Job) -> float | None:
        mean = self.mean(job)
        if job.started is None or mean is None:
            return mean
        ran = self.now - job.started
        return mean - ran if ran < mean else ran

    def ask(self) -> None:
        alike: dict[tuple[int, str], list[Job]] = defaultdict(list)
        for job in self.waiting:
            alike[job.owner, job.kind].append(job)
        lines = [
            Line(owner, 1, len(those), those[0].seq, those[-1].seq, {"cpu": self.mean(those[0])})
            for (owner, _), those in alike.items()
        ]
        held = [
            Held(job.id, index, job.owner, job.started is not None, self.left(job))
            for index, own in enumerate(self.slots)
            for job in own
        ]
        asked = [Asked(number, ahead, 0) for number, those in enumerate(alike.values()) for ahead in range(len(those))]
        queue = Queue(["cpu"] * len(self.slots), held, lines, {}, {1: self.last_turn})
        for job, answer in zip((job for those in alike.values() for job in those), turns(queue, asked), strict=True):
            if answer.start_s is not None:
                job.forecast.append((self.now, self.now + answer.start_s))


def three_users(chance: random.Random, slots: int) -> Iterator[Job]:
    """A day of which the slots are busy for about two thirds: Ada sends benchmarks by the dozen, Bob short reductions
    by the hundred, Cleo now and then a study and some reductions."""
    habits: Mapping[int, Sequence[tuple[str, int, float, float]]] = {
        ADA: [("benchmark", 12, 60.0, 7200.0 / slots)],
        BOB: [("reduce", 150, 3.0, 3600.0 / slots)],
        CLEO: [("accuracy", 2, 300.0, 10_000.0 / slots), ("reduce", 10, 20.0, 2400.0 / slots)],
    }
    seq = 0
    for owner, kinds in habits.items():
        for kind, number, seconds, every in kinds:
            at = chance.expovariate(1 / every)
            while at < 86_400:
                for _ in range(chance.randint(1, 2 * number)):
                    yield Job(owner, kind, seconds * chance.lognormvariate(-0.08, 0.4), at, seq := seq + 1)
                at += chance.expovariate(1 / every)


@pytest.mark.parametrize("slots", [1, 2])
def test_over_a_day_of_three_users_half_of_the_starts_are_told_to_a_quarter_of_the_wait(slots: int) -> None:
    day = Day(list(three_users(random.Random(slots), slots)), slots)
    jobs = list(day.coming)
    day.pass_by()
    errors = []
    for job in jobs:
        assert job.started is not None
        waits = [(job.started - at, forecast - at) for at, forecast in job.forecast if job.started - at > 10]
        errors += [abs(forecast - wait) / wait for wait, forecast in waits]
    assert len(errors) > 1000
    assert statistics.median(errors) <= 0.25

"""Which slot gets which job: a slot has a few long ones and many small ones, and nobody waits for a later one."""

from collections import Counter
from collections.abc import Sequence
from uuid import UUID, uuid4

from warpfold.app.jobs.assignment import Assignment, assign
from warpfold.app.jobs.dispatch_state import ANY_NUMBER, Candidate, Depth, DispatchState, OpenSlot, TimeUsed

DEPTH = Depth(2, 8)


def candidate(owner: int, *, small: bool = True, rank: int = 1, read: int = ANY_NUMBER) -> Candidate:
    return Candidate(uuid4(), owner, rank, small, read)


def state(
    *slots: OpenSlot,
    in_hand: dict[int, int] | None = None,
    most: int = ANY_NUMBER,
    used: dict[tuple[str, int], float] | None = None,
    held_s: dict[tuple[str, int], float] | None = None,
) -> DispatchState:
    live, time = {slot.backend for slot in slots}, TimeUsed(used or {})
    return DispatchState(slots, live, in_hand or {}, {}, most, (), held_s=held_s or {}, time=time)


def assigned_to(now: DispatchState, *candidates: Candidate, places: int = 64) -> list[Assignment]:
    return list(assign(now, {slot.backend: candidates for slot in now.slots}, 16, places, DEPTH)[0])


def jobs(assignments: Sequence[Assignment]) -> list[UUID]:
    return [each.job.job_id for each in assignments]


def test_a_slot_holds_few_long_jobs_and_many_small_ones() -> None:
    cpu = OpenSlot("a:cpu", "cpu")
    assert len(assigned_to(state(cpu), *(candidate(1) for _ in range(20)))) == 8
    assert len(assigned_to(state(cpu), *(candidate(1, small=False) for _ in range(20)))) == 2


def test_a_long_job_goes_behind_many_small_ones_and_behind_a_long_one_goes_one_job() -> None:
    """Of any size: who goes before whom after the long job is decided when that ends."""
    assert len(assigned_to(state(OpenSlot("a:cpu", "cpu", 0, 8)), candidate(1, small=False))) == 1
    assert len(assigned_to(state(OpenSlot("a:cpu", "cpu", 1, 0)), *(candidate(1) for _ in range(20)))) == 1
    assert assigned_to(state(OpenSlot("a:cpu", "cpu", 1, 1)), candidate(1)) == []
    assert assigned_to(state(OpenSlot("a:cpu", "cpu", 2, 0)), candidate(1)) == []


def test_small_jobs_wait_for_a_slot_without_a_long_job_where_there_is_one() -> None:
    slots = (OpenSlot("a:cpu", "cpu", 1, 0), OpenSlot("b:cpu", "cpu", 0, 0))
    assert Counter(each.slot.worker for each in assigned_to(state(*slots), *(candidate(1) for _ in range(20)))) == {
        "b:cpu": 8
    }


def test_a_slot_is_filled_up_when_half_of_its_places_are_free() -> None:
    assert assigned_to(state(OpenSlot("a:cpu", "cpu", 0, 5)), candidate(1)) == []
    assert len(assigned_to(state(OpenSlot("a:cpu", "cpu", 0, 4)), *(candidate(1) for _ in range(20)))) == 4


def test_small_jobs_are_spread_over_the_slots() -> None:
    slots = (OpenSlot("a:cpu", "cpu"), OpenSlot("b:cpu", "cpu"))
    assert Counter(each.slot.worker for each in assigned_to(state(*slots), *(candidate(1) for _ in range(6)))) == {
        "a:cpu": 3,
        "b:cpu": 3,
    }


def test_no_later_job_passes_one_that_there_is_no_room_for() -> None:
    full = OpenSlot("a:cpu", "cpu", 0, 8)
    assert assigned_to(state(full), candidate(1), candidate(2, small=False)) == []


def test_another_pass_is_worth_it_only_where_it_would_find_a_place() -> None:
    cpu, small = OpenSlot("a:cpu", "cpu"), [candidate(1) for _ in range(20)]

    def more(*candidates: Candidate, places: int, owners: int = 16) -> bool:
        return assign(state(cpu), {"cpu": candidates}, owners, places, DEPTH)[1]

    assert more(*small, places=4), "half of the places of the slot are free after the first four"
    assert not more(*small, places=5), "it is filled up again when four more have ended"
    assert not more(*small, places=64)
    assert more(*(candidate(1, small=False) for _ in range(3)), places=1)
    assert not more(candidate(1), candidate(2), places=64)
    assert more(candidate(1), candidate(2), places=64, owners=2), "others may wait, whose jobs were not read"


def test_users_take_turns_and_the_time_of_what_they_have_in_hand_counts() -> None:
    first, second = [candidate(1) for _ in range(8)], [candidate(2) for _ in range(8)]
    assigned = assigned_to(state(OpenSlot("a:cpu", "cpu"), held_s={("cpu", 1): 0.0019}), *first, *second)
    assert jobs(assigned) == jobs_of(
        second[0], second[1], first[0], second[2], first[1], second[3], first[2], second[4]
    )


def test_who_has_used_less_time_goes_first_until_the_times_are_equal() -> None:
    long, small = [candidate(1, small=False) for _ in range(2)], [candidate(2) for _ in range(20)]
    cpu = OpenSlot("a:cpu", "cpu")
    assert jobs(assigned_to(state(cpu, used={("cpu", 1): 2.7}), *long, *small)) == jobs_of(*small[:8])
    few = assigned_to(state(cpu, used={("cpu", 1): 0.0025}), *long, *small)
    assert jobs(few) == jobs_of(*small[:3], long[0]), "beside a long job there is no room for more"
    behind_one = assigned_to(state(OpenSlot("a:cpu", "cpu", 1), held_s={("cpu", 1): 1.0}), *long, *small)
    assert jobs(behind_one) == jobs_of(small[0])


def test_the_time_on_slots_of_another_kind_counts_nothing() -> None:
    first, second = candidate(1, small=False), candidate(2, small=False)
    assigned = assigned_to(state(OpenSlot("a:cpu", "cpu"), used={("cuda", 1): 100.0}), first, second)
    assert jobs(assigned) == jobs_of(first, second)


def test_who_comes_to_a_rank_begins_with_the_least_time_of_those_who_wait_there() -> None:
    time = TimeUsed({("cpu", 1): 100.0, ("cpu", 2): 3.0}, {("cpu", 1): 60.0})
    assert [time.of("cpu", 1, owner) for owner in (1, 2, 3)] == [100.0, 60.0, 60.0]
    assert [time.of("cpu", 2, owner) for owner in (1, 2, 3)] == [100.0, 3.0, 0.0]


def jobs_of(*candidates: Candidate) -> list[UUID]:
    return [job.job_id for job in candidates]


def test_a_higher_rank_goes_first_and_a_limit_of_running_jobs_counts_each() -> None:
    low, high = [candidate(1, rank=0) for _ in range(5)], [candidate(2, rank=2) for _ in range(5)]
    assigned = assigned_to(state(OpenSlot("a:cpu", "cpu"), most=3), *high, *low)
    assert jobs(assigned) == jobs_of(*high[:3], *low[:3])


def test_where_more_jobs_were_not_read_nobody_is_passed() -> None:
    """One was read of perhaps many high jobs of the first user: the second user's low ones must not pass those."""
    first, second = candidate(1, rank=2, read=1), [candidate(2, rank=0) for _ in range(3)]
    assignments, more = assign(state(OpenSlot("a:cpu", "cpu")), {"cpu": [first, *second]}, 16, 64, DEPTH)
    assert (jobs(list(assignments)), more) == ([first.job_id], True)

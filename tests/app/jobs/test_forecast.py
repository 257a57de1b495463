"""Where a job with the backend auto goes: to the slot that ends it first, with what is in the hands of the slots."""

from collections import Counter
from collections.abc import Sequence
from uuid import uuid4

import pytest

from tests.support.rates import CPU, H200
from warpfold.app.jobs.assignment import Assignment, assign
from warpfold.app.jobs.dispatch_state import ANY_NUMBER, Candidate, Depth, DispatchState, OpenSlot
from warpfold.contract.placement import UNKNOWN_BYTES, Work

GPU_SLOT = OpenSlot("a:cuda:0", "cuda", rates=H200)
CPU_SLOT = OpenSlot("a:cpu", "cpu", rates=CPU)
BOTH = (CPU_SLOT, GPU_SLOT)
FILE, MADE = Work(lies="host", bytes=8 << 30), Work(lies="made", bytes=8 << 30)


def asked(work: Work | None, *, owner: int = 1, anywhere: bool = True, small: bool = False) -> Candidate:
    return Candidate(uuid4(), owner, 1, small, ANY_NUMBER, anywhere, work=work)


def allotted(
    slots: Sequence[OpenSlot],
    *jobs: Candidate,
    no_gpu: tuple[int, ...] = (),
    only: dict[str, Sequence[Candidate]] | None = None,
) -> list[Assignment]:
    """What one pass assigns. `only` are jobs that slots of one backend alone can run; they came last."""
    now = DispatchState(slots, {slot.backend for slot in slots}, {}, {}, ANY_NUMBER, no_gpu)
    waiting = {slot.backend: [*jobs, *(only or {}).get(slot.backend, ())] for slot in slots}
    return list(assign(now, waiting, 16, 64, Depth(2, 8))[0])


def where(assignments: Sequence[Assignment]) -> list[str]:
    return [each.slot.worker for each in assignments]


def test_data_on_the_host_goes_to_the_cpu_where_the_way_to_the_gpu_is_slower() -> None:
    [assigned] = allotted(BOTH, asked(FILE))
    assert assigned.slot.worker == "a:cpu"
    assert assigned.expected_s == pytest.approx(0.0002 + (8 << 30) / 50e9)
    assert assigned.placement is not None
    assert assigned.placement.predicted == {"a:cpu": 0.172, "a:cuda:0": 0.227}
    assert assigned.placement.reason == (
        "a:cpu was predicted to end it first, in 0.172 s, because it reduces 50 GB/s; the next, a:cuda:0, in 0.227 s, "
        "because it reads 38 GB/s."
    )


def test_a_placement_says_what_size_was_counted_and_whether_that_was_known() -> None:
    known, unknown = (allotted(BOTH, asked(Work(lies="host", bytes=size)))[0].placement for size in (1 << 20, None))
    assert known is not None
    assert (known.bytes, "not known" in known.reason) == (1 << 20, False)
    assert unknown is not None
    assert unknown.bytes == UNKNOWN_BYTES
    assert unknown.reason.endswith(
        "because it reads 38 GB/s. The size of its input was not known, and counted as 1 GiB."
    )


def test_what_is_made_on_the_device_goes_to_the_gpu() -> None:
    [assigned] = allotted(BOTH, asked(MADE))
    assert (assigned.slot.worker, assigned.placement and assigned.placement.backend) == ("a:cuda:0", "cuda")


def test_work_that_waits_for_a_slot_counts() -> None:
    busy = OpenSlot("a:cpu", "cpu", 1, busy_s=0.1, rates=CPU)
    [assigned] = allotted((busy, GPU_SLOT), asked(FILE))
    assert assigned.slot.worker == "a:cuda:0"
    assert assigned.placement is not None
    assert "a:cpu, in 0.272 s after 0.1 s of other jobs" in assigned.placement.reason


def test_several_files_are_shared_as_both_end_them() -> None:
    assert Counter(where(allotted(BOTH, *(asked(FILE) for _ in range(4))))) == {"a:cpu": 2, "a:cuda:0": 2}


def test_a_backend_that_was_named_is_obeyed_and_nothing_is_said_of_it() -> None:
    [assigned] = allotted(BOTH, only={"cuda": [asked(FILE, anywhere=False)]})
    assert (assigned.slot.worker, assigned.placement) == ("a:cuda:0", None)
    assert assigned.expected_s is not None, "it counts for those behind it"


def test_a_job_waits_for_the_slot_that_ends_it_first_and_others_pass_it_by() -> None:
    full = OpenSlot("a:cuda:0", "cuda", 2, busy_s=0.01, rates=H200)
    file = asked(FILE)
    assigned = allotted((CPU_SLOT, full), asked(MADE), asked(MADE), file)
    assert [(each.job, each.slot.worker) for each in assigned] == [(file, "a:cpu")]


def test_a_slower_slot_gets_a_job_as_soon_as_it_ends_it_first() -> None:
    """The CPU takes 1.7 s for a job that takes the GPU 6 ms, so 64 of them are better off with the GPU, unless that has
    other work for 2 s."""
    jobs = [asked(MADE) for _ in range(64)]
    assigned = allotted(BOTH, *jobs)
    assert where(assigned) == ["a:cuda:0"] * 2
    late = OpenSlot("a:cuda:0", "cuda", 2, busy_s=2.0, rates=H200)
    assigned = allotted((CPU_SLOT, late), *jobs)
    assert where(assigned) == ["a:cpu"]
    assert assigned[0].job is jobs[0]


def test_who_has_used_up_the_quota_of_gpus_gets_the_cpu() -> None:
    assert where(allotted(BOTH, asked(MADE), no_gpu=(1,))) == ["a:cpu"]


def test_users_take_turns_at_a_slot_that_others_jobs_pass_by() -> None:
    jobs = [asked(MADE, owner=1), asked(FILE, owner=1), asked(FILE, owner=2)]
    full = OpenSlot("a:cuda:0", "cuda", 2, busy_s=0.5, rates=H200)
    assert [each.job.owner_id for each in allotted((CPU_SLOT, full), *jobs)] == [1, 2]


@pytest.mark.parametrize("work", [FILE, None])
def test_without_rates_or_a_prediction_the_slot_with_the_most_room_gets_it(work: Work | None) -> None:
    unmeasured = OpenSlot("a:cuda:0", "cuda", 0, 1, rates=None if work else H200)
    [assigned] = allotted((CPU_SLOT, unmeasured), asked(work))
    assert (assigned.slot.worker, assigned.placement) == ("a:cpu", None)


def test_small_jobs_go_where_there_is_room() -> None:
    assigned = allotted(BOTH, *(asked(None, small=True) for _ in range(4)))
    assert Counter(where(assigned)) == {"a:cpu": 2, "a:cuda:0": 2}
    assert {each.placement for each in assigned} == {None}


def test_of_two_slots_of_a_kind_the_faster_gets_the_job_until_it_has_too_much() -> None:
    slow = OpenSlot("b:cpu", "cpu", rates=CPU.model_copy(update={"reduce_gb_per_s": 20.0}))
    assert where(allotted((slow, CPU_SLOT), asked(FILE))) == ["a:cpu"]
    assert where(allotted((slow, CPU_SLOT), *(asked(FILE) for _ in range(3)))) == ["a:cpu", "a:cpu", "b:cpu"]


def test_the_only_slot_is_said_to_be_the_only_one() -> None:
    [assigned] = allotted((CPU_SLOT,), asked(MADE))
    assert assigned.placement is not None
    assert assigned.placement.reason.startswith("a:cpu was the only slot that took such jobs; it was predicted to")

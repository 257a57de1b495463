"""The busy seconds of what brings elements to a GPU."""

import pytest

from warpfold.kernels.backend import Stages
from warpfold.kernels.cuda.staging import stage_times
from warpfold.kernels.cuda.staging.stage_times import StageTimes


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(stage_times, "perf_counter", lambda: now[0])
    return now


def test_what_did_not_happen_is_no_stage() -> None:
    assert StageTimes(None).stages(0.5) == Stages(reduce_s=0.5)


def test_threads_that_read_at_the_same_time_share_their_seconds(clock: list[float]) -> None:
    times = StageTimes(None)
    times.threads = 4
    for _ in range(6):
        with times.reading(in_memory=False):
            clock[0] += 2.0
    times.copied(0.25)
    times.copied(0.5)
    assert times.stages(0.1) == Stages(read_s=3.0, copy_s=0.75, reduce_s=0.1)


def test_copying_into_pinned_memory_is_part_of_the_way_to_the_gpu(clock: list[float]) -> None:
    times = StageTimes(None)
    with times.reading(in_memory=True):
        clock[0] += 2.0
    times.copied(0.5)
    assert times.stages(0.1) == Stages(copy_s=2.0, reduce_s=0.1)


def test_decoding_is_the_longer_of_asking_and_of_what_threads_decoded_ahead(clock: list[float]) -> None:
    times = StageTimes(None)
    with times.decoding():
        clock[0] += 1.0
    assert times.stages(0.1).decode_s == 1.0
    times.ahead_s = 3.0
    assert times.stages(0.1).decode_s == 3.0


def test_a_part_that_could_not_be_read_counts_no_time(clock: list[float]) -> None:
    times = StageTimes(None)

    def read() -> None:
        with times.reading(in_memory=False):
            clock[0] += 1.0
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        read()
    assert times.stages(0.1) == Stages(reduce_s=0.1)

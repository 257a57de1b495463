"""Threads that stand by for jobs in machine code."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from warpfold.kernels.cpu.accumulator import FloatAccumulator
from warpfold.kernels.cpu.claims import ClaimJob, Claims
from warpfold.kernels.cpu.standing import StandingThreads
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.ops import Terms
from warpfold.kernels.source import ArraySource

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="threads that stand by are woken by an eventfd")


@pytest.fixture
def threads() -> StandingThreads:
    return StandingThreads(3)


def job_on(array: NDArray[np.float32]) -> tuple[FloatAccumulator, ClaimJob, Claims]:
    """A job that adds all elements of `array`; the claims own the memory that it reads."""
    claims = Claims(ArraySource(array), 1 << 10)
    added = FloatAccumulator([DTYPES["float32"]], Terms.VALUES, magnitudes=False)
    return added, added.claiming(claims), claims


def test_every_job_is_done_once_even_where_jobs_are_more_than_threads(threads: StandingThreads) -> None:
    array = np.ones(1000, np.float32)
    made = [job_on(array) for _ in range(40)]
    working = threads.begin(len(made))
    for _, job, _ in made:
        working.put(job.words)
    while not working.wait(10):
        pass
    working.close()
    for added, job, _ in made:
        added.claimed(job)
    assert [added.state().count for added, _, _ in made] == [1000] * 40


def test_rounds_at_once_end_apart(threads: StandingThreads) -> None:
    def summed(count: int) -> int:
        added, job, _claims = job_on(np.ones(count, np.float32))
        working = threads.begin(1)
        working.put(job.words)
        working.close()
        added.claimed(job)
        return added.state().count

    counts = list(range(1, 200))
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(summed, counts)) == counts


def test_a_round_ends_although_some_of_its_jobs_never_came(threads: StandingThreads) -> None:
    for put in (0, 1, 4):
        made = [job_on(np.ones(10, np.float32)) for _ in range(put)]
        working = threads.begin(5)
        for _, job, _ in made:
            working.put(job.words)
        assert not working.wait(0.01)
        working.close()
        for added, job, _ in made:
            added.claimed(job)
            assert added.state().count == 10


def test_threads_are_started_as_they_are_needed_and_kept(threads: StandingThreads) -> None:
    before = threading.active_count()
    for jobs, started in ((1, 1), (2, 2), (1, 2), (9, 3)):
        threads.begin(jobs).close()
        assert threading.active_count() - before == started


def test_waiting_ends_at_its_time(threads: StandingThreads) -> None:
    working = threads.begin(1)
    began = time.monotonic()
    assert not working.wait(0.02)
    assert time.monotonic() - began >= 0.015
    working.close()

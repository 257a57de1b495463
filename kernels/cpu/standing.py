"""Threads that stand by for work in machine code (`windows/standing.py`): they are woken together and need no
interpreter.

A Python thread that is handed work waits for the interpreter's lock before it begins and when it has ended, one thread
after another.
"""

import os
import select
import threading
import time
from functools import cache

import numpy as np
from numpy.typing import NDArray

_LINE = 8  # words a cache line
_PLACES = 1 << 12
"""How many jobs may wait."""


class StandingThreads:
    """Threads of this process, which do jobs in the order in which they come. There are no more than rounds have needed
    at a time, and at most `most`; a job that finds none waits."""

    def __init__(self, most: int) -> None:
        from warpfold.kernels.cpu.windows import standing  # it imports Numba

        self._native, self._most = standing, most
        self._lock = threading.Lock()
        self._words = np.zeros(standing.WORDS * _LINE, np.int64)
        self._queue = np.zeros(_PLACES, np.int64)
        self._wake = os.eventfd(0, os.EFD_SEMAPHORE | os.EFD_CLOEXEC)
        self._put, self._wanted, self._threads = 0, 0, 0
        self._words[standing.WAKE * _LINE] = self._wake
        self._words[standing.QUEUE * _LINE] = self._queue.ctypes.data
        self._words[standing.PLACES * _LINE] = _PLACES

    def begin(self, jobs: int) -> "Round":
        """Jobs that are waited for together, as many as `jobs` says."""
        with self._lock:
            self._wanted += jobs
            while self._threads < min(self._wanted, self._most):
                scratch = np.zeros(1, np.int64)
                # A thread that waits for jobs must not keep its process from ending.
                thread = threading.Thread(target=self._serve, args=(scratch,), name="standing", daemon=True)
                thread.start()
                self._threads += 1
        return Round(self, jobs)

    def put(self, job: NDArray[np.int64]) -> None:
        """Have a thread do `job`, whose memory is kept until it is done."""
        with self._lock:
            while self._put - int(self._words[self._native.TAKEN * _LINE]) >= _PLACES:
                time.sleep(1e-3)
            self._queue[self._put % _PLACES] = job.ctypes.data
            self._put += 1
            os.eventfd_write(self._wake, 1)

    def ended(self, jobs: int) -> None:
        """Note that so many jobs are done."""
        with self._lock:
            self._wanted -= jobs

    def _serve(self, scratch: NDArray[np.int64]) -> None:
        self._native.serve(self._words.ctypes.data, scratch.ctypes.data)


class Round:
    """So many jobs for `threads`, which are waited for together."""

    def __init__(self, threads: StandingThreads, jobs: int) -> None:
        from warpfold.kernels.cpu.windows import standing

        self._native, self._threads, self._count = standing, threads, jobs
        self._done = os.eventfd(0, os.EFD_CLOEXEC)
        self._words = np.array([jobs, 1], np.int64)  # how many jobs are not done, and what is written when none is left
        self._jobs: list[NDArray[np.int64]] = []

    def put(self, job: NDArray[np.int64]) -> None:
        """Have a thread do `job`, the words of one."""
        native, address = self._native, self._words.ctypes.data
        job[native.LEFT], job[native.DONE], job[native.ONE] = address, self._done, address + self._words.itemsize
        self._jobs.append(job)
        self._threads.put(job)

    def wait(self, seconds: float) -> bool:
        """Wait until all jobs are done, or for so long; whether they are."""
        poll = select.poll()
        poll.register(self._done, select.POLLIN)
        return bool(poll.poll(seconds * 1e3))

    def close(self) -> None:
        """Wait until all jobs that were put are done, and forget them."""
        missing, address = self._count - len(self._jobs), self._words.ctypes.data
        if missing:
            self._native.finish(address, self._done, address + self._words.itemsize, missing)
        os.eventfd_read(self._done)
        os.close(self._done)
        self._threads.ended(self._count)
        self._jobs.clear()


@cache
def standing_threads(_process: int) -> StandingThreads:
    """Those of this process, at most twice as many as cores. A process that was forked has none of its parent's
    threads."""
    return StandingThreads(2 * (os.cpu_count() or 1))

"""The peers of `benchmarks.service`: plain RQ workers that run `numpy.sum`, one that forks and one that does not."""

import multiprocessing
import time
from multiprocessing.connection import Connection

import numpy as np
import redis
from rq import Queue, SimpleWorker, Worker
from rq.job import Job
from rq.registry import FinishedJobRegistry

QUEUE = "peer"


def numpy_sum(values: list[float]) -> float:
    """The job of the peers: the same sum as in a job of Warpfold, without exactness."""
    return float(np.sum(np.array(values)))


def _work(url: str) -> None:
    # This module imports NumPy before the worker forks, as a well-kept worker would, so every fork inherits it.
    Worker([QUEUE], connection=redis.Redis.from_url(url)).work(logging_level="ERROR")


def jobs_per_second(redis_url: str, count: int, values: list[float]) -> float:
    """The jobs a second of RQ's Worker, which forks, from the first of `count` submissions to the last result."""
    connection = redis.Redis.from_url(redis_url)
    queue = Queue(QUEUE, connection=connection)
    worker = multiprocessing.get_context("spawn").Process(target=_work, args=(redis_url,))
    worker.start()
    try:
        queue.enqueue(numpy_sum, values)
        finished = FinishedJobRegistry(QUEUE, connection=connection)
        while finished.get_job_count(cleanup=False) < 1:
            time.sleep(0.01)
        started = time.perf_counter()
        for _ in range(count):
            queue.enqueue(numpy_sum, values)
        while finished.get_job_count(cleanup=False) < count + 1:
            time.sleep(0.005)
        return count / (time.perf_counter() - started)
    finally:
        worker.terminate()
        worker.join(5)


class _TimedWorker(SimpleWorker):
    """A worker that notes when its first job begins and when its latest job has ended."""

    began: float | None = None
    ended = 0.0

    def execute_job(self, job: Job, queue: Queue) -> None:
        if self.began is None:
            self.began = time.perf_counter()
        super().execute_job(job, queue)
        self.ended = time.perf_counter()


def _drain(url: str, seconds: Connection) -> None:
    numpy_sum([0.0])
    connection = redis.Redis.from_url(url)
    worker = _TimedWorker([Queue(QUEUE, connection=connection)], connection=connection)
    worker.work(burst=True, logging_level="ERROR")
    assert worker.began is not None
    seconds.send(worker.ended - worker.began)


def drained_per_second(redis_url: str, count: int, values: list[float]) -> float:
    """The jobs a second of RQ's SimpleWorker, which does not fork, while it drains `count` waiting jobs: from the begin
    of its first job to the end of its last."""
    connection = redis.Redis.from_url(redis_url)
    queue = Queue(QUEUE, connection=connection)
    for _ in range(count):
        queue.enqueue(numpy_sum, values)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    worker = context.Process(target=_drain, args=(redis_url, theirs))
    worker.start()
    taken: float = ours.recv()
    worker.join()
    return count / taken

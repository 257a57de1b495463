"""The peer of `benchmarks.service`: a plain RQ fork worker that runs `numpy.sum`."""

import multiprocessing
import time

import numpy as np
import redis
from rq import Queue, Worker
from rq.registry import FinishedJobRegistry

QUEUE = "peer"


def numpy_sum(values: list[float]) -> float:
    """The job: the same work as ours, without exactness."""
    return float(np.sum(np.array(values)))


def _work(url: str) -> None:
    # NumPy is imported already: each fork inherits it, as a well-kept worker would arrange.
    Worker([QUEUE], connection=redis.Redis.from_url(url)).work(logging_level="ERROR")


def jobs_per_second(redis_url: str, count: int, values: list[float]) -> float:
    """Submit `count` jobs to a running fork worker; jobs over the time from the first submission to the last result."""
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

"""The RQ worker of a slot: takes attempts from its queue and has them run, one at a time, without forking.

RQ's own work loop ends at the first error of Redis, keeps results and statuses that nobody reads, and beats six times
a job. What is used of RQ is its reliable queue (BLMOVE through an intermediate list) and the registration that
`rq info` shows.
"""

import time
from collections.abc import Callable, Collection, Sequence
from uuid import UUID

import structlog
from redis import Redis, RedisError
from rq import SimpleWorker
from rq.exceptions import DequeueTimeout
from rq.job import Job
from rq.queue import Queue
from rq.serializers import JSONSerializer
from rq.utils import as_text
from rq.worker.base import WorkerStatus
from structlog.typing import FilteringBoundLogger

from warpfold.worker.group import Behind
from warpfold.worker.queue import attempt_of, queue_of, rq_id
from warpfold.worker.stop import Stop

log: FilteringBoundLogger = structlog.get_logger()

Run = Callable[[UUID, int, Behind], None]

_LOOK_UP_EVERY_S = 2  # between two looks at the child while no work comes
_BEAT_EVERY_S = 30.0
_TTL_S = 90


class Consumer(SimpleWorker):
    """Serves the queue of one worker. `run` runs one attempt, or a group of attempts that begins with it, and raises
    only if the first could not be claimed. The consumer shows it what is behind the first in the queue."""

    def __init__(self, worker: str, redis: Redis, run: Run, stop: Stop) -> None:
        self._run = run
        self._stop = stop
        self._next_beat = 0.0
        super().__init__(
            [queue_of(worker, redis)],
            name=worker,
            connection=redis,
            serializer=JSONSerializer,
            worker_ttl=_TTL_S,
            log_job_description=False,
        )

    @property
    def connection_timeout(self) -> int:
        """Seconds that Redis may take to answer, the wait for work included."""
        return _LOOK_UP_EVERY_S + 3

    def enter(self) -> None:
        """Register, and put back into the queue what a forerunner, or we before an error, took out and did not run."""
        self.connection.delete(self.key)  # of a killed forerunner; two cannot be, because the slot is locked
        self.register_birth()  # type: ignore[no-untyped-call]
        self.set_state(WorkerStatus.IDLE)
        queue = self.queues[0]
        while self.connection.lmove(queue.intermediate_queue_key, queue.key, "RIGHT", "LEFT") is not None:
            pass

    def take(self) -> Job | None:
        """Wait for the next attempt; None if none came for a while. Raises StopRequested."""
        self._beat()
        try:
            with self._stop.interrupting():
                dequeued = Queue.dequeue_any(
                    self.queues, _LOOK_UP_EVERY_S, connection=self.connection, serializer=self.serializer
                )
        except DequeueTimeout:
            # RQ leaves here the names that it took out of the queue and found no message of.
            self.connection.delete(self.queues[0].intermediate_queue_key)
            return None
        return None if dequeued is None else dequeued[0]

    def execute_job(self, job: Job, queue: Queue) -> None:
        """Run the attempt that `job` names, and forget it in Redis, whatever became of it.

        Only the two values are read from it, never the function's name: what is in Redis cannot choose code.
        """
        try:
            job_id, attempt = UUID(str(job.kwargs["job_id"])), int(job.kwargs["attempt"])
        except Exception as error:
            log.error("unreadable message", message=job.id, error=repr(error))
        else:
            self._run(job_id, attempt, self)
        with self.connection.pipeline() as pipeline:
            pipeline.lrem(queue.intermediate_queue_key, 1, job.id)
            pipeline.delete(job.key)
            pipeline.execute()

    def waiting(self, at_most: int) -> Sequence[tuple[UUID, int]]:
        """The attempts that are next in the queue, which they stay in; up to the first name that names none."""
        attempts = []
        for name in self.connection.lrange(self.queues[0].key, 0, at_most - 1):
            try:
                attempts.append(attempt_of(as_text(name)))
            except ValueError:
                break
        return attempts

    def forget(self, attempts: Collection[tuple[UUID, int]]) -> None:
        """Remove attempts from the queue, and all that Redis knows of them."""
        if not attempts:
            return
        key = self.queues[0].key
        with self.connection.pipeline() as pipeline:
            for job_id, attempt in attempts:
                pipeline.lrem(key, 1, rq_id(job_id, attempt))
            pipeline.delete(*(Job.key_for(rq_id(job_id, attempt)) for job_id, attempt in attempts))
            pipeline.execute()

    def leave(self) -> None:
        """Unregister, if Redis is there to hear it."""
        try:
            self.register_death()  # type: ignore[no-untyped-call]
        except RedisError as error:
            log.warning("could not unregister from Redis", error=str(error))

    def _beat(self) -> None:
        now = time.monotonic()
        if now >= self._next_beat:
            self._next_beat = now + _BEAT_EVERY_S
            self.heartbeat(_TTL_S)

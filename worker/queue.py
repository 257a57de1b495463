"""Attempt queues, one a worker, by RQ. A message is `{job_id, attempt}` and nothing else, and may be lost any time."""

from collections import defaultdict
from collections.abc import Sequence
from uuid import UUID

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from rq import Queue
from rq.job import Job, JobStatus
from rq.serializers import JSONSerializer
from rq.utils import now

from warpfold.app.jobs.queue import HandOver

FUNCTION = "warpfold.worker.tasks.run_job"
_DAY_S = 24 * 3600


def connect(url: str, *, answer_within_s: float) -> Redis:
    """A connection that reports every error at once: when to try again is decided by those who know why."""
    return Redis.from_url(
        url,
        socket_timeout=answer_within_s,
        socket_connect_timeout=2.0,
        retry=Retry(NoBackoff(), 0),
        decode_responses=False,
    )


def queue_of(worker: str, redis: Redis) -> Queue:
    """The queue of one worker. A worker that blocks on a single queue can take from it reliably (BLMOVE)."""
    return Queue(worker, connection=redis, serializer=JSONSerializer)


def rq_id(job_id: UUID, attempt: int) -> str:
    """RQ's name for one attempt of a job."""
    return f"{job_id}-{attempt}"


def attempt_of(name: str) -> tuple[UUID, int]:
    """The job's id and the number of the attempt that RQ knows as `name`. Raises ValueError for a name of another
    kind."""
    job_id, _, attempt = name.rpartition("-")
    return UUID(job_id), int(attempt)


class AttemptQueues:
    """The dispatcher's side of the queues. Every method may raise redis.RedisError."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def send(self, handed: Sequence[HandOver]) -> None:
        """Append each attempt to its worker's queue: all of them, or on an error perhaps none."""
        names: defaultdict[str, list[str]] = defaultdict(list)
        with self._redis.pipeline() as pipeline:
            for message in handed:
                job = self._job(message)
                names[message.worker].append(job.id)
                # As RQ enqueues it, with two commands in place of seven.
                pipeline.hset(job.key, mapping=job.to_dict(include_meta=False))
                pipeline.expire(job.key, _DAY_S)
            for worker, theirs in names.items():
                queue = queue_of(worker, self._redis)
                pipeline.sadd(queue.redis_queues_keys, queue.key)
                pipeline.rpush(queue.key, *theirs)
            pipeline.execute()

    def _job(self, message: HandOver) -> Job:
        name = rq_id(message.job_id, message.attempt)
        job = Job.create(
            FUNCTION,
            connection=self._redis,
            kwargs={"job_id": str(message.job_id), "attempt": message.attempt},
            id=name,
            description=name,
            origin=message.worker,
            status=JobStatus.QUEUED,
            timeout=-1,  # the slot keeps the time
            result_ttl=0,
            failure_ttl=0,
            ttl=_DAY_S,  # so that nothing stays behind for ever; a message that expired is sent again
            serializer=JSONSerializer,
        )
        job.enqueued_at = now()
        return job

    def waiting(self, worker: str) -> frozenset[str]:
        """RQ's names of the attempts that wait in a worker's queue.

        A name whose message is lost is removed: the worker would skip it, and the job must be sent again.
        """
        queue = queue_of(worker, self._redis)
        names = queue.job_ids
        with self._redis.pipeline() as pipeline:
            for name in names:
                pipeline.exists(Job.key_for(name))
            exists = dict(zip(names, pipeline.execute(), strict=True))
            for name in names:
                if not exists[name]:
                    pipeline.lrem(queue.key, 0, name)
            pipeline.execute()
        return frozenset(name for name in names if exists[name])

    def discard(self, lost: Sequence[HandOver]) -> None:
        """Remove these attempts from the queues of workers that are gone."""
        with self._redis.pipeline() as pipeline:
            for message in lost:
                queue, name = queue_of(message.worker, self._redis), rq_id(message.job_id, message.attempt)
                pipeline.lrem(queue.key, 0, name)
                pipeline.lrem(queue.intermediate_queue_key, 0, name)
                pipeline.delete(Job.key_for(name))
            pipeline.execute()

"""Attempt queues, one for each worker, by RQ: the dispatcher sends attempts (`AttemptQueues`), a worker takes them
(`Consumer`). A message is `{job_id, attempt}` and nothing else, and may be lost at any time.

Of RQ, its reliable queue (BLMOVE through an intermediate list) and the registration that `rq info` shows are used. RQ's
own work loop ends at the first error of Redis, keeps results and statuses that nobody reads, and writes six heartbeats
a job, so a worker has a loop of its own.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from select import select
from uuid import UUID

import structlog
from redis import Redis, RedisError
from redis import TimeoutError as RedisTimeout
from redis.backoff import NoBackoff
from redis.retry import Retry
from rq import Queue, SimpleWorker
from rq.exceptions import NoSuchJobError
from rq.job import Job, JobStatus
from rq.serializers import JSONSerializer
from rq.utils import as_text, now
from rq.worker.base import WorkerStatus
from structlog.typing import FilteringBoundLogger

from warpfold.app.jobs.queue import HandOver
from warpfold.worker.direct import DirectMessage, DirectMessages
from warpfold.worker.group import WaitingMessages
from warpfold.worker.stop import Stop, StopRequested

log: FilteringBoundLogger = structlog.get_logger()

FUNCTION = "warpfold.worker.tasks.run_job"
_DAY_S = 24 * 3600
_LOOK_UP_EVERY_S = 2.0
"""The wait for work ends after this time, so that the worker can look at its child."""
_ASK_FOR_S = 10
"""How long Redis is asked to wait for a message, at a time."""
_ANSWERS_WITHIN_S = 5.0
_BEAT_EVERY_S = 30.0
_TTL_S = 90


def connect(url: str, *, answer_within_s: float) -> Redis:
    """A connection that reports every error at once, because its callers decide when to try again."""
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
            ttl=_DAY_S,  # so that no message stays for ever; an expired message is sent again
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


class Consumer(SimpleWorker):
    """The worker's side of its queue: takes attempts and has them run, one at a time, without forking. `run` runs one
    attempt, or a group of attempts that begins with it, and raises only if the first could not be claimed. It gets the
    consumer itself as the `WaitingMessages` of a group. For an attempt that was handed over directly it gets
    None."""

    def __init__(
        self,
        worker: str,
        redis: Redis,
        run: Callable[[UUID, int, WaitingMessages | None], None],
        stop: Stop,
        direct: DirectMessages | None = None,
    ) -> None:
        self._run = run
        self._stop = stop
        self._direct = direct
        self._asking: _Asking | None = None
        self._next_beat = 0.0
        super().__init__(
            [queue_of(worker, redis)],
            name=worker,
            connection=redis,
            serializer=JSONSerializer,
            worker_ttl=_TTL_S,
            log_job_description=False,
        )

    def enter(self) -> None:
        """Register, and put back into the queue the messages that an earlier process, or this process before an error,
        took out and did not run."""
        # The key is of an earlier process that was killed: the lock of the slot lets no other process run.
        self.connection.delete(self.key)
        self.register_birth()  # type: ignore[no-untyped-call]
        self.set_state(WorkerStatus.IDLE)
        queue = self.queues[0]
        while self.connection.lmove(queue.intermediate_queue_key, queue.key, "RIGHT", "LEFT") is not None:
            pass
        self._asking = _Asking(self.connection, queue)

    def take(self) -> Job | DirectMessage | None:
        """Wait for the next attempt: a message of RQ, or one that was handed over directly; None if none came for a
        while. Raises StopRequested."""
        self._beat()
        assert self._asking is not None, "enter() comes first"
        if self._stop.requested:
            raise StopRequested
        waited_for = [self._asking.begin(), self._stop.fileno()]
        if self._direct is not None:
            self._direct.listen()
            if (message := self._direct.take()) is not None:
                return message
            if (notices := self._direct.fileno()) is not None:
                waited_for.append(notices)
        readable, _, _ = select(waited_for, [], [], _LOOK_UP_EVERY_S)
        if self._stop.requested:
            raise StopRequested
        if self._direct is not None and (message := self._direct.take()) is not None:
            return message
        return self._message(self._asking.answer(is_here=waited_for[0] in readable))

    def _message(self, name: str | None) -> Job | None:
        """The message of this name or, where it is lost, the next message in the queue that is not lost."""
        queue = self.queues[0]
        while name is not None:
            try:
                return Job.fetch(name, self.connection, self.serializer)
            except NoSuchJobError:
                self.connection.lrem(queue.intermediate_queue_key, 1, name)
            following = self.connection.lmove(queue.key, queue.intermediate_queue_key, "LEFT", "RIGHT")
            name = None if following is None else str(as_text(following))
        return None

    def execute(self, taken: Job | DirectMessage) -> None:
        """Run the attempt that `take` returned."""
        if isinstance(taken, Job):
            self.execute_job(taken, self.queues[0])
        else:
            # The queue was empty when the attempt was handed over.
            self._run(taken.job_id, taken.attempt, None)

    def execute_job(self, job: Job, queue: Queue) -> None:
        """Run the attempt that `job` names, and remove the message from Redis, however the attempt ended. Only the two
        values of the message are read, and never the name of a function, so that nothing in Redis can choose the code
        that runs.
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
        """The attempts that are next in the queue, up to the first name that names no attempt. They stay in the
        queue."""
        attempts = []
        for name in self.connection.lrange(self.queues[0].key, 0, at_most - 1):
            try:
                attempts.append(attempt_of(as_text(name)))
            except ValueError:
                break
        return attempts

    def forget(self, attempts: Collection[tuple[UUID, int]]) -> None:
        """Remove attempts from the queue, with their messages."""
        if not attempts:
            return
        key = self.queues[0].key
        with self.connection.pipeline() as pipeline:
            for job_id, attempt in attempts:
                pipeline.lrem(key, 1, rq_id(job_id, attempt))
            pipeline.delete(*(Job.key_for(rq_id(job_id, attempt)) for job_id, attempt in attempts))
            pipeline.execute()

    def close(self) -> None:
        """Take no more attempts."""
        if self._asking is not None:
            self._asking.close()

    def leave(self) -> None:
        """Unregister, if Redis answers."""
        self.close()
        try:
            self.register_death()  # type: ignore[no-untyped-call]
        except RedisError as error:
            log.warning("could not unregister from Redis", error=str(error))

    def _beat(self) -> None:
        now = time.monotonic()
        if now >= self._next_beat:
            self._next_beat = now + _BEAT_EVERY_S
            self.heartbeat(_TTL_S)


class _Asking:
    """A blocking command that asks Redis for the next name in the queue, on a connection of its own. The command goes
    on while its worker waits for other events, and while the worker runs a job that came another way."""

    def __init__(self, redis: Redis, queue: Queue) -> None:
        pool = redis.connection_pool
        self._connection = pool.connection_class(**pool.connection_kwargs)
        # RQ takes a message in the same way: even if this process dies, the name stays in one of the two lists.
        self._command = ("BLMOVE", queue.key, queue.intermediate_queue_key, "LEFT", "RIGHT", _ASK_FOR_S)
        self._until = 0.0

    def begin(self) -> int:
        """Ask, unless Redis has not answered yet; returns the file number of the connection."""
        if not self._until:
            self._connection.send_command(*self._command)
            self._until = time.monotonic() + _ASK_FOR_S + _ANSWERS_WITHIN_S
        number: int = self._connection._get_socket().fileno()
        return number

    def answer(self, *, is_here: bool) -> str | None:
        """The name that Redis answered with; None if Redis found no name in the time, or has not answered yet."""
        if not is_here:
            if time.monotonic() > self._until:
                raise RedisTimeout("Redis does not answer")
            return None
        self._until = 0.0
        name = self._connection.read_response()
        return None if name is None else str(as_text(name))

    def close(self) -> None:
        self._connection.disconnect()

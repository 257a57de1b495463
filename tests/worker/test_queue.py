from collections.abc import Callable, Iterator
from contextlib import closing
from uuid import UUID, uuid4

import psycopg
import pytest
from redis import Redis, RedisError
from rq import Queue, SimpleWorker
from rq.serializers import JSONSerializer

from warpfold.app.db import conninfo
from warpfold.app.jobs.queue import HandOver
from warpfold.worker import queue
from warpfold.worker.direct import DirectMessages
from warpfold.worker.group import WaitingMessages
from warpfold.worker.queue import AttemptQueues, Consumer, queue_of, rq_id
from warpfold.worker.stop import Stop, StopRequested

WORKER = "here:cpu"

Took = list[tuple[UUID, int]]


@pytest.fixture
def took() -> Took:
    return []


@pytest.fixture
def consumer(redis: Redis, stop: Stop, took: Took) -> Iterator[Consumer]:
    consumer = Consumer(WORKER, redis, lambda job_id, attempt, behind: took.append((job_id, attempt)), stop)
    consumer.enter()
    yield consumer
    consumer.close()


@pytest.fixture
def send(redis: Redis) -> Callable[[int], UUID]:
    def send(attempt: int = 1) -> UUID:
        message = HandOver(uuid4(), attempt, WORKER)
        AttemptQueues(redis).send([message])
        return message.job_id

    return send


def work_off(consumer: Consumer, count: int) -> None:
    for _ in range(count):
        taken = consumer.take()
        assert taken is not None
        consumer.execute(taken)


def test_attempts_are_run_in_the_order_they_were_sent(
    consumer: Consumer, send: Callable[[int], UUID], took: Took
) -> None:
    sent = [(send(attempt), attempt) for attempt in (1, 2, 1)]
    work_off(consumer, 3)
    assert took == sent


def test_a_name_whose_message_is_lost_is_forgotten(
    consumer: Consumer, send: Callable[[int], UUID], redis: Redis
) -> None:
    """The dispatcher or the worker looks first; the worker takes the message out and finds no job."""
    for look in (lambda: AttemptQueues(redis).waiting(WORKER), consumer.take):
        redis.delete(f"rq:job:{rq_id(send(1), 1)}")
        assert not look()
        assert redis.llen(f"rq:queue:{WORKER}") == redis.llen(f"rq:queue:{WORKER}:intermediate") == 0


def test_nothing_of_an_attempt_stays_in_redis(consumer: Consumer, send: Callable[[int], UUID], redis: Redis) -> None:
    job_id = send(1)
    work_off(consumer, 1)
    assert not redis.keys(f"*{job_id}*")
    assert redis.llen(f"rq:queue:{WORKER}:intermediate") == 0


def test_the_queue_carries_names_of_attempts_and_nothing_more(send: Callable[[int], UUID], redis: Redis) -> None:
    job_id = send(3)
    (job,) = queue_of(WORKER, redis).jobs
    assert job.id == rq_id(job_id, 3)
    assert (job.args, job.kwargs) == ([], {"job_id": str(job_id), "attempt": 3})
    assert job.func_name == "warpfold.worker.tasks.run_job"


def test_what_was_taken_and_not_run_is_run_after_a_restart(
    consumer: Consumer, send: Callable[[int], UUID], redis: Redis, stop: Stop, took: Took
) -> None:
    first, second = send(1), send(1)
    consumer.take()  # and here it is killed
    following = Consumer(WORKER, redis, lambda job_id, attempt, behind: took.append((job_id, attempt)), stop)
    with closing(following):
        following.enter()
        work_off(following, 2)
    assert took == [(first, 1), (second, 1)]


def test_a_message_cannot_choose_what_is_run(consumer: Consumer, redis: Redis, took: Took) -> None:
    queue_of(WORKER, redis).enqueue("os.system", kwargs={"command": "true"})
    queue_of(WORKER, redis).enqueue("warpfold.worker.tasks.run_job", kwargs={"job_id": "' or 1=1", "attempt": 1})
    work_off(consumer, 2)
    assert took == []


def test_a_pickled_message_is_not_loaded(consumer: Consumer, redis: Redis, took: Took) -> None:
    kwargs = {"job_id": str(uuid4()), "attempt": 1}
    Queue(WORKER, connection=redis).enqueue("warpfold.worker.tasks.run_job", kwargs=kwargs)
    work_off(consumer, 1)
    assert took == []


def test_an_expired_message_is_passed_over(
    consumer: Consumer, send: Callable[[int], UUID], redis: Redis, took: Took
) -> None:
    expired, fresh = send(1), send(1)
    redis.delete(f"rq:job:{rq_id(expired, 1)}")
    work_off(consumer, 1)
    assert took == [(fresh, 1)]


@pytest.fixture
def short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "_LOOK_UP_EVERY_S", 0.02)


@pytest.mark.usefixtures("short_looks")
def test_a_wait_without_work_ends_after_a_while(consumer: Consumer) -> None:
    assert consumer.take() is None


@pytest.mark.usefixtures("short_looks")
def test_a_job_that_was_handed_over_directly_is_run_while_redis_is_asked(
    redis: Redis, stop: Stop, took: Took, send: Callable[[int], UUID], database_url: str
) -> None:
    def run(job_id: UUID, attempt: int, behind: WaitingMessages | None) -> None:
        took.append((job_id, attempt))
        assert (behind is None) == (job_id == directly)

    directly = uuid4()
    direct = DirectMessages(database_url, WORKER)
    with closing(direct), closing(Consumer(WORKER, redis, run, stop, direct)) as consumer:
        consumer.enter()
        assert consumer.take() is None  # Redis goes on waiting
        with psycopg.connect(conninfo(database_url), autocommit=True) as other:
            other.execute("select pg_notify('warpfold_slot_' || md5(%s), %s)", (WORKER, f"{directly} 1"))
        work_off(consumer, 1)
        by_redis = send(1)
        work_off(consumer, 1)
    assert took == [(directly, 1), (by_redis, 1)]


@pytest.mark.usefixtures("short_looks")
def test_a_redis_that_goes_away_while_it_is_asked_is_an_error(consumer: Consumer, redis: Redis) -> None:
    assert consumer.take() is None
    redis.client_kill_filter(skipme=True)
    with pytest.raises(RedisError):
        consumer.take()


def test_a_request_to_stop_comes_before_the_next_attempt(
    consumer: Consumer, send: Callable[[int], UUID], stop: Stop, redis: Redis
) -> None:
    job_id = send(1)
    stop.request()
    with pytest.raises(StopRequested):
        consumer.take()
    assert AttemptQueues(redis).waiting(WORKER) == {rq_id(job_id, 1)}


def test_rq_shows_the_worker_until_it_leaves(consumer: Consumer, redis: Redis) -> None:
    def shown() -> list[str]:
        return [worker.name for worker in SimpleWorker.all(redis, serializer=JSONSerializer)]

    assert shown() == [WORKER]
    consumer.leave()
    assert shown() == []


def test_a_killed_workers_registration_does_not_keep_the_next_out(consumer: Consumer, redis: Redis, stop: Stop) -> None:
    Consumer(WORKER, redis, lambda job_id, attempt, behind: None, stop).enter()

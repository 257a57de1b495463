import contextlib
import socket
import threading
import time
from contextlib import closing
from uuid import UUID

import pytest
from redis import Redis

from tests.support.clock import HandClock
from tests.support.dispatching import claim, look_for
from tests.support.ledger import Ledger
from tests.support.queue import fill
from tests.support.waiting import until
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import leases, queue
from warpfold.app.jobs.attempt import Success
from warpfold.app.jobs.dispatch_state import SMALL, Depth
from warpfold.contract.states import Status
from warpfold.worker.direct import DirectMessages
from warpfold.worker.dispatcher import Dispatcher, choose
from warpfold.worker.leadership import Leadership
from warpfold.worker.queue import AttemptQueues, connect, rq_id
from warpfold.worker.stop import Stop


def handed(database: BlockingDatabase, prefetch: int = 2) -> list[tuple[UUID, str]]:
    return [(message.job_id, message.worker) for message in database.run(choose, Depth(prefetch))]


def test_without_a_live_worker_nothing_is_handed_over(ledger: Ledger, database: BlockingDatabase) -> None:
    ledger.submit()
    ledger.worker("cpu", state="starting")
    ledger.worker("cuda:0", lease_s=0.0)
    assert handed(database) == []


def test_higher_priority_goes_first_then_age(ledger: Ledger, database: BlockingDatabase) -> None:
    cpu = ledger.worker("cpu")
    low, old, young, high = (ledger.submit(priority=name) for name in ("low", "normal", "normal", "high"))
    assert handed(database, prefetch=4) == [(high, cpu), (old, cpu), (young, cpu), (low, cpu)]


def test_owners_take_turns(ledger: Ledger, database: BlockingDatabase) -> None:
    ledger.worker("cpu")
    mine = [ledger.submit(owner="ada") for _ in range(3)]
    yours = [ledger.submit(owner="bob") for _ in range(2)]
    order = [job_id for job_id, _ in handed(database, prefetch=5)]
    assert order == [mine[0], yours[0], mine[1], yours[1], mine[2]]


def test_a_slot_gets_no_more_than_it_has_room_for(ledger: Ledger, database: BlockingDatabase) -> None:
    cpu = ledger.worker("cpu")
    job_ids = [ledger.submit() for _ in range(4)]
    assert [job_id for job_id, _ in handed(database)] == job_ids[:2]
    assert handed(database) == []
    lease = claim(database, job_ids[0], cpu)
    assert handed(database) == []  # one runs, one waits
    database.run(leases.succeed, [(lease, Success({}))])
    assert handed(database) == [(job_ids[2], cpu)]


def test_the_emptier_slot_gets_the_next_job_and_a_gpu_before_a_cpu(ledger: Ledger, database: BlockingDatabase) -> None:
    cpu, gpu = ledger.worker("cpu"), ledger.worker("cuda:0")
    for _ in range(4):
        ledger.submit()
    assert [worker for _, worker in handed(database)] == [gpu, cpu, gpu, cpu]


def test_an_idle_cpu_gets_the_job_that_a_busy_gpu_could_run_too(ledger: Ledger, database: BlockingDatabase) -> None:
    cpu, gpu = ledger.worker("cpu"), ledger.worker("cuda:0")
    running = ledger.submit(needs="cuda")
    assert handed(database) == [(running, gpu)]
    claim(database, running, gpu)
    following = ledger.submit()
    assert handed(database) == [(following, cpu)]


def test_many_slots_are_filled_in_one_go(ledger: Ledger, database: BlockingDatabase) -> None:
    gpus = [ledger.worker(f"cuda:{index}") for index in range(8)]
    for _ in range(11):
        ledger.submit()
    workers = [worker for _, worker in handed(database)]
    assert len(workers) == 11
    assert {workers.count(gpu) for gpu in gpus} == {1, 2}


def test_a_job_goes_only_to_slots_that_can_run_it(ledger: Ledger, database: BlockingDatabase) -> None:
    cpu, gpu = ledger.worker("cpu"), ledger.worker("cuda:0")
    on_cpu, on_gpu = ledger.submit(needs="cpu"), ledger.submit(needs="cuda")
    assert sorted(handed(database)) == sorted([(on_cpu, cpu), (on_gpu, gpu)])


def test_the_gang_gets_its_jobs_and_no_others(ledger: Ledger, database: BlockingDatabase) -> None:
    gang, gpu = ledger.worker("gang"), ledger.worker("cuda:0")
    anywhere, on_all = ledger.submit(), ledger.submit(needs="gang")
    assert sorted(handed(database)) == sorted([(anywhere, gpu), (on_all, gang)])


def test_a_job_of_several_wishes_goes_to_the_best_slot_that_lives(ledger: Ledger, database: BlockingDatabase) -> None:
    cpu = ledger.worker("cpu")
    first = ledger.submit(needs="gang_first")
    assert handed(database) == [(first, cpu)]
    gpu = ledger.worker("cuda:0")
    second, profile = ledger.submit(needs="gang_first"), ledger.submit(needs="gpu_first")
    assert sorted(handed(database)) == sorted([(second, gpu), (profile, gpu)])
    gang = ledger.worker("gang")
    third = ledger.submit(needs="gang_first")
    assert handed(database) == [(third, gang)]


def test_it_waits_for_a_better_slot_that_is_still_starting_but_not_for_one_that_is_gone(
    ledger: Ledger, database: BlockingDatabase
) -> None:
    cpu = ledger.worker("cpu")
    job = ledger.submit(needs="gang_first")
    ledger.worker("gang", state="starting")
    assert handed(database) == []
    ledger.worker("gang", state="stopped")
    assert handed(database) == [(job, cpu)]


def test_a_handed_over_job_waits_in_its_workers_queue(ledger: Ledger, dispatcher: Dispatcher, redis: Redis) -> None:
    cpu, job_id = ledger.worker("cpu"), ledger.submit()
    dispatcher.deliver()
    assert AttemptQueues(redis).waiting(cpu) == {rq_id(job_id, 1)}


def test_while_redis_is_away_jobs_stay_available(
    ledger: Ledger, settings: Settings, database: BlockingDatabase, stop: Stop, redis: Redis
) -> None:
    cpu, job_id = ledger.worker("cpu"), ledger.submit()
    cut_off = Dispatcher(settings, database, AttemptQueues(connect("redis://127.0.0.1:1/0", answer_within_s=1.0)), stop)
    cut_off.deliver()
    assert ledger.column(job_id, "dispatched_at") is None
    Dispatcher(settings, database, AttemptQueues(redis), stop).deliver()
    assert AttemptQueues(redis).waiting(cpu) == {rq_id(job_id, 1)}


def test_a_dispatcher_does_not_hammer_a_redis_that_is_away(
    ledger: Ledger, settings: Settings, database: BlockingDatabase, stop: Stop
) -> None:
    ledger.worker("cpu")
    ledger.submit()
    with socket.create_server(("127.0.0.1", 0), backlog=100) as door:
        calls = 0

        def slam() -> None:
            nonlocal calls
            with contextlib.suppress(OSError):
                while True:
                    caller, _ = door.accept()
                    calls += 1
                    caller.close()

        doorman = threading.Thread(target=slam)
        doorman.start()
        url = f"redis://127.0.0.1:{door.getsockname()[1]}/0"
        cut_off = Dispatcher(settings, database, AttemptQueues(connect(url, answer_within_s=1.0)), stop)
        started = time.monotonic()
        while calls < 4:
            cut_off.deliver()
        taken_s = time.monotonic() - started
        door.shutdown(socket.SHUT_RDWR)
        doorman.join()
    assert taken_s >= 0.05 + 0.1 + 0.2


def test_what_redis_forgot_is_sent_again(
    ledger: Ledger, dispatcher: Dispatcher, redis: Redis, clock: HandClock
) -> None:
    cpu, job_id = ledger.worker("cpu"), ledger.submit()
    dispatcher.deliver()
    redis.flushall()
    dispatcher.look_around()
    dispatcher.deliver()
    assert AttemptQueues(redis).waiting(cpu) == frozenset(), "too early to call it lost"
    look_for(dispatcher, clock, 3)
    dispatcher.deliver()
    assert AttemptQueues(redis).waiting(cpu) == {rq_id(job_id, 1)}


def test_of_a_long_queue_no_more_than_a_slot_holds_is_sent_again(
    ledger: Ledger, dispatcher: Dispatcher, redis: Redis, clock: HandClock
) -> None:
    cpu = ledger.worker("cpu", lease_s=600.0)
    ledger.database.run(fill, ledger.owner("ada"), 2000, small=True)
    dispatcher.deliver()
    sent = AttemptQueues(redis).waiting(cpu)
    assert len(sent) == SMALL
    for _ in range(2):
        redis.flushall()
        look_for(dispatcher, clock, 3)
        dispatcher.deliver()
        assert AttemptQueues(redis).waiting(cpu) == sent
        assert redis.dbsize() <= len(sent) + 10, "a message for each job that the slot holds, and a few keys of queues"


@pytest.mark.parametrize("seconds", [600, -600])
def test_a_step_of_the_servers_clock_does_not_change_when_it_is_sent_again(
    ledger: Ledger, dispatcher: Dispatcher, redis: Redis, clock: HandClock, seconds: float
) -> None:
    cpu, job_id = ledger.worker("cpu"), ledger.submit()
    dispatcher.deliver()
    ledger.age(job_id, seconds)  # of a clock that was set forward, or back
    redis.flushall()
    look_for(dispatcher, clock, 1)
    dispatcher.deliver()
    assert AttemptQueues(redis).waiting(cpu) == frozenset(), "too early to call it lost"
    look_for(dispatcher, clock, 2)
    dispatcher.deliver()
    assert AttemptQueues(redis).waiting(cpu) == {rq_id(job_id, 1)}


def test_a_job_that_was_handed_over_directly_and_not_claimed_is_sent_again(
    ledger: Ledger, database_url: str, dispatcher: Dispatcher, redis: Redis, clock: HandClock
) -> None:
    """Its worker was gone by the time of the notification, or it was stopped."""
    cpu = ledger.worker("cpu")
    with closing(DirectMessages(database_url, cpu)) as direct:
        direct.listen()
        job_id = ledger.submit_small()
    assert ledger.column(job_id, "slot") == cpu
    dispatcher.deliver()
    assert AttemptQueues(redis).waiting(cpu) == frozenset()
    look_for(dispatcher, clock, 3)
    dispatcher.deliver()
    assert AttemptQueues(redis).waiting(cpu) == {rq_id(job_id, 1)}


def test_what_waits_in_its_queue_is_left_there(
    ledger: Ledger, dispatcher: Dispatcher, redis: Redis, clock: HandClock
) -> None:
    cpu = ledger.worker("cpu")
    ledger.submit()
    dispatcher.deliver()
    look_for(dispatcher, clock, 60)
    dispatcher.deliver()
    assert redis.llen(f"rq:queue:{cpu}") == 1


def test_jobs_of_a_worker_that_is_gone_go_to_another(
    ledger: Ledger, dispatcher: Dispatcher, redis: Redis, clock: HandClock
) -> None:
    gone, job_id = ledger.worker("cpu", host="there"), ledger.submit()
    dispatcher.deliver()
    ledger.worker("cpu", host="there", lease_s=0.0)
    here = ledger.worker("cpu")
    look_for(dispatcher, clock, 3)
    dispatcher.deliver()
    assert AttemptQueues(redis).waiting(here) == {rq_id(job_id, 1)}
    assert not redis.exists(f"rq:queue:{gone}")


def test_an_idle_slot_gets_what_waits_behind_a_long_job_elsewhere(
    ledger: Ledger, dispatcher: Dispatcher, database: BlockingDatabase, redis: Redis, clock: HandClock
) -> None:
    busy = ledger.worker("cuda:0")
    long, waiting = ledger.submit(needs="cuda"), ledger.submit()
    dispatcher.deliver()
    claim(database, long, busy)
    only_there = ledger.submit(needs="cuda")
    idle = ledger.worker("cpu")
    dispatcher.deliver()
    assert ledger.column(waiting, "slot") == busy
    look_for(dispatcher, clock, 3)
    dispatcher.deliver()
    assert AttemptQueues(redis).waiting(idle) == {rq_id(waiting, 1)}
    assert rq_id(waiting, 1) not in AttemptQueues(redis).waiting(busy)
    assert ledger.column(only_there, "slot") == busy


def test_a_hand_over_that_a_stopped_dispatcher_takes_for_lost_is_claimed_once_all_the_same(
    ledger: Ledger, database: BlockingDatabase, redis: Redis, dispatcher: Dispatcher
) -> None:
    """It was stopped between its look and its deed. The next one has sent the job elsewhere meanwhile."""
    first, job_id = ledger.worker("cpu"), ledger.submit()
    stale = database.run(choose, Depth(2))
    database.run(queue.withdraw, stale)
    ledger.worker("cpu", state="stopped", lease_s=0.0)
    second = ledger.worker("cpu", host="there")
    dispatcher.deliver()
    AttemptQueues(redis).send(stale)
    database.run(queue.withdraw, stale)
    assert AttemptQueues(redis).waiting(first) == AttemptQueues(redis).waiting(second) == {rq_id(job_id, 1)}
    claims = [database.run(leases.claim, job_id, 1, worker, 60.0) for worker in (first, second)]
    assert [lease is not None for lease in claims] == [True, False]


class TickingClock:
    """Goes on a little with every look at it, until it is stopped."""

    def __init__(self, tick_s: float) -> None:
        self._tick_s = tick_s
        self.passed_s = 0.0

    def __call__(self) -> float:
        self.passed_s += self._tick_s
        return self.passed_s

    def stop(self) -> None:
        self._tick_s = 0.0


def test_who_stood_by_takes_back_at_once_what_was_lost_with_the_leader(
    settings: Settings, ledger: Ledger, database: BlockingDatabase, stop: Stop
) -> None:
    lost = ledger.submit()
    claim(database, lost, ledger.worker("cpu"))
    quick = settings.model_copy(update={"lease_s": 0.1, "dispatch_interval_s": 0.01})
    clock = TickingClock(0.01)
    queues = AttemptQueues(connect(settings.redis_url, answer_within_s=5.0))
    standby = Dispatcher(quick, database, queues, stop, clock=clock)
    with Leadership(settings.database_url, "the leader, which is lost", 60.0) as leader:
        assert leader.won()
        thread = threading.Thread(target=standby.run)
        thread.start()
        until(lambda: clock.passed_s > 0.2)
        assert ledger.column(lost, "status") == Status.RUNNING, "who stands by changes nothing"
        clock.stop()  # from now on, nobody falls silent
    try:
        ledger.until(lost, "status", Status.QUEUED, 20)
    finally:
        stop.request()
        thread.join()
    assert ledger.column(lost, "losses") == 1

"""A group of small jobs on its worker, with a real child, real queues and a real database."""

import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import psutil
import pytest
from redis import Redis

from tests.support.ledger import Ledger
from tests.support.waiting import Meanwhile, until
from tests.support.workers.actor import actor
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs.queue import HandOver
from warpfold.contract.states import Reason, Status
from warpfold.worker import group
from warpfold.worker.direct import DirectMessage
from warpfold.worker.endings import Place
from warpfold.worker.gpu_lock import GpuTurn
from warpfold.worker.nursery import Nursery
from warpfold.worker.queue import AttemptQueues, Consumer
from warpfold.worker.slot import Slot
from warpfold.worker.stop import Stop
from warpfold.worker.tasks import run_job

WORKER = "here:cpu"
ENDED_ONCE = ["submitted", "started", "succeeded"]


@pytest.fixture(autouse=True)
def a_long_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine may need more than a second for a group; its turn ends for no other reason here."""
    monkeypatch.setattr(group, "_TURN_S", 60.0)


@pytest.fixture
def place(
    settings: Settings, database: BlockingDatabase, stop: Stop, nursery: Nursery, tmp_path: Path
) -> Iterator[Place]:
    quick = settings.model_copy(update={"heartbeat_s": 0.05})
    slot = Slot("cpu", actor(), stop, nursery, grace_s=0.3)
    slot.ready()
    yield Place(WORKER, slot, GpuTurn(tmp_path, []), database, quick, stop)
    slot.close()


@pytest.fixture
def consumer(place: Place, redis: Redis, stop: Stop, nursery: Nursery) -> Iterator[Consumer]:
    consumer = Consumer(WORKER, redis, partial(run_job, place), stop)
    consumer.enter()
    yield consumer
    consumer.close()


def send(redis: Redis, ledger: Ledger, *does: str, small: bool = True, timeout_s: float = 60.0) -> list[UUID]:
    """Jobs that were handed over to the worker, in this order."""
    ids = [ledger.submit(do, small=small, timeout_s=timeout_s) for do in does]
    AttemptQueues(redis).send([HandOver(job_id, 1, WORKER) for job_id in ids])
    return ids


def serve(consumer: Consumer, times: int = 1) -> None:
    """Take a message and run it, with what runs in its group."""
    for _ in range(times):
        taken = consumer.take()
        assert taken is not None
        consumer.execute(taken)


def histories(ledger: Ledger, ids: Collection[UUID]) -> list[list[str]]:
    return [ledger.history(job_id) for job_id in ids]


def answers(ledger: Ledger, ids: Sequence[UUID]) -> list[str]:
    return [ledger.result(job_id)["said"] for job_id in ids]


def test_what_waits_behind_a_small_job_runs_with_it_and_ends_once(
    consumer: Consumer, redis: Redis, ledger: Ledger
) -> None:
    ids = send(redis, ledger, *(f"say {number}" for number in range(100)))
    serve(consumer)
    assert answers(ledger, ids) == [str(number) for number in range(100)]
    assert histories(ledger, ids) == [ENDED_ONCE] * 100
    assert [ledger.points(job_id) for job_id in ids] == [1] * 100
    assert not redis.keys("rq:job:*")
    assert redis.llen(f"rq:queue:{WORKER}") == redis.llen(f"rq:queue:{WORKER}:intermediate") == 0


def test_a_long_job_has_its_turn_between_small_ones(consumer: Consumer, redis: Redis, ledger: Ledger) -> None:
    before = send(redis, ledger, "say a", "say b", "say c")
    long = send(redis, ledger, "say long", small=False)
    after = send(redis, ledger, "say d", "say e")
    serve(consumer)
    assert histories(ledger, before) == [ENDED_ONCE] * 3
    assert histories(ledger, [*long, *after]) == [["submitted"]] * 3
    serve(consumer, 2)
    assert histories(ledger, [*long, *after]) == [ENDED_ONCE] * 3


def test_a_group_whose_turn_is_over_leaves_the_rest_in_the_queue(
    consumer: Consumer, redis: Redis, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group, "_TURN_S", 0.0)
    ids = send(redis, ledger, "say a", "say b")
    serve(consumer)
    assert histories(ledger, ids) == [ENDED_ONCE, ["submitted"]]
    serve(consumer)
    assert ledger.history(ids[1]) == ENDED_ONCE


def test_a_group_that_waited_long_for_its_gpu_has_its_whole_turn(
    consumer: Consumer, redis: Redis, place: Place, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited_s = 0.0

    @contextmanager
    def hold(give_up: Callable[[], bool]) -> Iterator[None]:
        nonlocal waited_s
        waited_s = 3600.0
        yield

    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + waited_s, sleep=time.sleep)
    monkeypatch.setattr(group, "time", clock)
    monkeypatch.setattr(place.turn, "hold", hold)
    ids = send(redis, ledger, "say a", "say b")
    serve(consumer)
    assert histories(ledger, ids) == [ENDED_ONCE] * 2


def test_messages_that_are_not_to_be_had_are_dropped(consumer: Consumer, redis: Redis, ledger: Ledger) -> None:
    ids = send(redis, ledger, "say a", "say b", "say c", "say d")
    ledger.cancel(ids[1])
    AttemptQueues(redis).send([HandOver(ids[2], 1, WORKER)])
    serve(consumer)
    assert histories(ledger, ids) == [ENDED_ONCE, ["submitted", "cancelled"], ENDED_ONCE, ENDED_ONCE]
    assert redis.llen(f"rq:queue:{WORKER}") == 0


@pytest.mark.parametrize("kill", [f"signal {signal.SIGKILL}", "exit 3"])
def test_a_child_that_dies_ends_only_the_job_that_it_was_in(
    consumer: Consumer, redis: Redis, ledger: Ledger, kill: str
) -> None:
    ids = send(redis, ledger, "say a", "say b", kill, "say c", "say d")
    serve(consumer)
    assert histories(ledger, [*ids[:2], *ids[3:]]) == [ENDED_ONCE] * 4
    assert ledger.history(ids[2]) == ["submitted", "started", "requeued"]
    assert [ledger.column(job_id, "losses") for job_id in ids] == [0, 0, 1, 0, 0]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_job_that_was_handed_over_directly_meets_a_child_of_use(
    consumer: Consumer, place: Place, ledger: Ledger, how: signal.Signals
) -> None:
    assert place.slot.pid is not None
    child = psutil.Process(place.slot.pid)
    child.send_signal(how)
    mine = place.slot._child
    assert mine is not None
    until(lambda: mine.is_dead() or mine.is_stopped())  # the pipe that says so may be closed later than it is dead
    job_id = ledger.submit("say hello", small=True)
    consumer.execute(DirectMessage(job_id, 1))
    assert ledger.history(job_id) == ENDED_ONCE
    assert place.slot.pid != child.pid


def test_a_child_that_cannot_be_trusted_is_replaced_for_the_others(
    consumer: Consumer, redis: Redis, ledger: Ledger
) -> None:
    ids = send(redis, ledger, "say a", "raise cuda", "say b", "raise input", "say c")
    serve(consumer)
    assert [ledger.job(job_id).reason for job_id in ids] == [None, Reason.CUDA_ERROR, None, Reason.INVALID_INPUT, None]
    pids = [ledger.result(ids[place])["pid"] for place in (0, 2, 4)]
    assert pids[0] != pids[1] == pids[2]


def test_a_time_out_is_that_of_one_job(consumer: Consumer, redis: Redis, ledger: Ledger) -> None:
    ids = send(redis, ledger, "say a", "sleep 0.2", "sleep 60", "say b", timeout_s=0.5)
    serve(consumer)
    assert [ledger.job(job_id).status for job_id in ids] == [
        Status.SUCCEEDED,
        Status.SUCCEEDED,
        Status.FAILED,
        Status.SUCCEEDED,
    ]
    assert ledger.job(ids[2]).error == "It ran longer than its time-out of 0.5 s."


def test_a_job_that_turns_out_long_holds_back_no_result(
    consumer: Consumer, redis: Redis, ledger: Ledger, meanwhile: Meanwhile
) -> None:
    ids = send(redis, ledger, "say a", "say b", "sleep 60", "say c")

    def look() -> None:
        until(lambda: histories(ledger, ids[:2]) == [ENDED_ONCE] * 2)
        ledger.cancel(ids[2])

    meanwhile(look)
    serve(consumer)
    assert ledger.history(ids[2]) == ["submitted", "started", "cancel_requested", "cancelled"]
    assert ledger.history(ids[3]) == ENDED_ONCE


def test_what_is_behind_a_first_job_that_turns_out_long_is_not_claimed(
    consumer: Consumer, redis: Redis, ledger: Ledger, meanwhile: Meanwhile
) -> None:
    ids = send(redis, ledger, "sleep 60", "say a")

    def look() -> None:
        until(lambda: ledger.column(ids[0], "status") == Status.RUNNING)
        before = ledger.column(ids[0], "lease_expires_at")
        until(lambda: ledger.column(ids[0], "lease_expires_at") > before)
        assert ledger.column(ids[1], "status") == Status.QUEUED
        ledger.cancel(ids[0])

    meanwhile(look)
    serve(consumer)
    assert ledger.column(ids[0], "status") == Status.CANCELLED


def test_a_cancel_prevents_a_claimed_job_that_has_not_begun(
    consumer: Consumer, redis: Redis, ledger: Ledger, meanwhile: Meanwhile
) -> None:
    ids = send(redis, ledger, "say a", "sleep 60", "say b", "say c")

    def cancel() -> None:
        until(lambda: ledger.column(ids[3], "status") == Status.RUNNING)
        ledger.cancel(ids[2])
        until(lambda: ledger.column(ids[2], "status") == Status.CANCELLED)
        ledger.cancel(ids[1])

    meanwhile(cancel)
    serve(consumer)
    assert ledger.history(ids[2]) == ["submitted", "started", "cancel_requested", "cancelled"]
    assert ledger.history(ids[3]) == ENDED_ONCE


def test_all_leases_are_renewed_and_a_lost_one_ends_only_its_own_job(
    consumer: Consumer, redis: Redis, ledger: Ledger, meanwhile: Meanwhile
) -> None:
    ids = send(redis, ledger, "say a", "sleep 60", "say b", "say c")

    def lose() -> None:
        until(lambda: ledger.column(ids[3], "status") == Status.RUNNING)
        before = ledger.column(ids[3], "lease_expires_at")
        until(lambda: ledger.column(ids[3], "lease_expires_at") > before)
        ledger.take_back(ids[2])
        ledger.cancel(ids[1])

    meanwhile(lose)
    serve(consumer)
    assert ledger.history(ids[2]) == ["submitted", "started", "requeued"]
    assert ledger.history(ids[3]) == ENDED_ONCE


def test_a_worker_that_is_stopped_keeps_what_ended_and_puts_back_the_rest_without_blame(
    consumer: Consumer, redis: Redis, ledger: Ledger, stop: Stop, meanwhile: Meanwhile
) -> None:
    ids = send(redis, ledger, "say a", "sleep 60", "say b", "say c")

    def end() -> None:
        until(lambda: ledger.column(ids[3], "status") == Status.RUNNING)
        stop.request()

    meanwhile(end)
    serve(consumer)
    assert ledger.history(ids[0]) == ENDED_ONCE
    for job_id in ids[1:]:
        assert ledger.history(job_id) == ["submitted", "started", "requeued"]
        assert (ledger.job(job_id).attempt, ledger.column(job_id, "losses")) == (2, 0)


def test_a_result_that_postgres_refuses_fails_its_job_alone(consumer: Consumer, redis: Redis, ledger: Ledger) -> None:
    ids = send(redis, ledger, "say a", "say nan", "say b")
    serve(consumer)
    assert [ledger.job(job_id).reason for job_id in ids] == [None, Reason.INTERNAL, None]
    assert answers(ledger, [ids[0], ids[2]]) == ["a", "b"]


def test_a_job_that_a_worker_was_lost_with_runs_alone(consumer: Consumer, redis: Redis, ledger: Ledger) -> None:
    ids = send(redis, ledger, "say a", "say b")
    [blamed] = send(redis, ledger, "say c")
    ledger.set(blamed, losses=1)
    serve(consumer)
    assert histories(ledger, [*ids, blamed]) == [ENDED_ONCE, ENDED_ONCE, ["submitted"]]
    serve(consumer)
    assert ledger.history(blamed) == ENDED_ONCE


def test_a_job_that_comes_alone_costs_one_look_at_the_queue_and_no_thread(
    consumer: Consumer, redis: Redis, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    look = consumer.waiting

    def noted(at_most: int) -> Sequence[tuple[UUID, int]]:
        looks.append(at_most)
        return look(at_most)

    monkeypatch.setattr(consumer, "waiting", noted)
    monkeypatch.delattr(group, "ThreadPoolExecutor")
    ids: list[UUID] = []
    for number in range(5):
        ids += send(redis, ledger, f"say {number}")
        serve(consumer)
    assert looks == [1] * 5
    assert histories(ledger, ids) == [ENDED_ONCE] * 5

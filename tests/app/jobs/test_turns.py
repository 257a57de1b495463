"""Who is next: between users by rank, time and turn, among a user's own jobs by rank and age."""

import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from uuid import UUID

import pytest
from sqlalchemy import Connection, event, func, select

from tests.support.ledger import Ledger
from tests.support.rates import CPU, H200
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import leases, slot_time
from warpfold.app.jobs.attempt import Success
from warpfold.app.jobs.dispatch_state import Depth
from warpfold.app.jobs.turns import live_slots
from warpfold.app.quotas import quota
from warpfold.app.quotas.quota import Limits
from warpfold.app.tables import jobs as tables
from warpfold.app.tables.jobs import jobs
from warpfold.contract.placement import Placement, Work
from warpfold.worker.dispatcher import choose

USERS = tuple(f"user{number}" for number in range(10))
NOTHING: Mapping[str, float] = MappingProxyType({})


@pytest.fixture
def ledger(ledger: Ledger) -> Ledger:
    """A ledger whose database knows all the users."""
    for user in USERS:
        ledger.owner(user)
    return ledger


def serve(
    ledger: Ledger, worker: str, number: int, prefetch: int = 2, takes_s: Mapping[str, float] = NOTHING
) -> list[str]:
    """Hand over and run `number` jobs, one after the other as a slot does; whose they were, in that order. A job takes
    a second, unless `takes_s` has another time for its owner."""
    names = {owner_id: name for name, owner_id in ledger._owners.items()}
    waiting: list[UUID] = []
    served: list[str] = []
    while len(served) < number:
        waiting += [message.job_id for message in ledger.database.step(choose, Depth(prefetch))]
        job_id = waiting.pop(0)
        lease = ledger.database.run(leases.claim, job_id, 1, worker, 60.0)
        assert lease is not None
        owner = names[ledger.job(job_id).owner_id]
        ledger.pass_time(takes_s.get(owner, 1.0))
        assert ledger.database.run(leases.succeed, [(lease, Success({}))])
        served.append(owner)
    return served


def test_one_slot_serves_ten_users_in_turn_however_many_jobs_the_first_has(ledger: Ledger) -> None:
    cpu = ledger.worker("cpu")
    for _ in range(30):
        ledger.submit(owner=USERS[0])
    for user in USERS[1:]:
        for _ in range(3):
            ledger.submit(owner=user)
    served = serve(ledger, cpu, 30)
    assert Counter(served) == dict.fromkeys(USERS, 3)
    assert set(served[:11]) == set(USERS), "all had a turn before anybody had a third"


@pytest.mark.parametrize("priority", ["low", "normal", "high"])
def test_users_take_turns_at_every_priority(ledger: Ledger, priority: str) -> None:
    cpu = ledger.worker("cpu")
    for _ in range(12):
        ledger.submit(owner="user0", priority=priority)
    for user in ("user1", "user2"):
        for _ in range(4):
            ledger.submit(owner=user, priority=priority)
    assert Counter(serve(ledger, cpu, 12)) == {"user0": 4, "user1": 4, "user2": 4}


def test_turns_and_time_outlast_the_dispatcher_that_gave_them(ledger: Ledger, settings: Settings) -> None:
    cpu = ledger.worker("cpu")
    for user in USERS[:3]:
        for _ in range(8):
            ledger.submit(owner=user)
    long = {"user0": 6.0}
    assert serve(ledger, cpu, 2, prefetch=1, takes_s=long) == ["user0", "user1"]
    first, other = ledger.database, BlockingDatabase(settings.database_url, application="the next")
    ledger.database = other
    served = Counter(serve(ledger, cpu, 12, prefetch=1, takes_s=long))
    assert served["user0"] <= 2, "turn by turn it would be four"
    assert abs(served["user1"] - served["user2"]) <= 2
    ledger.database = first
    other.close()


def test_who_has_least_in_hand_goes_before_whose_turn_it_is(ledger: Ledger) -> None:
    busy, free = ledger.worker("cpu", host="a"), ledger.worker("cpu", host="b")
    running = ledger.submit(owner="user1")
    assert ledger.database.run(leases.claim, running, 1, busy, 60.0) is not None
    for user in ("user1", "user0"):
        for _ in range(4):
            ledger.submit(owner=user)
    short = {"user0": 0.1}
    assert serve(ledger, free, 3, prefetch=1, takes_s=short) == ["user0", "user0", "user0"]


@pytest.mark.parametrize("prefetch", [1, 2])
def test_users_get_equal_times_of_a_slot_however_long_their_jobs_are(ledger: Ledger, prefetch: int) -> None:
    cpu = ledger.worker("cpu")
    for _ in range(12):
        ledger.submit(owner="user0")
    for _ in range(50):
        ledger.submit(owner="user1")
    served = serve(ledger, cpu, 44, prefetch, takes_s={"user0": 10.0})
    assert served.count("user0") in (4, 5), "turn by turn it would be all twelve"


def test_small_jobs_of_a_group_share_the_time_of_their_slot(ledger: Ledger) -> None:
    """All of them run for ten seconds between claim and end, and have held the slot for ten seconds together."""
    cpu = ledger.worker("cpu")
    for user in USERS[:3]:
        for _ in range(8):
            ledger.submit(owner=user, small=True)
    first = ledger.database.step(choose, Depth(2, 6))
    claimed = ledger.database.run(leases.claim_behind, [(each.job_id, 1) for each in first], cpu, 60.0)
    ledger.pass_time(10.0)
    ledger.database.run(leases.succeed, [(lease, Success({})) for lease in claimed.leases])
    time = ledger.database.run(slot_time.read)
    assert time.used == pytest.approx({("cpu", ledger.owner(user)): 10 / 3 for user in USERS[:3]}, abs=0.2)


def test_who_comes_later_has_saved_no_time_up(ledger: Ledger) -> None:
    cpu = ledger.worker("cpu")
    for user in ("user0", "user1"):
        for _ in range(20):
            ledger.submit(owner=user)
    serve(ledger, cpu, 20, prefetch=1)
    for _ in range(20):
        ledger.submit(owner="user2")
    assert serve(ledger, cpu, 9, prefetch=1).count("user2") in (3, 4), "with time saved up it would be all nine"


def test_the_time_for_which_nobody_waited_counts_nothing(ledger: Ledger) -> None:
    cpu = ledger.worker("cpu")
    for _ in range(5):
        ledger.submit(owner="user0")
    serve(ledger, cpu, 5, takes_s={"user0": 100.0})
    assert ledger.database.step(choose, Depth(2)) == []
    assert ledger.database.run(slot_time.read).used == {}
    for user in ("user0", "user1"):
        for _ in range(4):
            ledger.submit(owner=user)
    assert serve(ledger, cpu, 4, prefetch=1).count("user1") in (1, 2, 3), "with 500 s of the other it would be all"


def test_the_time_of_lost_attempts_counts(ledger: Ledger) -> None:
    cpu = ledger.worker("cpu")
    for user in ("user0", "user1"):
        for _ in range(4):
            ledger.submit(owner=user)
    [handed] = ledger.database.step(choose, Depth(1))
    assert ledger.database.run(leases.claim, handed.job_id, 1, cpu, 60.0)
    ledger.pass_time(100.0)
    ledger.lose(handed.job_id)
    used = ledger.database.run(slot_time.read).used
    assert used == pytest.approx({("cpu", ledger.job(handed.job_id).owner_id): 100.0}, abs=0.5)


def test_cpus_and_gpus_each_go_round_on_their_own(ledger: Ledger) -> None:
    ledger.worker("cpu")
    ledger.worker("cuda:0")
    for user in USERS[:4]:
        for needs in ("cpu", "cuda"):
            ledger.submit(owner=user, needs=needs)
    handed = ledger.database.step(choose, Depth(4))
    assert Counter(message.worker for message in handed) == {"here:cpu": 4, "here:cuda:0": 4}


def test_many_users_who_may_run_nothing_hold_up_nobody(ledger: Ledger) -> None:
    cpu = ledger.worker("cpu")
    for user in USERS[:9]:
        ledger.database.run(quota.put_limits, user, Limits(running=0))
        ledger.submit(owner=user)
    mine = ledger.submit(owner=USERS[9])
    assert [(message.job_id, message.worker) for message in ledger.database.step(choose, Depth(1))] == [(mine, cpu)]


def test_where_nobody_may_run_anything_only_those_who_may_do(ledger: Ledger) -> None:
    ledger.worker("cpu")
    ledger.database.run(quota.put_limits, USERS[9], Limits(running=2))
    for user in USERS:
        for _ in range(3):
            ledger.submit(owner=user)
    owner = ledger.owner(USERS[9])
    handed = ledger.database.step(choose, Depth(30), 0)
    assert [ledger.job(message.job_id).owner_id for message in handed] == [owner, owner]


def test_a_job_that_somebody_holds_locked_is_passed_by(ledger: Ledger, database: BlockingDatabase) -> None:
    ledger.worker("cpu")
    held, free = ledger.submit(owner="user0"), ledger.submit(owner="user0")

    def lock_and_choose(connection: Connection) -> list[UUID]:
        connection.execute(select(jobs.c.id).where(jobs.c.id == held).with_for_update())
        return [message.job_id for message in database.step(choose, Depth(1))]

    assert database.run(lock_and_choose) == [free]


def test_dispatchers_at_the_same_time_hand_each_job_over_once(ledger: Ledger, database: BlockingDatabase) -> None:
    for index in range(4):
        ledger.worker("cpu", host=f"host{index}")
    submitted = {ledger.submit(owner=user) for user in USERS for _ in range(4)}
    with ThreadPoolExecutor(4) as pool:
        handed = [
            message.job_id
            for some in pool.map(lambda _: database.step(choose, Depth(10)), range(4))
            for message in some
        ]
    assert len(handed) == len(set(handed)) == len(submitted)


def test_small_jobs_of_many_users_fill_a_slot_in_turn(ledger: Ledger) -> None:
    ledger.worker("cpu")
    for user in USERS:
        for _ in range(8):
            ledger.submit(owner=user, small=True)
    handed = ledger.database.step(choose, Depth(2, 60))
    owners = [ledger.job(message.job_id).owner_id for message in handed]
    assert Counter(owners) == {ledger.owner(user): 6 for user in USERS}
    assert set(owners[:10]) == set(owners)


def test_a_job_that_a_worker_was_lost_with_counts_as_a_long_one(ledger: Ledger) -> None:
    ledger.worker("cpu")
    for _ in range(5):
        ledger.set(ledger.submit(small=True), losses=1)
    assert len(ledger.database.step(choose, Depth(2, 100))) == 2


def test_where_nothing_waits_the_end_of_a_job_costs_the_dispatcher_one_statement(ledger: Ledger) -> None:
    ledger.worker("cpu")
    ledger.worker("cuda:0")

    def looks(connection: Connection) -> list[int]:
        numbers = []
        for _ in range(10):
            before = len(statements)
            assert choose(connection, Depth(2)) == []
            numbers.append(len(statements) - before)
        return numbers

    statements: list[str] = []
    event.listen(
        ledger.database._engine, "before_cursor_execute", lambda *event_arguments: statements.append(event_arguments[2])
    )
    numbers = ledger.database.run(looks)
    assert numbers[0] > 5, "psycopg prepares a statement that it has seen five times: before anything waits"
    assert set(numbers[1:]) == {1}
    job_id = ledger.submit()
    [handed] = ledger.database.step(choose, Depth(2))
    assert handed.job_id == job_id


@pytest.mark.parametrize(("small", "number"), [(True, 12), (False, 2)])
def test_slots_are_filled_by_four_statements_however_many_users_wait(ledger: Ledger, small: bool, number: int) -> None:
    ledger.worker("cpu")
    for user in USERS[:4]:
        for _ in range(6):
            ledger.submit(owner=user, small=small)
    statements: list[str] = []
    event.listen(
        ledger.database._engine, "before_cursor_execute", lambda *event_arguments: statements.append(event_arguments[2])
    )
    assert len(ledger.database.step(choose, Depth(2, 12))) == number
    assert len(statements) == 4


def test_time_is_stored_when_somebody_begins_and_after_a_few_jobs(ledger: Ledger) -> None:
    cpu = ledger.worker("cpu")
    for user in ("user0", "user1"):
        for _ in range(30):
            ledger.submit(owner=user)
    began = time.monotonic()

    def stored(connection: Connection) -> float:
        return float(sum(connection.execute(select(tables.slot_time.c.used_s)).scalar_one()))

    def is_time_of(jobs: int, used_s: float) -> bool:
        """A job takes a second and what this machine takes to claim and end it."""
        return jobs - 0.001 <= used_s <= jobs + time.monotonic() - began

    serve(ledger, cpu, 2, prefetch=1)
    after_first = ledger.database.run(stored)
    assert is_time_of(1, after_first), "the second user began after the first's job"
    serve(ledger, cpu, 5, prefetch=1)
    assert ledger.database.run(stored) == after_first
    serve(ledger, cpu, 10, prefetch=1)
    assert ledger.database.run(stored) > 8.0
    assert is_time_of(17, sum(ledger.database.run(slot_time.read).used.values()))


def test_a_hand_over_says_where_a_job_ends_first_and_counts_what_slots_have_in_hand(ledger: Ledger) -> None:
    cpu, gpu = ledger.worker("cpu", rates=CPU), ledger.worker("cuda:0", rates=H200)
    file = Work(lies="host", bytes=50 * 10**9)
    jobs_in_order = [ledger.submit(work=file) for _ in range(3)]
    first, second, third = jobs_in_order
    handed = {message.job_id: message.worker for message in ledger.database.step(choose, Depth(2))}
    assert handed == {first: cpu, second: gpu, third: cpu}, "the third ends after 2 s there, and after 2.6 s on the GPU"
    assert ledger.column(first, "expected_s") == pytest.approx(1.0002)
    placement = Placement.model_validate(ledger.column(third, "placement"))
    assert (placement.backend, placement.slot, placement.predicted) == ("cpu", cpu, {cpu: 2.0, gpu: 2.63})
    assert ledger.database.run(leases.claim, first, 1, cpu, 60.0)
    ledger.set(first, started_at=func.now() - func.make_interval(0, 0, 0, 0, 0, 0, 100))
    slots = {slot.worker: slot.busy_s for slot in ledger.database.step(live_slots)}
    assert slots[cpu] > 100, "what runs for longer than predicted may run as long again"
    assert slots[gpu] == pytest.approx(1.3163, rel=1e-3)


def test_a_lease_has_the_placement_and_another_hand_over_another_one(ledger: Ledger) -> None:
    cpu = ledger.worker("cpu", rates=CPU)
    job_id = ledger.submit(work=Work(lies="made", bytes=10**9))
    ledger.database.step(choose, Depth(2))
    lease = ledger.database.run(leases.claim, job_id, 1, cpu, 60.0)
    assert lease is not None
    assert lease.placement is not None
    assert Placement.model_validate_json(lease.placement).slot == cpu
    ledger.lose(job_id)
    ledger.drain(cpu)
    other = ledger.worker("cpu", host="there")
    assert [message.worker for message in ledger.database.step(choose, Depth(2))] == [other]
    assert (ledger.column(job_id, "placement"), ledger.column(job_id, "expected_s")) == (None, None)

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection, Row, func, text

from tests.support.ledger import Ledger
from tests.support.queue import fill
from tests.support.rates import CPU
from warpfold.app import census
from warpfold.app.auth.visibility import THE_SERVICE
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import leases, store
from warpfold.app.jobs.attempt import Success
from warpfold.app.jobs.dispatch_state import Depth
from warpfold.app.jobs.estimates import Estimate, QueueSeen, Waiter, see
from warpfold.contract.placement import Work
from warpfold.worker.dispatcher import choose

LONG = 3 * census.NEAR + 7
WORK = Work(lies="made", bytes=50_000_000_000)
_QUEUE = text("select id, kind, needs from jobs where status = 'queued' order by rank desc, seq")


def queue(connection: Connection) -> Sequence[Row[*tuple[Any, ...]]]:
    return connection.execute(_QUEUE).all()


def waiter(database: BlockingDatabase, job_id: UUID) -> Waiter | None:
    return database.run(store.stamp, job_id, THE_SERVICE).waiter


def estimated(seen: QueueSeen, database: BlockingDatabase, job_ids: Sequence[UUID]) -> Mapping[UUID, Estimate]:
    """What a look at the queue tells of those jobs that wait."""
    waiters = [each for each in (waiter(database, job_id) for job_id in job_ids) if each is not None]
    unread = seen.unread(waiters)
    if unread:
        database.run(seen.read, unread)
    return seen.estimates(waiters)


def places(database: BlockingDatabase, job_ids: Sequence[UUID]) -> list[int | None]:
    """The places of jobs, each by a look of its own."""
    looks = [estimated(database.run(see), database, [job_id]) for job_id in job_ids]
    return [look[job_id].place if job_id in look else None for look, job_id in zip(looks, job_ids, strict=True)]


def start(database: BlockingDatabase, job_id: UUID) -> datetime:
    at = estimated(database.run(see), database, [job_id])[job_id].start_at
    assert at is not None
    return at


def test_a_near_place_is_exact_and_a_far_one_nearly_so_where_jobs_came_evenly(
    ledger: Ledger, database: BlockingDatabase
) -> None:
    database.run(fill, ledger.owner("ada"), LONG)
    ids = [row.id for row in database.run(queue)]
    database.run(census.take, None)
    looked_at = [1, 2, 999, 1000, 1001, 1002, 1003, 1004, 2000, 2001, 2002, 2003, 2500, 3000, 3001, LONG - 1, LONG]
    some = [ids[place - 1] for place in looked_at]
    assert places(database, some[:4]) == looked_at[:4]
    assert places(database, some) == pytest.approx(looked_at, abs=2)
    together = estimated(database.run(see), database, some)
    assert [together[job_id].place for job_id in some] == pytest.approx(looked_at, rel=0.01)


def test_what_came_after_the_census_is_counted_from_its_last_mark(ledger: Ledger, database: BlockingDatabase) -> None:
    owner_id = ledger.owner("ada")
    database.run(fill, owner_id, LONG)
    database.run(census.take, None)
    last = ledger.submit(owner="ada", priority="low")
    assert places(database, [last]) == [LONG + 1]


def test_without_a_census_a_far_place_is_told_from_those_that_are_near(
    ledger: Ledger, database: BlockingDatabase
) -> None:
    database.run(fill, ledger.owner("ada"), LONG)
    ids = [row.id for row in database.run(queue)]
    assert places(database, [ids[0]]) == [1]
    [shown] = places(database, [ids[-1]])
    assert shown is not None
    assert census.NEAR / 3 < shown <= LONG


def test_a_place_in_a_long_queue_is_as_old_as_the_census(ledger: Ledger, database: BlockingDatabase) -> None:
    database.run(fill, ledger.owner("ada"), LONG)
    ids = [row.id for row in database.run(queue)]
    database.run(census.take, None)
    for job_id in ids[:5]:
        ledger.cancel(job_id)
    assert places(database, [ids[5], ids[1000]]) == pytest.approx([1, 996], abs=5)
    assert places(database, [ids[0]]) == [None]
    assert places(database, [ids[-1]]) == pytest.approx([LONG], abs=2), "as old as the census"
    database.run(census.take, None)
    assert places(database, [ids[-1]]) == pytest.approx([LONG - 5], abs=2)


def test_a_place_counts_turns_and_not_the_age_alone(ledger: Ledger, database: BlockingDatabase) -> None:
    mine = [ledger.submit(owner="ada") for _ in range(5)]
    [yours] = [ledger.submit(owner="bob")]
    assert places(database, [*mine, yours]) == [1, 3, 4, 5, 6, 2]


def test_among_many_users_a_far_place_is_told_from_the_census(ledger: Ledger, database: BlockingDatabase) -> None:
    for name in ("ada", "bob", "cleo"):
        database.run(fill, ledger.owner(name), LONG)
    database.run(census.take, None)
    last = [ledger.submit(owner=name, priority="low") for name in ("ada", "bob", "cleo")]
    assert places(database, last) == pytest.approx([3 * LONG] * 3, rel=0.15)


def test_a_job_that_was_handed_over_has_its_place_at_its_slot(ledger: Ledger, database: BlockingDatabase) -> None:
    ledger.worker("cpu")
    first, second, third = (ledger.submit() for _ in range(3))
    assert [message.job_id for message in database.run(choose, Depth(2))] == [first, second]
    assert places(database, [first, second, third]) == [1, 2, 3]


def test_a_long_job_that_runs_delays_the_start_of_what_waits(ledger: Ledger, database: BlockingDatabase) -> None:
    """Also where short jobs of the same kind ended in numbers: the running one tells its own progress."""
    worker = ledger.worker("cpu")
    running = ledger.submit()
    assert database.run(leases.claim, running, 1, worker, 60.0) is not None
    a_minute_ago = func.now() - func.make_interval(0, 0, 0, 0, 0, 0, 60)
    ledger.set(running, started_at=a_minute_ago, progress_done=1, progress_total=4)
    waiting = ledger.submit()
    wait = start(database, waiting) - ledger.job(waiting).created_at
    assert 175 < wait.total_seconds() < 190


def test_what_the_rates_of_a_slot_predict_is_corrected_by_what_jobs_took(
    ledger: Ledger, database: BlockingDatabase
) -> None:
    """Ten seconds are predicted, and twenty were taken."""
    worker = ledger.worker("cpu", rates=CPU)
    ended = ledger.submit(work=WORK)
    lease = database.run(leases.claim, ended, 1, worker, 60.0)
    assert lease is not None
    ledger.set(ended, expected_s=10.0, started_at=func.now() - func.make_interval(0, 0, 0, 0, 0, 0, 20))
    assert database.run(leases.succeed, [(lease, Success({}))])
    first, second = (start(database, ledger.submit(work=WORK)) for _ in range(2))
    assert (second - first).total_seconds() == pytest.approx(20, abs=1)


def test_of_each_owner_the_next_and_the_last_start_are_told(ledger: Ledger, database: BlockingDatabase) -> None:
    worker = ledger.worker("cpu", rates=CPU)
    running = ledger.submit(work=WORK)
    assert database.run(leases.claim, running, 1, worker, 60.0) is not None
    ledger.set(running, expected_s=10.0)
    for owner in ("bob", "ada", "bob", "ada", "ada"):
        ledger.submit(owner=owner, work=WORK)
    turns = database.run(see).owners_turns()
    starts = {owner: (turn.next_at, turn.last_at) for owner, turn in turns.items()}
    known = [at for owner in ("bob", "ada") for at in starts[ledger.owner(owner)] if at is not None]
    assert [round((at - known[0]).total_seconds()) for at in known] == [0, 20, 10, 40]


def test_jobs_that_are_newer_than_a_look_stand_behind_those_that_it_saw(
    ledger: Ledger, database: BlockingDatabase
) -> None:
    """In the order in which they came, each behind the earlier ones of its owner; a new user has their turn early."""
    seen_jobs = [ledger.submit(owner="ada") for _ in range(3)]
    seen = database.run(see)
    newer = [ledger.submit(owner="ada") for _ in range(3)]
    [other] = [ledger.submit(owner="bob")]
    one_by_one = [estimated(seen, database, [job_id])[job_id].place for job_id in (*newer, other, *seen_jobs, *newer)]
    assert one_by_one == [4, 5, 6, 2, 1, 2, 3, 4, 5, 6]
    together = estimated(database.run(see), database, [*seen_jobs, *newer, other])
    assert [together[job_id].place for job_id in (*seen_jobs, other)] == [1, 3, 4, 2]


def test_a_job_that_is_newer_than_a_look_at_a_long_queue_stands_behind_it(
    ledger: Ledger, database: BlockingDatabase
) -> None:
    database.run(fill, ledger.owner("ada"), LONG)
    database.run(census.take, None)
    seen = database.run(see)
    newer = [ledger.submit(owner="ada", priority="low") for _ in range(2)]
    assert [estimated(seen, database, [job_id])[job_id].place for job_id in newer] == [LONG + 1, LONG + 2]

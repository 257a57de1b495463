from uuid import UUID, uuid4

import pytest
from sqlalchemy import Connection, select

from tests.support.ledger import Ledger
from warpfold.app.db import BlockingDatabase
from warpfold.app.http.errors import TooMany
from warpfold.app.jobs import accept, leases
from warpfold.app.jobs.accept import Key
from warpfold.app.jobs.store import Job
from warpfold.app.quotas import quota, room
from warpfold.app.quotas.quota import Limits
from warpfold.app.tables.queue import queue_room

FIVE = Limits(queued=5, high_per_hour=5)


def new_job(ledger: Ledger, **tags: str) -> Job:
    return Job.new(
        id=uuid4(),
        owner="ada",
        owner_id=ledger.owner("ada"),
        kind="reduce",
        priority=1,
        needs="any",
        timeout_s=60.0,
        spec="{}",
        tags=tags,
    )


def submit(ledger: Ledger, key: Key | None = None) -> UUID:
    return ledger.database.run(accept.submit, new_job(ledger), key, FIVE).id


def left(connection: Connection) -> int:
    return int(connection.execute(select(queue_room.c.room)).scalar_one())


def test_jobs_are_counted_when_the_known_room_is_used_up(ledger: Ledger, database: BlockingDatabase) -> None:
    first, second = submit(ledger), submit(ledger)
    assert database.run(left) == 3
    ledger.cancel(first)
    assert database.run(left) == 3, "what leaves the queue gives nothing back"
    for _ in range(4):
        submit(ledger)
    assert database.run(left) == 0
    with pytest.raises(TooMany):
        submit(ledger)
    ledger.cancel(second)
    submit(ledger)
    with pytest.raises(TooMany, match="5 of your jobs"):
        submit(ledger)


def test_a_new_quota_holds_from_the_next_submission(ledger: Ledger, database: BlockingDatabase) -> None:
    submit(ledger)
    database.run(quota.put_limits, "ada", Limits(queued=2))
    submit(ledger)
    with pytest.raises(TooMany):
        submit(ledger)
    database.run(quota.put_limits, "ada", Limits())
    assert [submit(ledger) for _ in range(3)]
    with pytest.raises(TooMany):
        submit(ledger)


def test_a_job_that_a_slot_gives_back_is_one_more_than_the_quota(ledger: Ledger) -> None:
    ledger.worker("cpu")
    given_back = submit(ledger)
    lease = ledger.database.run(leases.claim, given_back, 1, "here:cpu", 60.0)
    assert lease is not None
    for _ in range(5):
        submit(ledger)
    ledger.database.run(leases.put_back, [(lease, ())], "stopped")
    with pytest.raises(TooMany, match="6 of your jobs"):
        submit(ledger)


def test_a_repetition_takes_no_room_that_a_count_does_not_find(ledger: Ledger, database: BlockingDatabase) -> None:
    key = Key("key", b"0" * 32)
    first = submit(ledger, key)
    assert submit(ledger, key) == first
    assert ledger.count() == 1
    other = database.run(room.count, ledger.owner("ada"), 5)
    assert (other.used, other.room) == (1, 4)
    assert not database.run(room.take, ledger.owner("ada"), 5, 5)
    assert database.run(room.take, ledger.owner("ada"), 4, 5)


@pytest.mark.parametrize("key", [None, Key("key", b"0" * 32)])
def test_a_submission_whose_answer_was_lost_is_found_again(
    ledger: Ledger, database: BlockingDatabase, key: Key | None
) -> None:
    """The connection was cut after the one statement was done: it is sent again, and does nothing."""
    database.run(accept.submit, new_job(ledger), None, FIVE)  # counts the room
    new = new_job(ledger)
    assert accept.at_once(new)
    stored = database.step(accept.submit_at_once, new, key, FIVE)
    assert stored is not None
    assert database.step(accept.submit_at_once, new, key, FIVE) is None
    again = database.run(accept.submit, new, key, FIVE)
    assert again.id == stored.id == new.id
    assert ledger.count() == 2


def test_what_needs_more_than_one_statement_is_not_stored_at_once(ledger: Ledger) -> None:
    assert accept.at_once(new_job(ledger))
    assert not accept.at_once(new_job(ledger, course="p05"))
    assert not accept.at_once(new_job(ledger), (), {"an id": "source.id"}, None)

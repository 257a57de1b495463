from sqlalchemy import Connection, select, text

from tests.support.ledger import Ledger
from tests.support.queue import fill
from warpfold.app import census
from warpfold.app.census import NEAR, PRIORITY, REASON, STATUS
from warpfold.app.db import BlockingDatabase
from warpfold.app.metrics import monitoring
from warpfold.app.quotas import quota
from warpfold.app.quotas.quota import Limits
from warpfold.app.tables.queue import census_counts, queue_lanes

_END = text("""
    update jobs set status = 'succeeded', finished_at = now() where id in (
        select id from jobs where status = 'queued' order by seq limit :number)
""")
_NONE = Limits(queued=10**6, high_per_hour=5)


def end(connection: Connection, number: int) -> None:
    """End the oldest of the jobs that wait."""
    connection.execute(_END, {"number": number})


def rows(connection: Connection) -> int:
    """How many rows the latest census left."""
    return len(connection.execute(select(census_counts)).all()) + len(connection.execute(select(queue_lanes)).all())


def queued(database: BlockingDatabase, user: str) -> int:
    standing = database.run(quota.quota_of, user, _NONE)
    assert standing is not None
    return standing.usage.queued


def test_few_jobs_are_counted_when_somebody_asks(ledger: Ledger, database: BlockingDatabase) -> None:
    database.run(fill, ledger.owner("ada"), NEAR)
    database.run(census.take, None)
    assert database.run(rows) == 0
    database.run(end, 10)
    seen = database.run(monitoring.queue_state)
    assert sum(seen.depth.values()) == NEAR - 10
    assert {(count.status, count.count) for count in seen.jobs} == {("queued", NEAR - 10), ("succeeded", 10)}
    assert queued(database, "ada") == NEAR - 10


def test_more_are_those_of_the_latest_census(ledger: Ledger, database: BlockingDatabase) -> None:
    database.run(fill, ledger.owner("ada"), 3 * NEAR)
    ledger.submit(owner="bob")
    assert sum(database.run(monitoring.queue_state).depth.values()) == NEAR + 1, "at least so many"
    database.run(census.take, None)
    seen = database.run(monitoring.queue_state)
    assert seen.depth == {"low": NEAR, "normal": NEAR + 1, "high": NEAR}
    assert [(count.status, count.count) for count in seen.jobs] == [("queued", 3 * NEAR + 1)]
    assert seen.oldest_s >= 0
    assert [(share.owner, share.queued) for share in database.run(monitoring.shares)] == [("ada", 3 * NEAR), ("bob", 1)]
    assert (queued(database, "ada"), queued(database, "bob")) == (3 * NEAR, 1)
    usage = {each.user: each.usage.queued for each in database.run(quota.all_quotas, _NONE)}
    assert usage == {"ada": 3 * NEAR, "bob": 1}
    ledger.submit(owner="bob")
    assert queued(database, "bob") == 2, "a user who has few is counted anew"


def test_jobs_on_record_are_counted_again_only_if_one_ended(ledger: Ledger, database: BlockingDatabase) -> None:
    database.run(fill, ledger.owner("ada"), 2 * NEAR + 5)
    database.run(end, 2 * NEAR)
    recorded = database.run(census.take, None)
    counts = {STATUS: 0, PRIORITY: 0, REASON: 0} | {key[0]: n for key, n in database.run(census.latest).items()}
    assert counts == {STATUS: 2 * NEAR, PRIORITY: 0, REASON: 0}
    seen = database.run(monitoring.queue_state)
    assert {(count.status, count.count) for count in seen.jobs} == {("queued", 5), ("succeeded", 2 * NEAR)}
    assert database.run(census.take, recorded) == recorded
    database.run(end, 1)
    again = database.run(census.take, recorded)
    assert again != recorded
    assert database.run(census.latest)[STATUS, "succeeded"] == 2 * NEAR + 1


def test_a_queue_that_became_short_leaves_no_census(ledger: Ledger, database: BlockingDatabase) -> None:
    database.run(fill, ledger.owner("ada"), NEAR + 1)
    database.run(census.take, None)
    assert database.run(rows) > 0
    ledger.database.run(lambda connection: connection.execute(text("delete from jobs")))
    database.run(census.take, None)
    assert database.run(rows) == 0


def test_of_two_dispatchers_one_takes_the_census(ledger: Ledger, database: BlockingDatabase) -> None:
    database.run(fill, ledger.owner("ada"), NEAR + 1)
    with database._engine.begin() as first, database._engine.begin() as second:
        census.take(first, None)
        census.take(second, None)
        assert (rows(first) > 0, rows(second)) == (True, 0)
    assert database.run(rows) > 0

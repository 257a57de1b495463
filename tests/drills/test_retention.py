"""200,000 jobs are past their time: while they are removed, a hand-over takes hardly longer than otherwise."""

import statistics
import time
from collections.abc import Iterator

import pytest
from redis import Redis
from sqlalchemy import Connection, text

from tests.support.figures import Figures
from tests.support.ledger import Ledger
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import leases
from warpfold.app.jobs.attempt import Success
from warpfold.worker.dispatcher import Dispatcher
from warpfold.worker.housekeeping import Housekeeping
from warpfold.worker.queue import AttemptQueues
from warpfold.worker.stop import Stop

OLD = 200_000
HAND_OVERS = 60
_FILL = text(
    "insert into jobs (id, owner_id, kind, priority, needs, timeout_s, spec, status, finished_at)"
    " select gen_random_uuid(), :owner, 'reduce', 1, 'any', 60, '{}', 'succeeded', now() - interval '100 days'"
    " from generate_series(1, :number)"
)


def fill(connection: Connection, owner: int) -> None:
    connection.execute(_FILL, {"owner": owner, "number": OLD})


def analyze(connection: Connection) -> None:
    connection.execute(text("analyze jobs"))  # autovacuum, which does it in a service, is off in tests


def old_jobs(connection: Connection) -> int:
    query = text("select count(*) from jobs where finished_at < now() - interval '90 days'")
    return int(connection.execute(query).scalar_one())


@pytest.fixture
def housekeeping(settings: Settings) -> Iterator[Housekeeping]:
    own = BlockingDatabase(settings.database_url, application="housekeeping", pool_size=1)
    housekeeping = Housekeeping(settings, own)
    yield housekeeping
    housekeeping.stop()
    own.close()


@pytest.fixture
def dispatcher(settings: Settings, database: BlockingDatabase, redis: Redis, stop: Stop) -> Dispatcher:
    return Dispatcher(settings, database, AttemptQueues(redis), stop)


def test_hand_overs_take_hardly_longer_while_200000_old_jobs_are_removed(
    ledger: Ledger, dispatcher: Dispatcher, housekeeping: Housekeeping, figures: Figures
) -> None:
    database = ledger.database
    database.run(fill, ledger.owner("ada"))
    database.run(analyze)
    cpu = ledger.worker("cpu", lease_s=600.0)

    def hand_over() -> float:
        """Seconds from the acceptance of a job until it is in its slot's queue; the job then ends."""
        started = time.monotonic()
        job_id = ledger.submit()
        dispatcher.deliver()
        seconds = time.monotonic() - started
        lease = database.run(leases.claim, job_id, 1, cpu, 600.0)
        assert lease is not None, "it was not handed over"
        assert database.run(leases.succeed, [(lease, Success({}))])
        return seconds

    hand_over()  # the first one also prepares the statements
    quiet = [hand_over() for _ in range(HAND_OVERS)]
    assert database.run(old_jobs) == OLD
    housekeeping.start()
    busy = [hand_over() for _ in range(HAND_OVERS)]
    while database.run(old_jobs) == OLD:  # a busy machine had no turn for the first portion yet
        busy.append(hand_over())
    left = database.run(old_jobs)
    assert 0 < left < OLD, "the hand-overs went beside the removal, not after it"
    figures.note("100 hand-overs, quiet", 100 * statistics.median(quiet))
    figures.note("100 hand-overs while old jobs are removed", 100 * statistics.median(busy))
    assert statistics.median(busy) < 5 * statistics.median(quiet)

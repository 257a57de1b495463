"""What tests of dispatcher and workers share: a database with a user, jobs, and workers that report themselves."""

from collections.abc import Iterator

import pytest
from redis import Redis

from tests.support.clock import HandClock
from tests.support.ledger import Ledger
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.worker.queue import connect
from warpfold.worker.stop import Stop


@pytest.fixture
def database(settings: Settings) -> Iterator[BlockingDatabase]:
    database = BlockingDatabase(settings.database_url, application="test", pool_size=4)
    yield database
    database.close()


@pytest.fixture
def ledger(database: BlockingDatabase) -> Ledger:
    return Ledger(database)


@pytest.fixture
def redis(settings: Settings) -> Iterator[Redis]:
    with connect(settings.redis_url, answer_within_s=5.0) as client:
        yield client


@pytest.fixture
def stop() -> Iterator[Stop]:
    stop = Stop()
    yield stop
    stop.close()


@pytest.fixture
def clock() -> HandClock:
    """A clock that only the test moves."""
    return HandClock()

"""Fixtures of the dispatcher's tests."""

import pytest
from redis import Redis

from tests.support.clock import HandClock
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.worker.dispatcher import Dispatcher
from warpfold.worker.queue import AttemptQueues
from warpfold.worker.stop import Stop


@pytest.fixture
def dispatcher(
    settings: Settings, database: BlockingDatabase, redis: Redis, stop: Stop, clock: HandClock
) -> Dispatcher:
    """A dispatcher whose clock the test moves."""
    return Dispatcher(settings, database, AttemptQueues(redis), stop, clock=clock)

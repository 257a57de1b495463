"""Fixtures of the tests of the dispatcher and of workers."""

import threading
from collections.abc import Callable, Iterator

import pytest
from redis import Redis

from tests.support.clock import HandClock
from tests.support.waiting import Meanwhile
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


@pytest.fixture
def meanwhile() -> Iterator[Meanwhile]:
    """Does something beside what runs, and waits for it at the end."""
    threads: list[threading.Thread] = []

    def start(what: Callable[[], object]) -> None:
        threads.append(threading.Thread(target=what))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join()

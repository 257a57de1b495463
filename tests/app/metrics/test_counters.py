"""Each end counts once, however many count at the same time and wherever the counting breaks off."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Connection

from tests.support.api import Api
from warpfold.app.db import BlockingDatabase
from warpfold.app.metrics.counters import BOUNDS_S, Name, bound_of, count_ended, read


def ended(database: BlockingDatabase) -> float:
    return sum(counter.value for counter in database.run(read) if counter.name == Name.JOBS_ENDED)


def _break_off(connection: Connection) -> None:
    count_ended(connection, 1000)
    raise InterruptedError


def test_two_that_count_at_once_count_each_end_once(own_api: Api) -> None:
    for _ in range(40):
        own_api.finish(own_api.claim(own_api.submit()))
    with ThreadPoolExecutor(4) as pool:
        counted = list(pool.map(lambda _: own_api.database.run(count_ended, 7), range(8)))
    assert sum(counted) == 40
    assert ended(own_api.database) == 40


def test_counting_that_breaks_off_counts_nothing_and_loses_nothing(own_api: Api) -> None:
    own_api.finish(own_api.claim(own_api.submit()))
    with pytest.raises(InterruptedError):
        own_api.database.run(_break_off)
    assert ended(own_api.database) == 0
    assert own_api.database.run(count_ended, 1000) == 1
    assert ended(own_api.database) == 1


def test_a_bound_belongs_to_its_class() -> None:
    assert bound_of(0.0) == "0.01"
    assert [bound_of(bound) for bound in BOUNDS_S] == [str(bound) for bound in BOUNDS_S]
    assert bound_of(3601.0) == "+Inf"

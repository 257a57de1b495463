"""Units of work on the driver alone do what they do by SQLAlchemy."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy import ARRAY, JSON, Boolean, Connection, DateTime, Uuid, bindparam, literal, select
from sqlalchemy.exc import DataError, OperationalError
from sqlalchemy.util import await_only

from tests.support.waiting import until
from warpfold.app.db import BlockingDatabase, Database, conninfo
from warpfold.app.driver import AsyncDriver, BlockingDriver

_WHOLE = select(
    bindparam("id", type_=Uuid).label("id"),
    bindparam("ids", type_=ARRAY(Uuid)).label("ids"),
    bindparam("data", type_=JSON).label("data"),
    bindparam("at", type_=DateTime(timezone=True)).label("at"),
    bindparam("yes", type_=Boolean).label("yes"),
    bindparam("id", type_=Uuid).label("again"),
)
_DIVIDE = select((literal(1) / bindparam("by", 0)).label("quotient"))
VALUES = {
    "id": uuid4(),
    "ids": [uuid4()],
    "data": {"a": [1, "ü"], "b": None},
    "at": datetime(2026, 1, 2, tzinfo=UTC),
    "yes": True,
}


def whole(connection: Connection) -> Sequence[object]:
    row = connection.execute(_WHOLE, VALUES).one_or_none()
    assert row is not None
    return [row.id, row.ids, row.data, row.at, row.yes, row.again]


def by_name(connection: Connection) -> dict[str, object]:
    row = connection.execute(_WHOLE, VALUES).mappings().one_or_none()
    assert row is not None
    return dict(row)


def first(connection: Connection) -> list[UUID]:
    return list(connection.execute(_WHOLE, VALUES).scalars())


def divide(connection: Connection, by: int) -> int:
    return int(connection.execute(_DIVIDE, {"by": by}).all()[0].quotient)


@pytest.fixture
def api(database_url: str) -> Callable[[Callable[[Database], object]], object]:
    return lambda use: asyncio.run(_with_api(database_url, use))


async def _with_api(url: str, use: Callable[[Database], object]) -> object:
    database = Database(url, application="test")
    try:
        return await use(database)  # type: ignore[misc]
    finally:
        await database.close()


Use = Callable[[Callable[[Database], object]], object]


@pytest.mark.parametrize("work", [whole, by_name, first])
def test_values_and_rows_are_those_of_sqlalchemy(
    database: BlockingDatabase, api: Use, work: Callable[[Connection], object]
) -> None:
    expected = database.step(work)
    assert [database.quickly(work) for _ in range(3)] == [expected] * 3
    assert api(lambda database: database.quickly(work)) == expected


def test_errors_are_those_of_sqlalchemy_and_the_connection_goes_on(database: BlockingDatabase, api: Use) -> None:
    with pytest.raises(DataError):
        database.quickly(divide, 0)
    assert database.quickly(divide, 1) == 1

    async def asked(database: Database) -> int:
        with pytest.raises(DataError):
            await database.quickly(divide, 0)
        return await database.quickly(divide, 1)

    assert api(asked) == 1


def test_a_dead_connection_is_replaced(database: BlockingDatabase, api: Use, database_url: str) -> None:
    def end_all() -> None:
        with psycopg.connect(conninfo(database_url), autocommit=True) as other:
            other.execute(
                "select pg_terminate_backend(pid, 10000) from pg_stat_activity "
                "where datname = current_database() and pid <> pg_backend_pid()"
            )

    async def asked(database: Database) -> int:
        await asyncio.gather(*(database.quickly(divide, 1) for _ in range(3)))
        end_all()
        return await database.quickly(divide, 1)

    assert api(asked) == 1
    assert database.quickly(divide, 1) == 1
    end_all()
    with pytest.raises(OperationalError):  # its callers are patient, and ask again
        database.quickly(divide, 1)
    assert database.quickly_and_patiently(10.0, divide, 1) == 1


def test_an_unreachable_postgres_is_an_error_of_sqlalchemy(api: Use) -> None:
    nowhere = "postgresql://127.0.0.1:1/nowhere"
    with pytest.raises(OperationalError):
        BlockingDatabase(nowhere, application="test").quickly(divide, 1)
    with pytest.raises(OperationalError):
        asyncio.run(_with_api(nowhere, lambda database: database.quickly(divide, 1)))


def test_a_request_that_is_given_up_leaves_no_connection_in_the_middle(api: Use) -> None:
    async def asked(database: Database) -> int:
        task = asyncio.create_task(database.quickly(divide, 1))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await database.quickly(divide, 1)

    assert api(asked) == 1


def test_with_one_connection_that_is_lost_the_idle_ones_are_given_up(database_url: str) -> None:
    driver = BlockingDriver(conninfo(database_url), {"application_name": "cut off"})

    def beside_another(connection: Connection) -> int:
        return divide(connection, 1) + driver.run(divide, 1)

    assert driver.run(beside_another) == 2, "two connections are idle now"
    with psycopg.connect(conninfo(database_url), autocommit=True) as other:
        other.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'cut off'")
    with pytest.raises(OperationalError):
        driver.run(divide, 1)
    assert driver.run(divide, 1) == 1, "by a new connection"
    driver.close()


def test_a_connection_that_is_in_use_at_the_end_is_closed_when_its_work_ends(database_url: str) -> None:
    url, options = conninfo(database_url), {"application_name": "at the end"}

    def blocking_end(connection: Connection) -> int:
        blocking.close()
        return divide(connection, 1)

    async def requests() -> int:
        driver = AsyncDriver(url, options, at_most=1)

        def end(connection: Connection) -> int:
            await_only(driver.close())
            return divide(connection, 1)

        return await driver.run(end)

    blocking = BlockingDriver(url, options)
    assert blocking.run(blocking_end) == 1 == asyncio.run(requests())
    with psycopg.connect(url, autocommit=True) as other:
        left = "select count(*) from pg_stat_activity where application_name = 'at the end'"
        until(lambda: other.execute(left).fetchone() == (0,))

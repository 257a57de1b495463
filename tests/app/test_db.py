import asyncio

import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

from tests.support.servers import Servers, restart
from warpfold.app.db import DATABASE_LOST, BlockingDatabase, Database, conninfo, database_url


def test_any_scheme_of_postgres_is_taken() -> None:
    for scheme in ("postgres", "postgresql", "postgresql+psycopg"):
        assert database_url(f"{scheme}://u:p@h/d").drivername == "postgresql+psycopg"
        assert conninfo_to_dict(conninfo(f"{scheme}://u:p@h/d")) == {
            "user": "u",
            "password": "p",
            "host": "h",
            "dbname": "d",
        }


def test_a_socket_in_a_folder_with_a_space_is_found_by_libpq_too() -> None:
    said = conninfo("postgresql://us%20er:p%2Bw%20d@/x?host=/home/ada/my%20clone/postgres&sslmode=disable")
    assert conninfo_to_dict(said) == {
        **{"user": "us er", "password": "p+w d", "dbname": "x"},
        **{"host": "/home/ada/my clone/postgres", "sslmode": "disable"},
    }


def write(connection: Connection, fail: bool = False) -> None:
    connection.execute(text("create table if not exists noted (what int)"))
    connection.execute(text("insert into noted values (1)"))
    if fail:
        raise RuntimeError("half way")


def written(connection: Connection) -> int:
    return int(connection.execute(text("select count(*) from noted")).scalar_one())


def test_a_unit_of_work_is_kept_whole_or_not_at_all(database_url: str) -> None:
    async def run() -> int:
        database = Database(database_url, application="test")
        try:
            await database.run(write)
            with pytest.raises(RuntimeError, match="half way"):
                await database.run(write, fail=True)
            return await database.read(written)
        finally:
            await database.close()

    assert asyncio.run(run()) == 1


def test_a_unit_that_meets_a_dead_connection_is_run_again_once(servers: Servers) -> None:
    runs = 0

    def counted(connection: Connection) -> None:
        nonlocal runs
        runs += 1
        connection.execute(text("select 1"))

    async def run() -> None:
        database = Database(servers.database_url, application="test")
        try:
            for work in (database.run, database.read, database.search):
                await work(counted)
                await asyncio.to_thread(restart, servers.postgres)
                await work(counted)
        finally:
            await database.close()

    asyncio.run(run())
    assert runs == 9


def test_without_a_server_it_says_so_soon(servers: Servers) -> None:
    servers.postgres.stop()

    async def run() -> None:
        database = Database(servers.database_url, application="test")
        for work in (database.run, database.read, database.search):
            with pytest.raises(DATABASE_LOST):
                await work(written)

    asyncio.run(run())


def test_a_patient_unit_outlasts_a_restart(servers: Servers) -> None:
    import threading

    database = BlockingDatabase(servers.database_url, application="test")
    database.run(write)
    servers.postgres.stop()
    timer = threading.Timer(0.5, servers.postgres.start)
    timer.start()
    assert database.run_patiently(60, written) == 1
    timer.join()
    servers.postgres.stop()
    with pytest.raises(OperationalError):
        database.run_patiently(0.2, written)
    database.close()


def test_a_connection_that_the_network_cuts_off_is_noticed_within_half_a_minute(database_url: str) -> None:
    def told(connection: Connection) -> dict[str, str]:
        parameters: dict[str, str] = connection.connection.driver_connection.info.get_parameters()  # type: ignore[union-attr]
        return parameters

    async def of_the_api() -> dict[str, str]:
        database = Database(database_url, application="test")
        try:
            return await database.run(told)
        finally:
            await database.close()

    blocking = BlockingDatabase(database_url, application="test")
    for parameters in (asyncio.run(of_the_api()), blocking.run(told)):
        silent_s = int(parameters["keepalives_idle"]) + (
            int(parameters["keepalives_interval"]) * int(parameters["keepalives_count"])
        )
        assert max(silent_s, int(parameters["tcp_user_timeout"]) / 1000) <= 30
    blocking.close()


def test_times_are_utc(database_url: str) -> None:
    database = BlockingDatabase(database_url, application="test")
    zone = database.run(lambda connection: connection.execute(text("show timezone")).scalar_one())
    database.close()
    assert zone == "UTC"


def test_searches_are_planned_for_what_they_look_for_and_the_rest_once(database_url: str) -> None:
    def mode(connection: Connection) -> str:
        return str(connection.execute(text("show plan_cache_mode")).scalar_one())

    async def run() -> list[str]:
        database = Database(database_url, application="test")
        try:
            return [await database.run(mode), await database.read(mode), await database.search(mode)]
        finally:
            await database.close()

    assert asyncio.run(run()) == ["force_generic_plan", "force_generic_plan", "force_custom_plan"]

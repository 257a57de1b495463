import asyncio
import gc
import time
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from tests.support.servers import Servers, restart
from warpfold.app.db import ACCESS, ENDED, JOB
from warpfold.app.notifications import Notifications


@asynccontextmanager
async def listening(url: str, heard: asyncio.Queue[str]) -> AsyncIterator[Notifications]:
    notifications = Notifications(url, on_access=lambda: heard.put_nowait("access"))
    notifications.start()
    await heard.get()  # it tells once when it has begun to listen
    try:
        yield notifications
    finally:
        await notifications.close()


def notify(url: str, channel: str, payload: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("select pg_notify(%s, %s)", (channel, payload))


async def time_to_news(notifications: Notifications, url: str, job_id: str, payload: str) -> float:
    with notifications.watch(job_id) as watch:
        notify(url, JOB, payload)
        started = time.monotonic()
        await watch.wait(30)
        return time.monotonic() - started


def test_a_listener_that_is_cancelled_twice_leaves_no_connection_open(database_url: str) -> None:
    async def run() -> None:
        heard: asyncio.Queue[str] = asyncio.Queue()
        notifications = Notifications(database_url, on_access=lambda: heard.put_nowait("access"))
        notifications.start()
        await heard.get()
        await asyncio.sleep(0.05)  # it waits for news
        [listener] = [task for task in asyncio.all_tasks() if task.get_name() == "notifications"]
        for _ in range(2):
            listener.cancel()
            await asyncio.sleep(0)  # the listener goes on with its end, up to where it waits
        await asyncio.wait({listener})

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ResourceWarning)
        asyncio.run(run())
        gc.collect()
    assert seen == []


@pytest.mark.usefixtures("without_timer")
def test_news_of_a_job_wakes_who_waits_for_it(database_url: str) -> None:
    async def run() -> float:
        async with listening(database_url, asyncio.Queue()) as notifications:
            return await time_to_news(notifications, database_url, "a", "a")

    assert asyncio.run(run()) < 20


def test_news_of_another_job_does_not_and_the_wait_is_a_second_at_most(database_url: str) -> None:
    async def run() -> float:
        async with listening(database_url, asyncio.Queue()) as notifications:
            return await time_to_news(notifications, database_url, "a", "b")

    assert 0.9 < asyncio.run(run()) < 20


@pytest.mark.usefixtures("without_timer")
def test_news_between_two_waits_is_not_lost(database_url: str) -> None:
    async def run() -> float:
        async with listening(database_url, asyncio.Queue()) as notifications:
            with notifications.watch("a") as watch:
                notify(database_url, JOB, "a")
                while not watch._changed.is_set():
                    await asyncio.sleep(0.01)
                started = time.monotonic()
                await watch.wait(30)
                return time.monotonic() - started

    assert asyncio.run(run()) < 20


@pytest.mark.usefixtures("without_timer")
def test_who_waits_for_the_end_of_a_job_hears_of_nothing_before(database_url: str) -> None:
    async def run() -> None:
        async with listening(database_url, asyncio.Queue()) as notifications:
            with notifications.watch("a", for_end=True) as for_end, notifications.watch("a") as for_all:
                notify(database_url, JOB, "a")
                await for_all.wait(30)
                assert not for_end._changed.is_set()
                notify(database_url, ENDED, "b,a")
                await for_end.wait(30)
                await for_all.wait(30)

    asyncio.run(run())


def test_nothing_is_kept_of_who_waited(database_url: str) -> None:
    async def run() -> None:
        async with listening(database_url, asyncio.Queue()) as notifications:
            with notifications.watch("a"), notifications.watch("a"):
                pass
            assert notifications._watches == {}

    asyncio.run(run())


def test_a_change_of_access_is_told(database_url: str) -> None:
    async def run() -> str:
        heard: asyncio.Queue[str] = asyncio.Queue()
        async with listening(database_url, heard):
            notify(database_url, ACCESS, "")
            return await asyncio.wait_for(heard.get(), 60)

    assert asyncio.run(run()) == "access"


@pytest.mark.usefixtures("without_timer")
def test_it_listens_again_after_postgres_was_restarted_and_tells_that_it_may_have_missed_something(
    servers: Servers,
) -> None:
    async def run() -> None:
        heard: asyncio.Queue[str] = asyncio.Queue()
        async with listening(servers.database_url, heard) as notifications:
            for _ in range(2):
                with notifications.watch("a") as watch:
                    await asyncio.to_thread(restart, servers.postgres)
                    started = time.monotonic()
                    await watch.wait(30)  # woken by the interruption
                    assert time.monotonic() - started < 20
                # Who waits is told when it listens again, and of news from then on.
                looks = [await time_to_news(notifications, servers.database_url, "a", "a") for _ in range(3)]
                assert max(looks) < 20

    asyncio.run(run())

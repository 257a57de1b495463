import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from redis import Redis
from sqlalchemy import Connection, text

from tests.support.ledger import Ledger
from tests.support.servers import Servers
from tests.support.waiting import until
from warpfold.app.config import Settings
from warpfold.app.datasets.store import Store
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import leases, transitions
from warpfold.app.jobs.attempt import Success
from warpfold.contract.folders import incoming_artefact
from warpfold.worker.dispatcher import Dispatcher
from warpfold.worker.housekeeping import Housekeeping
from warpfold.worker.queue import AttemptQueues
from warpfold.worker.stop import Stop


@pytest.fixture
def housekeeping(settings: Settings, database: BlockingDatabase) -> Housekeeping:
    return Housekeeping(settings, database)


def test_old_jobs_are_removed_and_young_ones_stay(ledger: Ledger, housekeeping: Housekeeping) -> None:
    old, young = ledger.submit(), ledger.submit()
    ledger.cancel(old)
    ledger.cancel(young)
    ledger.set(old, finished_at=text("now() - interval '91 days'"))
    housekeeping.look()
    assert ledger.history(old) == []
    assert ledger.history(young) == ["submitted", "cancelled"]


def test_a_batch_settles_when_its_jobs_have_ended_and_goes_after_them(
    ledger: Ledger, database: BlockingDatabase, housekeeping: Housekeeping
) -> None:
    jobs, batch_id = [ledger.submit() for _ in range(2)], uuid4()

    def bring(connection: Connection) -> None:
        brought = {"id": batch_id, "owner": ledger.owner("ada")}
        connection.execute(text("insert into batches (id, owner_id, count) values (:id, :owner, 2)"), brought)
        connection.execute(text("update jobs set batch_id = :id, batch_index = 0"), {"id": batch_id})

    def kept(connection: Connection) -> int | None:
        """The batch's count of cancelled jobs, -1 until it has settled; None once the batch is gone."""
        counts = text("select case when settled_at is null then -1 else cancelled end from batches where id = :id")
        count: int | None = connection.execute(counts, {"id": batch_id}).scalar_one_or_none()
        return count

    database.run(bring)
    ledger.cancel(jobs[0])
    housekeeping.look()
    assert database.run(kept) == -1
    ledger.cancel(jobs[1])
    for job_id in jobs:
        ledger.set(job_id, finished_at=text("now() - interval '91 days'"))
    Housekeeping(housekeeping._settings, database).look()
    assert (ledger.history(jobs[0]), database.run(kept)) == ([], None)


def test_what_has_waited_long_is_raised(ledger: Ledger, housekeeping: Housekeeping) -> None:
    job_id = ledger.submit(priority="low")
    ledger.age(job_id, 700)
    housekeeping.look()
    assert ledger.job(job_id).rank == 1


def test_old_idempotency_keys_are_removed_and_young_ones_stay(
    ledger: Ledger, database: BlockingDatabase, housekeeping: Housekeeping
) -> None:
    job_id, owner_id = ledger.submit(), ledger.owner("ada")

    def keep(connection: Connection) -> None:
        for key, age in (("old", "91 days"), ("young", "1 day")):
            row = {"owner": owner_id, "key": key, "job": job_id, "age": age}
            connection.execute(
                text(
                    "insert into idempotency_keys (owner_id, key, body_hash, job_id, created_at)"
                    " values (:owner, :key, '', :job, now() - cast(:age as interval))"
                ),
                row,
            )

    def keys(connection: Connection) -> list[str]:
        return list(connection.execute(text("select key from idempotency_keys")).scalars())

    database.run(keep)
    housekeeping.look()
    assert database.run(keys) == ["young"]


def test_datasets_that_nobody_holds_are_removed(housekeeping: Housekeeping, settings: Settings) -> None:
    store = Store(settings.datasets_dir())
    with store.incoming(1) as file:
        store.place(Path(file.name), "ab" * 32)
    long_ago = time.time() - 7200
    os.utime(store.path("ab" * 32), (long_ago, long_ago))
    housekeeping.look()
    assert not store.path("ab" * 32).exists()


def test_a_folder_of_datasets_that_fails_stops_nothing(housekeeping: Housekeeping, settings: Settings) -> None:
    folder = settings.datasets_dir() / "ab" / f"{'ab' * 32}.npy"
    folder.mkdir(parents=True)  # where a file should be: it cannot be removed
    long_ago = time.time() - 7200
    os.utime(folder, (long_ago, long_ago))
    housekeeping.look()
    assert folder.exists()


def fill_with_old(settings: Settings, ledger: Ledger, number: int) -> None:
    with psycopg.connect(settings.database_url, autocommit=True) as connection:
        connection.execute(
            "insert into jobs (id, owner_id, kind, priority, needs, timeout_s, spec, status, finished_at)"
            " select gen_random_uuid(), %s, 'reduce', 1, 'any', 60, '{}', 'succeeded', now() - interval '100 days'"
            " from generate_series(1, %s)",
            (ledger.owner("ada"), number),
        )


def count(settings: Settings) -> int:
    with psycopg.connect(settings.database_url) as connection:
        row: tuple[Any, ...] | None = connection.execute("select count(*) from jobs").fetchone()
    assert row is not None
    return int(row[0])


@pytest.fixture
def old(settings: Settings, ledger: Ledger) -> int:
    """So many jobs are past their time."""
    number = 20_000
    fill_with_old(settings, ledger, number)
    return number


def test_a_portion_is_small_and_the_next_follows_after_a_pause(
    settings: Settings, housekeeping: Housekeeping, old: int
) -> None:
    pause = housekeeping.look()
    removed = old - count(settings)
    assert 0 < removed <= 1000
    assert 0.0 <= pause < 2.0


def test_a_look_of_the_leader_removes_nothing(
    settings: Settings, database: BlockingDatabase, redis: Redis, stop: Stop, old: int
) -> None:
    Dispatcher(settings, database, AttemptQueues(redis), stop).look_around()
    assert count(settings) == old


def test_hand_overs_go_on_while_old_jobs_are_removed(
    settings: Settings, database: BlockingDatabase, redis: Redis, stop: Stop, old: int
) -> None:
    ledger = Ledger(database, {"ada": 1})
    dispatcher = Dispatcher(settings, database, AttemptQueues(redis), stop)
    own = BlockingDatabase(settings.database_url, application="housekeeping", pool_size=1)
    housekeeping = Housekeeping(settings, own)
    cpu = ledger.worker("cpu", lease_s=600.0)
    housekeeping.start()
    left, handed = old, 0
    while left > handed:  # those that were handed over stay
        job_id = ledger.submit()
        dispatcher.deliver()
        lease = database.run(leases.claim, job_id, 1, cpu, 600.0)
        assert lease is not None
        assert database.run(leases.succeed, [(lease, Success({}))])
        handed += 1
        left = count(settings)
    housekeeping.stop()
    own.close()
    assert handed >= 3, "a hundred portions, and hardly a hand-over between them"


def test_it_goes_on_after_postgres_was_away(fragile_settings: Settings, servers: Servers) -> None:
    database = BlockingDatabase(fragile_settings.database_url, application="housekeeping", pool_size=1)
    test = BlockingDatabase(fragile_settings.database_url, application="test")
    ledger = Ledger(test)
    housekeeping = Housekeeping(fragile_settings, database)
    servers.postgres.stop()
    housekeeping.start()
    time.sleep(0.2)  # or it might look only after the start
    servers.postgres.start()
    job_id = ledger.submit(priority="low")
    ledger.age(job_id, 700)
    until(lambda: ledger.column(job_id, "rank") != 0)
    housekeeping.stop()
    database.close()
    test.close()


def test_two_that_remove_at_once_remove_each_job_once(
    settings: Settings, database: BlockingDatabase, ledger: Ledger
) -> None:
    fill_with_old(settings, ledger, 1000)
    with ThreadPoolExecutor(4) as pool:
        removed = list(pool.map(lambda _: database.run(transitions.remove_old, timedelta(days=90), 100), range(16)))
    assert sum(removed) == 1000
    assert count(settings) == 0


def test_stored_results_that_nobody_holds_are_removed(
    settings: Settings, ledger: Ledger, housekeeping: Housekeeping
) -> None:
    folder = settings.artefacts_dir()
    left, running = ledger.submit(), ledger.submit()
    assert ledger.database.run(leases.claim, running, 1, "here:cpu", 60.0) is not None
    for job_id in (left, running):
        incoming_artefact(folder, job_id, 1).mkdir(parents=True)
    housekeeping.look()
    assert [path.name for path in (folder / "incoming").iterdir()] == [f"{running}-1"]

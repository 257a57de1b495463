"""With many jobs on record a page reads no more rows than it shows: asserted of the plans, not of the clock."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from sqlalchemy import Connection, event

from tests.support.api import Api, running_api
from tests.support.servers import fresh_database
from warpfold.app.auth.visibility import THE_SERVICE, Viewer
from warpfold.app.config import Settings
from warpfold.app.dashboard.pages.jobs import JobsQuery
from warpfold.app.jobs import listing
from warpfold.app.jobs.listing import Filter
from warpfold.app.metrics.monitoring import shares
from warpfold.app.results import repository as results
from warpfold.app.results.repository import MeasurementFilter
from warpfold.contract.states import Status
from warpfold.worker.embedded import EmbeddedPostgres, EmbeddedRedis

ROWS = 20_000
MOST_READ = 1000
BATCH = UUID(int=1 << 64)
BOB = Viewer(999, sees_all=False, old_jobs=True)
"""Another user than the one whose jobs these are."""


@contextmanager
def api_of_many(postgres: EmbeddedPostgres, redis: EmbeddedRedis, folder: Path) -> Iterator[Api]:
    """An api with ten thousands of finished jobs, each with a point, and with one that waits."""
    with fresh_database(postgres) as url:
        settings = Settings(database_url=url, redis_url=redis.url, data_dir=folder, data_roots=(folder,))
        with running_api(settings) as api:
            api.finish(api.claim(api.submit()))
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(
                    """
                    insert into jobs (id, owner_id, kind, priority, needs, timeout_s, spec, status, started_at,
                                      finished_at, result)
                    select gen_random_uuid(), owner_id, kind, priority, needs, timeout_s, spec, status, started_at,
                           finished_at, result from jobs, generate_series(1, %s)
                    """,
                    (ROWS,),
                )
                connection.execute(
                    """
                    insert into measurements (job_id, kind, op, dtype, strategy, backend, device, n, bytes, samples)
                    select id, 'reduce', 'sum', 'float32', 'exact', 'cpu', 'CPU', 3, 12, 1 from jobs
                    """
                )
                connection.execute("vacuum analyze jobs")
                connection.execute("vacuum analyze measurements")
            api.submit()
            yield api


@pytest.fixture(scope="module")
def many(
    shared_postgres: EmbeddedPostgres, shared_redis: EmbeddedRedis, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Api]:
    """Many jobs, which the tests of this file only read."""
    with api_of_many(shared_postgres, shared_redis, tmp_path_factory.mktemp("many")) as api:
        yield api


@dataclass(frozen=True)
class Private:
    """An api where all jobs are Ann's alone but for one that everyone sees, and one and a batch of three that Bob
    sees."""

    api: Api
    everyones: str
    bobs: str
    batch: tuple[str, ...]


@pytest.fixture(scope="module")
def private(
    shared_postgres: EmbeddedPostgres, shared_redis: EmbeddedRedis, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Private]:
    """Many private jobs, which the tests of this file only read."""
    with api_of_many(shared_postgres, shared_redis, tmp_path_factory.mktemp("private")) as api:
        everyones, bobs, batch = _some_are_shared(api)
        yield Private(api, everyones, bobs, tuple(batch))


def rows_read(api: Api, work: Any, *args: Any) -> int:
    """The rows that the statements of `work` read from tables and indexes."""
    statements: list[tuple[str, Any]] = []

    def note(connection: Connection, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if not statement.startswith("EXPLAIN"):
            statements.append((statement, parameters))

    def explained(connection: Connection) -> int:
        event.listen(connection, "before_cursor_execute", note)
        work(connection, *args)
        event.remove(connection, "before_cursor_execute", note)
        plans = [
            connection.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", parameters).scalar_one()
            for statement, parameters in statements
        ]
        assert plans
        return sum(
            _scanned(plan[0]["Plan"] if isinstance(plan, list) else json.loads(plan)[0]["Plan"]) for plan in plans
        )

    return api.database.run(explained)


def _scanned(plan: Any) -> int:
    own = 0
    if "Scan" in plan["Node Type"]:
        read = (
            plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Index Recheck", 0)
        )
        own = round(read * plan["Actual Loops"])
    return own + sum(_scanned(inner) for inner in plan.get("Plans", ()))


@pytest.mark.parametrize(
    "chosen",
    [
        JobsQuery().filter(THE_SERVICE),
        JobsQuery().filter(BOB),
        JobsQuery(statuses=("succeeded",), kinds=("reduce",), owner="ann", parts="on").filter(THE_SERVICE),
        Filter(statuses=(Status.RUNNING,)),
        Filter(statuses=(Status.FAILED,)),
        Filter(owners=("bob",)),
        Filter(beginning="5f0c"),
        Filter(beginning="5f0c", statuses=(Status.SUCCEEDED,)),
        Filter(tags=(("never", None),)),
    ],
)
def test_a_page_of_jobs_reads_little(many: Api, chosen: Filter) -> None:
    assert rows_read(many, listing.page, chosen, 51) <= MOST_READ


@pytest.mark.parametrize("old_jobs", [True, False])
@pytest.mark.parametrize("chosen", [Filter(), Filter(parent=False, batch=False), Filter(statuses=(Status.SUCCEEDED,))])
def test_a_page_of_what_one_may_see_among_private_jobs_reads_little(
    private: Private, chosen: Filter, old_jobs: bool
) -> None:
    chosen = replace(chosen, viewer=Viewer(_user_id(private.api, "bob"), sees_all=False, old_jobs=old_jobs))
    assert rows_read(private.api, listing.page, chosen, 51) <= MOST_READ
    listed = {str(job.id) for job in private.api.database.run(listing.page, chosen, 51).jobs}
    of_batch = set() if chosen.batch is False else set(private.batch)
    assert listed == {private.everyones, private.bobs, *of_batch}


def _user_id(api: Api, name: str) -> int:
    with psycopg.connect(api.settings.database_url) as connection:
        row = connection.execute("select id from users where name = %s", (name,)).fetchone()
    assert row is not None
    return int(row[0])


def _some_are_shared(api: Api) -> tuple[str, str, list[str]]:
    """Make all jobs private but for some. The ids of what everyone sees, of what Bob sees, and of his batch."""
    with psycopg.connect(api.settings.database_url, autocommit=True) as connection:
        connection.execute("update jobs set shared = false")
        succeeded = "select id from jobs where status = 'succeeded' order by seq offset %s limit %s"
        ids = [str(row[0]) for row in connection.execute(succeeded, (9, 5))]
        connection.execute("update jobs set shared = true where id = %s", (ids[0],))
        connection.execute("insert into job_shares values (%s, (select id from users where name = 'bob'))", (ids[1],))
        connection.execute(
            "insert into batches (id, owner_id, count) select %s, owner_id, 3 from jobs limit 1", (BATCH,)
        )
        connection.execute("update jobs set batch_id = %s where id = any(%s)", (BATCH, ids[2:]))
        connection.execute("insert into batch_shares values (%s, (select id from users where name = 'bob'))", (BATCH,))
        connection.execute("vacuum analyze jobs")
    return ids[0], ids[1], ids[2:]


def test_who_waits_is_read_from_the_few_that_wait(many: Api) -> None:
    assert rows_read(many, shares) <= MOST_READ


@pytest.mark.parametrize("viewer", [THE_SERVICE, BOB])
@pytest.mark.parametrize(
    "chosen", [MeasurementFilter(), MeasurementFilter(op="sum", dtype="float32"), MeasurementFilter(op="prod")]
)
def test_a_page_of_results_reads_little(many: Api, chosen: MeasurementFilter, viewer: Viewer) -> None:
    assert rows_read(many, results.page, chosen, 101, None, viewer) <= MOST_READ

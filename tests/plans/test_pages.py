"""With many jobs on record a page reads no more rows than it shows: asserted of the plans, not of the clock."""

import json
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, event

from tests.support.api import Api
from warpfold.app.auth.visibility import THE_SERVICE, Viewer
from warpfold.app.dashboard.pages.jobs import JobsQuery
from warpfold.app.jobs import listing
from warpfold.app.jobs.listing import Filter
from warpfold.app.metrics.monitoring import shares
from warpfold.app.results import repository as results
from warpfold.app.results.repository import MeasurementFilter
from warpfold.contract.states import Status

ROWS = 20_000
MOST_READ = 1000
BOB = Viewer(999, sees_all=False, old_jobs=True)
"""Another user than the one whose jobs these are."""


@pytest.fixture
def many(own_api: Api) -> Api:
    """Ten thousands of finished jobs, each with a point."""
    job = own_api.submit()
    own_api.finish(own_api.claim(job))
    with psycopg.connect(own_api.settings.database_url, autocommit=True) as connection:
        connection.execute(
            """
            insert into jobs (id, owner_id, kind, priority, needs, timeout_s, spec, status, started_at, finished_at,
                              result)
            select gen_random_uuid(), owner_id, kind, priority, needs, timeout_s, spec, status, started_at, finished_at,
                   result from jobs, generate_series(1, %s)
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
    own_api.submit()
    return own_api


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


def test_who_waits_is_read_from_the_few_that_wait(many: Api) -> None:
    assert rows_read(many, shares) <= MOST_READ


@pytest.mark.parametrize("viewer", [THE_SERVICE, BOB])
@pytest.mark.parametrize(
    "chosen", [MeasurementFilter(), MeasurementFilter(op="sum", dtype="float32"), MeasurementFilter(op="prod")]
)
def test_a_page_of_results_reads_little(many: Api, chosen: MeasurementFilter, viewer: Viewer) -> None:
    assert rows_read(many, results.page, chosen, 101, None, viewer) <= MOST_READ

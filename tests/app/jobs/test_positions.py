from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, text

from tests.support.ledger import Ledger
from tests.support.queue import fill
from warpfold.app import census
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import store
from warpfold.app.jobs.positions import ahead_of, positions_of

LONG = 3 * census.NEAR + 7
_QUEUE = text("select id, kind, needs from jobs where status = 'queued' order by rank desc, seq")


def queue(connection: Connection) -> Sequence[Row[*tuple[Any, ...]]]:
    return connection.execute(_QUEUE).all()


def places(database: BlockingDatabase, job_ids: Sequence[UUID]) -> list[int | None]:
    """The places of jobs, as each of them shows its own."""
    shown = [database.run(store.stamp, job_id) for job_id in job_ids]
    return [None if stamp is None else stamp.queue_position for stamp in shown]


def test_a_place_is_exact_behind_the_marks_of_a_census_too(ledger: Ledger, database: BlockingDatabase) -> None:
    database.run(fill, ledger.owner("ada"), LONG)
    ids = [row.id for row in database.run(queue)]
    database.run(census.take, None)
    looked_at = [1, 2, 999, 1000, 1001, 1002, 1003, 1004, 2000, 2001, 2002, 2003, 2500, 3000, 3001, LONG - 1, LONG]
    some = [ids[place - 1] for place in looked_at]
    assert places(database, some) == looked_at
    positions = database.run(positions_of, some)
    assert [positions[job_id] for job_id in some] == looked_at


def test_what_came_after_the_census_is_counted_from_its_last_mark(ledger: Ledger, database: BlockingDatabase) -> None:
    owner_id = ledger.owner("ada")
    database.run(fill, owner_id, LONG)
    database.run(census.take, None)
    last = ledger.submit(owner="ada", priority="low")
    assert places(database, [last]) == [LONG + 1]


def test_without_a_census_a_far_place_is_taken_from_the_order_of_acceptance(
    ledger: Ledger, database: BlockingDatabase
) -> None:
    database.run(fill, ledger.owner("ada"), LONG)
    ids = [row.id for row in database.run(queue)]
    assert places(database, [ids[0], ids[census.NEAR - 1]]) == [1, census.NEAR]
    for place in (LONG // 3, LONG):
        [shown] = places(database, [ids[place - 1]])
        assert shown is not None
        assert census.NEAR < shown <= LONG + 2


def test_the_first_thousand_places_are_those_of_now_and_not_of_the_census(
    ledger: Ledger, database: BlockingDatabase
) -> None:
    database.run(fill, ledger.owner("ada"), LONG)
    ids = [row.id for row in database.run(queue)]
    database.run(census.take, None)
    for job_id in ids[:5]:
        ledger.cancel(job_id)
    assert places(database, [ids[5], ids[1000], ids[0]]) == [1, 996, None]
    assert places(database, [ids[-1]]) == [LONG], "as old as the census"
    database.run(census.take, None)
    assert places(database, [ids[-1]]) == [LONG - 5]


def test_what_is_ahead_is_counted_by_kind_and_need(ledger: Ledger, database: BlockingDatabase) -> None:
    database.run(fill, ledger.owner("ada"), LONG)
    rows = database.run(queue)
    database.run(census.take, None)
    for place in (1, 500, 1001, 1777, LONG):
        ahead: Counter[tuple[str, str]] = Counter()
        for each in database.run(ahead_of, rows[place - 1].id):
            ahead[each.kind, each.needs] += each.number
        assert ahead == Counter((row.kind, row.needs) for row in rows[: place - 1])

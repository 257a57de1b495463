"""Places in the queue."""

from collections.abc import Collection, Mapping
from uuid import UUID

from sqlalchemy import Connection, func, select

from warpfold.app.tables.jobs import jobs, waits

_queue = (
    select(jobs.c.id, func.row_number().over(order_by=(jobs.c.rank.desc(), jobs.c.seq)).label("position"))
    .where(waits())
    .subquery("queue")
)
_POSITIONS = select(_queue.c.id, _queue.c.position)


def positions_of(connection: Connection, ids: Collection[UUID]) -> Mapping[UUID, int]:
    """The place of each job that waits."""
    rows = connection.execute(_POSITIONS.where(_queue.c.id.in_(ids)))
    return {row.id: row.position for row in rows}

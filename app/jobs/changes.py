"""The one way in which a job's row changes: version, event and notification go together, in one statement."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import JSON, Connection, Row, Text, Update, cast, func, insert, literal, select

from app.channels import JOB, QUEUE
from app.jobs.models import events, jobs
from app.jobs.states import EventType


def change(
    connection: Connection, statement: Update, event: EventType, data: Mapping[str, object] | None = None
) -> Sequence[Row[Any]]:
    """Run an UPDATE of `jobs`, record `event` for each row it touches and notify those who wait for it.

    Returns (id, version, attempt, status) of the rows touched; none, if the statement's guards no longer held.
    """
    changed = (
        statement.values(version=jobs.c.version + 1)
        .returning(jobs.c.id, jobs.c.version, jobs.c.attempt, jobs.c.status)
        .cte("changed")
    )
    recorded = (
        insert(events)
        .from_select(
            ["job_id", "seq", "type", "data"],
            select(changed.c.id, changed.c.version, literal(event.value), literal(dict(data or {}), JSON)),
        )
        .cte("recorded")
    )
    told = func.pg_notify(JOB, cast(changed.c.id, Text))
    return connection.execute(select(changed, told).add_cte(recorded)).all()


def wake_dispatcher(connection: Connection) -> None:
    """Tell the dispatcher, when this transaction commits, that there is something to hand out or room for it."""
    connection.execute(select(func.pg_notify(QUEUE, "")))

"""The one way in which a job's row changes: version, event and notification go together, in one statement."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    Row,
    Text,
    Update,
    bindparam,
    cast,
    func,
    insert,
    literal,
    select,
    text,
)

from warpfold.app.channels import JOB, QUEUE
from warpfold.app.tables.jobs import events, jobs
from warpfold.app.tables.service import uncounted_jobs
from warpfold.contract.states import EventType

_ENDINGS = frozenset({EventType.SUCCEEDED, EventType.FAILED, EventType.CANCELLED})
_DURABLY = text("set local synchronous_commit to on")
_NOTHING: Mapping[str, object] = MappingProxyType({})


class Change:
    """An UPDATE of `jobs` that records `event` for each row it touches and notifies those who wait for the job. An end
    is left to be counted (`app.metrics.ended_jobs`).

    Built once and run often: with bound parameters (named unlike columns), SQLAlchemy finds its compiled form at once.
    `also` are columns to return beside id, version, attempt and status; `frees_slot` wakes the dispatcher too.
    """

    def __init__(
        self, statement: Update, event: EventType, *also: ColumnElement[Any], frees_slot: bool = False
    ) -> None:
        changed = (
            statement.values(version=jobs.c.version + 1)
            .returning(jobs.c.id, jobs.c.version, jobs.c.attempt, jobs.c.status, *also)
            .cte("changed")
        )
        data = bindparam("event_data", type_=JSON)
        recorded = (
            insert(events)
            .from_select(
                ["job_id", "seq", "type", "data"],
                select(changed.c.id, changed.c.version, literal(event.value), data),
            )
            .cte("recorded")
        )
        told = [func.pg_notify(JOB, cast(changed.c.id, Text))]
        if frees_slot:
            told.append(func.pg_notify(QUEUE, ""))
        self._statement = select(changed, *told).add_cte(recorded)
        if event in _ENDINGS:
            left = insert(uncounted_jobs).from_select(["job_id"], select(changed.c.id)).cte("left_to_count")
            self._statement = self._statement.add_cte(left)

    def run(
        self,
        connection: Connection,
        parameters: Mapping[str, object] = _NOTHING,
        data: Mapping[str, object] = _NOTHING,
    ) -> Sequence[Row[*tuple[Any, ...]]]:
        """Change what still matches; `data` goes into the event. Returns the rows touched, none if no guard held."""
        return connection.execute(self._statement, {**parameters, "event_data": dict(data)}).all()


def change(
    connection: Connection, statement: Update, event: EventType, data: Mapping[str, object] = _NOTHING
) -> Sequence[Row[*tuple[Any, ...]]]:
    """A change that is too rare to be built beforehand."""
    return Change(statement, event).run(connection, data=data)


def durably(connection: Connection) -> None:
    """Wait for the disk when this transaction commits, though its process need not: an end that somebody was told of
    must not be undone by a crash of Postgres."""
    connection.execute(_DURABLY)


def wake_dispatcher(connection: Connection) -> None:
    """Tell the dispatcher, when this transaction commits, that there is something to hand out or room for it."""
    connection.execute(select(func.pg_notify(QUEUE, "")))

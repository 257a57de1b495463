"""The places of waiting jobs and their starts, for the requests of an api process.

All requests share one look at the queue, which is kept for a quarter of a second (`QUEUE_KEPT_S` of
`app.http.context`): an answer costs no statement about the queue, and is at most as old as that and the time of the
look.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from sqlalchemy import ARRAY, BigInteger, Connection, any_, bindparam, select

from warpfold.app.http.context import Context
from warpfold.app.jobs.estimates import Estimate, OwnersTurn, QueueSeen, Waiter, see
from warpfold.app.jobs.store import Job
from warpfold.app.tables.users import users

T = TypeVar("T")

_NAMES = select(users.c.id, users.c.name).where(users.c.id == any_(bindparam("ids", type_=ARRAY(BigInteger))))


async def estimates(context: Context, waiters: Sequence[Waiter]) -> Mapping[UUID, Estimate]:
    """The places and the starts of jobs that wait."""
    if not waiters:
        return {}
    seen = await _seen(context)
    unread = seen.unread(waiters)
    if unread:
        await context.database.read(seen.read, unread)
    return seen.estimates(waiters)


async def placed(context: Context, rows: Sequence[Job | T]) -> list[Job | T]:
    """The rows of a list, in which each job that waits has its place in the queue."""
    waiters = [row.waiter for row in rows if isinstance(row, Job)]
    estimated = await estimates(context, [waiter for waiter in waiters if waiter is not None])
    return [
        replace(row, queue_position=estimated[row.id].place) if isinstance(row, Job) and row.id in estimated else row
        for row in rows
    ]


async def owners_turns(context: Context) -> Mapping[str, OwnersTurn]:
    """When the next and the last job of each owner who has jobs waiting is to start, by the owner's name."""
    turns = (await _seen(context)).owners_turns()
    names = await context.database.read(_names, list(turns))
    return {names[owner_id]: turn for owner_id, turn in turns.items() if owner_id in names}


async def _seen(context: Context) -> QueueSeen:
    return await context.queue.get("queue", lambda: context.database.read(see))


def _names(connection: Connection, ids: Sequence[int]) -> Mapping[int, str]:
    return {row.id: row.name for row in connection.execute(_NAMES, {"ids": ids})}

"""SQL of the removal of a user: what it would do, and doing it.

The row of the user stays, marked, until the last of the user's jobs is gone: jobs name their owner, and nobody else may
have the name while they do.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, or_, select, update

from warpfold.app.auth.sessions import close_sessions_of
from warpfold.app.batches.transitions import cancel_all_of
from warpfold.app.tables.batches import batches
from warpfold.app.tables.jobs import is_, jobs
from warpfold.app.tables.sharing import batch_shares, dataset_shares, job_shares
from warpfold.app.tables.users import IN_FORCE, datasets, quotas, tokens, users
from warpfold.contract.states import Status


@dataclass(frozen=True, slots=True)
class Removal:
    """What becomes of what a user has."""

    user: str
    tokens: int
    jobs_cancelled: int
    jobs_kept: int
    arrays_deleted: int
    bytes_deleted: int


def planned(connection: Connection, name: str) -> Removal | None:
    """What the removal of a user would do; None if there is no such user."""
    user_id = _id_of(connection, name)
    return None if user_id is None else _planned(connection, name, user_id)


def remove(connection: Connection, name: str) -> tuple[Removal, Sequence[str]] | None:
    """Remove a user; returns what was done, and the arrays that the user holds no longer. None if there is no such
    user."""
    user_id = _id_of(connection, name, lock=True)
    if user_id is None:
        return None
    connection.execute(update(users).where(users.c.id == user_id).values(removed_at=func.now()))
    done = _planned(connection, name, user_id)
    connection.execute(update(tokens).where(tokens.c.user_id == user_id, IN_FORCE).values(revoked_at=func.now()))
    close_sessions_of(connection, user_id)
    cancel_all_of(connection, user_id)
    for table in (job_shares, batch_shares, dataset_shares, quotas):
        connection.execute(delete(table).where(table.c.user_id == user_id))
    held = connection.execute(delete(datasets).where(datasets.c.owner_id == user_id).returning(datasets.c.id))
    return done, held.scalars().all()


def forget_removed(connection: Connection) -> int:
    """Delete removed users whose last job and batch are gone; returns how many."""
    left = [select(table.c.id).where(table.c.owner_id == users.c.id).exists() for table in (jobs, batches)]
    return connection.execute(delete(users).where(users.c.removed_at.is_not(None), ~or_(*left))).rowcount


def _id_of(connection: Connection, name: str, *, lock: bool = False) -> int | None:
    statement = select(users.c.id).where(users.c.name == name, users.c.removed_at.is_(None))
    return connection.execute(statement.with_for_update() if lock else statement).scalar_one_or_none()


def _planned(connection: Connection, name: str, user_id: int) -> Removal:
    active = or_(is_(Status.QUEUED), is_(Status.RUNNING))
    theirs = select(func.count(), func.count().filter(active)).where(jobs.c.owner_id == user_id)
    every, open_ = connection.execute(theirs).one()
    held = select(func.count(), func.coalesce(func.sum(datasets.c.bytes), 0)).where(datasets.c.owner_id == user_id)
    arrays, nbytes = connection.execute(held).one()
    keys = select(func.count()).where(tokens.c.user_id == user_id, IN_FORCE)
    return Removal(name, connection.execute(keys).scalar_one(), open_, every - open_, arrays, int(nbytes))

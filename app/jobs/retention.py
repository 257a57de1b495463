"""SQL that removes what is past its time, a small portion at a time."""

from datetime import timedelta

from sqlalchemy import Connection, delete, func, select

from warpfold.app.tables.jobs import idempotency_keys, jobs


def remove_old(connection: Connection, older_than: timedelta, at_most: int = 1000) -> int:
    """Delete up to `at_most` finished jobs past their time, the oldest first, with events, measurements and keys;
    returns how many. The jobs of a preset go with it, not before it."""
    aged = jobs.c.finished_at < func.now() - older_than
    old = (
        select(jobs.c.id)
        .where(aged, jobs.c.parent_id.is_(None))
        .order_by(jobs.c.finished_at)
        .limit(at_most)
        .with_for_update(skip_locked=True)
    )
    return connection.execute(delete(jobs).where(jobs.c.id.in_(old))).rowcount


def remove_old_keys(connection: Connection, older_than: timedelta, at_most: int) -> int:
    """Delete up to `at_most` idempotency keys past their time, the oldest first; returns how many."""
    key = (idempotency_keys.c.owner_id, idempotency_keys.c.key)
    old = (
        select(*key)
        .where(idempotency_keys.c.created_at < func.now() - older_than)
        .order_by(idempotency_keys.c.created_at)
        .limit(at_most)
        .subquery("old")
    )
    gone = delete(idempotency_keys).where(key[0] == old.c.owner_id, key[1] == old.c.key)
    return connection.execute(gone).rowcount

"""SQL that raises the rank of what has waited long, so that nobody waits for ever behind higher priorities."""

from datetime import timedelta

from sqlalchemy import Connection, Interval, SmallInteger, bindparam, func, literal_column, select, update

from warpfold.app.tables.jobs import jobs, still_waits, waits
from warpfold.contract.states import PRIORITIES

_LOW, _NORMAL = PRIORITIES["low"], PRIORITIES["normal"]


def raise_waiting(connection: Connection, after_s: float, at_most: int) -> int:
    """Have jobs that were accepted `after_s` seconds ago wait as normal ones at least, and after twice as long as high
    ones; up to `at_most` of each, the oldest first. Returns how many went up."""
    return _raise(connection, _NORMAL, 2 * after_s, at_most) + _raise(connection, _LOW, after_s, at_most)


def _raise(connection: Connection, rank: int, after_s: float, at_most: int) -> int:
    # The oldest of the rank, and then their age: to look for the age first would read the whole queue.
    is_due = jobs.c.created_at < func.now() - bindparam("after", timedelta(seconds=after_s), type_=Interval)
    # From one rank to the same, and in the order of both columns: only `ix_jobs_queue` has that order.
    this = literal_column(str(rank), SmallInteger)
    oldest = connection.execute(
        select(jobs.c.id, is_due)
        .where(waits(), jobs.c.rank >= this, jobs.c.rank <= this)
        .order_by(jobs.c.rank.desc(), jobs.c.seq)
        .limit(at_most)
    )
    due = [job_id for job_id, old in oldest if old]
    if not due:
        return 0
    free = select(jobs.c.id).where(jobs.c.id.in_(due), still_waits(), jobs.c.rank == rank)
    found = connection.execute(free.with_for_update(skip_locked=True)).scalars().all()
    raised = update(jobs).where(jobs.c.id.in_(found)).values(rank=rank + 1, version=jobs.c.version + 1)
    return connection.execute(raised).rowcount

"""Which slots can run a job, asked of words and in SQL: `contract.needs` says what the words mean."""

from collections.abc import Collection

from sqlalchemy import ColumnElement, and_, case, or_, select

from warpfold.app.tables.jobs import jobs, lives, workers
from warpfold.contract.needs import ANY, GANG, ORDERS


def taken_by(backend: str, live: Collection[str]) -> list[str]:
    """What the jobs need that a worker of `backend` may take, where workers of the backends `live` are there."""
    preferred = [name for name, order in ORDERS.items() if backend == next((one for one in order if one in live), None)]
    return [backend, *preferred] if backend == GANG else [backend, ANY, *preferred]


def suits(backend: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether a worker of `backend` may take the job."""
    preferred = (and_(jobs.c.needs == name, backend == _best(order)) for name, order in ORDERS.items())
    return or_(jobs.c.needs == backend, and_(jobs.c.needs == ANY, backend != GANG), *preferred)


def _best(order: tuple[str, ...]) -> ColumnElement[str]:
    """The first backend in `order` that a worker has, even one that is still starting."""
    live = workers.alias()
    rank = case({backend: place for place, backend in enumerate(order)}, value=live.c.backend)
    return (
        select(live.c.backend)
        .where(lives(live), live.c.state != "stopped", ~live.c.draining, live.c.backend.in_(order))
        .order_by(rank)
        .limit(1)
        .scalar_subquery()
    )

"""SQL of which slots can run a job: `app.jobs.needs` says what its words mean."""

from sqlalchemy import ColumnElement, and_, case, or_, select

from warpfold.app.jobs.models import jobs, lives, workers
from warpfold.app.jobs.needs import ANY, GANG, ORDERS


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

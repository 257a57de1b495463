"""SQL that closes a slot to new jobs, and opens it again: noted in the worker's row, it outlasts restarts."""

from sqlalchemy import Connection, update

from warpfold.app.jobs.transitions import wake_dispatcher
from warpfold.app.tables.jobs import in_hand, jobs, still, workers
from warpfold.contract.states import Status


def drain(connection: Connection, worker: str) -> bool:
    """Let a worker finish what it runs and take nothing more. False if no such worker has reported itself.

    What was handed to it and has not begun goes back to the queue; should its letter still arrive, it claims nothing.
    """
    if not _set(connection, worker, draining=True):
        return False
    connection.execute(
        update(jobs).where(in_hand(), jobs.c.slot == worker, still(Status.QUEUED)).values(slot=None, dispatched_at=None)
    )
    return True


def resume(connection: Connection, worker: str) -> bool:
    """Let a worker take jobs again. False if no such worker has reported itself."""
    return _set(connection, worker, draining=False)


def _set(connection: Connection, worker: str, *, draining: bool) -> bool:
    wake_dispatcher(connection)
    return bool(connection.execute(update(workers).where(workers.c.id == worker).values(draining=draining)).rowcount)

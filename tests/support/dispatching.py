"""Steps that tests of the dispatcher and of its watch share."""

from uuid import UUID

from tests.support.clock import HandClock
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import leases
from warpfold.app.jobs.attempt import Lease
from warpfold.worker.dispatcher import Dispatcher


def look_for(dispatcher: Dispatcher, clock: HandClock, seconds: float) -> None:
    """Have the dispatcher look around for so long."""
    dispatcher.look_around()
    clock.pass_slowly(seconds, dispatcher.look_around)


def claim(database: BlockingDatabase, job_id: UUID, worker: str, lease_s: float = 60.0) -> Lease:
    lease = database.run(leases.claim, job_id, 1, worker, lease_s)
    assert lease is not None
    return lease

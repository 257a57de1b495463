"""The life of one attempt on its worker, from its claim to its end."""

from uuid import UUID

import structlog
from sqlalchemy.exc import StatementError
from structlog.typing import FilteringBoundLogger

from warpfold.app.db import DATABASE_LOST
from warpfold.app.jobs import leases
from warpfold.contract.states import Reason
from warpfold.worker.endings import Place, patiently
from warpfold.worker.failures import incident
from warpfold.worker.group import Group, WaitingMessages

log: FilteringBoundLogger = structlog.get_logger()


def run_job(place: Place, job_id: UUID, attempt: int, behind: WaitingMessages | None = None) -> None:
    """Run one attempt of a job from claim to end; for a small job, run the small jobs `behind` it, too. Does nothing if
    the attempt cannot be claimed.

    Raises one of DATABASE_LOST if Postgres cannot be reached for the claim: then nothing has happened, or the answer
    was lost on its way, and the attempt is taken back when its lease expires.
    """
    lease = place.database.quickly(leases.claim, job_id, attempt, place.worker, place.settings.lease_s)
    if lease is None:
        log.info("dropped", job=str(job_id), attempt=attempt)
        return
    try:
        Group(place, behind).run(lease)
    except DATABASE_LOST:
        raise
    except StatementError as error:  # Postgres refuses something about this job, and would refuse it again
        sentence = incident(error, lease.job_id, lease.attempt)
        patiently(place, leases.fail, lease, Reason.INTERNAL, sentence)
    finally:
        place.show(None)

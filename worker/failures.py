"""Turns an error into the failure of a job: a reason and a sentence, or a number under which the log has the error."""

from uuid import UUID, uuid4

import structlog
from structlog.typing import FilteringBoundLogger

from warpfold.app.jobs.attempt import Failure, Lease
from warpfold.contract.states import Reason
from warpfold.kernels.errors import CudaError, KernelError, lacks_memory

log: FilteringBoundLogger = structlog.get_logger()

_LONGEST = 2000  # characters of a message: that of a driver may come with a dump


def failure_of(error: Exception, lease: Lease) -> Failure:
    """The failure to report for `error`. An unforeseen error goes to the log under an incident number.

    The child is kept after errors that it understood (bad input, too little memory) and replaced after all others:
    a CUDA context fails for good once it has met an error, and an unforeseen error may have left anything behind.
    """
    match error:
        case CudaError():
            log.error("cuda error", job=str(lease.job_id), attempt=lease.attempt, exc_info=error)
            return Failure(Reason.CUDA_ERROR, _sentence(error), replace=True)
        case KernelError() if error.reason != Reason.INTERNAL:
            return Failure(Reason(error.reason), _sentence(error), replace=False)
        case _ if lacks_memory(error):
            return Failure(
                Reason.OUT_OF_MEMORY,
                "The job needs more memory than its slot may take (WARPFOLD_SLOT_MEMORY_BYTES).",
                replace=False,
            )
        case _:
            return Failure(Reason.INTERNAL, incident(error, lease.job_id, lease.attempt), replace=True)


def _sentence(error: Exception) -> str:
    # Postgres stores no NUL, and nobody reads more than a page of an error.
    text = str(error).replace("\x00", "").strip() or type(error).__name__
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def incident(error: Exception, job_id: UUID, attempt: int) -> str:
    """Log `error` and return the sentence to show in its place."""
    number = uuid4().hex[:12]
    log.error("internal error", incident=number, job=str(job_id), attempt=attempt, exc_info=error)
    return f"Something went wrong inside the service; its log knows more about incident {number}."

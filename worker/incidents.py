"""Errors that nobody foresaw: the owner of the job gets a number, the log the traceback under it."""

from uuid import UUID, uuid4

import structlog
from structlog.typing import FilteringBoundLogger

log: FilteringBoundLogger = structlog.get_logger()


def incident(error: Exception, job_id: UUID, attempt: int) -> str:
    """Log `error` and return the sentence to show in its place."""
    number = uuid4().hex[:12]
    log.error("internal error", incident=number, job=str(job_id), attempt=attempt, exc_info=error)
    return f"Something went wrong inside the service; its log knows more about incident {number}."

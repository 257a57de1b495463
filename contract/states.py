"""The states of a job, the reasons of failure and the kinds of events, as their names stand in tables and answers."""

from enum import StrEnum


class Status(StrEnum):
    """The status of a job goes queued → running → succeeded | failed | cancelled, or queued → cancelled | failed. The
    last three are final.

    A queued job fails without running only as `unavailable`, if no slot could ever take it.
    """

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        return self in TERMINAL


TERMINAL = frozenset({Status.SUCCEEDED, Status.FAILED, Status.CANCELLED})


class Reason(StrEnum):
    """Why a job failed."""

    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    CUDA_ERROR = "cuda_error"
    WORKER_LOST = "worker_lost"
    INVALID_INPUT = "invalid_input"
    UNAVAILABLE = "unavailable"
    CHILDREN_FAILED = "children_failed"
    INTERNAL = "internal"


class Loss(StrEnum):
    """How an attempt was lost, in the words of the job's history."""

    LEASE_EXPIRED = "its worker fell silent"
    INTERRUPTED = "its worker fell silent while Postgres or the dispatcher stood still"
    WORKER_DIED = "its worker process died"
    CHILD_DIED = "its process died"
    CHILD_SILENT = "its process fell silent"

    @property
    def counts(self) -> bool:
        """Whether it is one of the few losses after which a job fails. The worker need not be at fault where
        nobody could hear it."""
        return self is not Loss.INTERRUPTED


class EventType(StrEnum):
    """What happened to a job."""

    SUBMITTED = "submitted"
    STARTED = "started"
    REQUEUED = "requeued"
    CANCEL_REQUESTED = "cancel_requested"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EDITED = "edited"


PRIORITIES = {"low": 0, "normal": 1, "high": 2}
"""Rank of each priority; larger runs first."""

"""The errors of a client that talks to Warpfold."""

from collections.abc import Sequence
from dataclasses import dataclass


class WarpfoldError(Exception):
    """The service could not be reached, or did not do what was asked."""


class NotConfigured(WarpfoldError):
    """No service or no token is known, or the address of the service is not valid."""


class Unreachable(WarpfoldError):
    """The service gave no answer, or the answer is not Warpfold's."""


class WaitedTooLong(WarpfoldError):
    """The job had not ended when the caller's time limit was over. The job goes on."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """A field of a request, and the fault of its value."""

    field: str
    message: str


class Refused(WarpfoldError):
    """The service answered with a problem (RFC 9457)."""

    def __init__(self, status: int, title: str, detail: str, errors: Sequence[FieldError] = ()) -> None:
        named = "; ".join(f"{error.field}: {error.message}" if error.field else error.message for error in errors)
        super().__init__(f"refused with {status}: {named}" if named else f"{status} {title}: {detail}")
        self.status = status
        self.title = title
        self.detail = detail
        self.errors = tuple(errors)


class JobFailed(WarpfoldError):
    """The job ended without a result."""

    def __init__(self, job_id: str, status: str, reason: str | None, error: str | None) -> None:
        super().__init__(f"job {job_id} {status}{f' ({reason})' if reason else ''}: {error or 'no result'}")
        self.reason = reason
        self.error = error


class NotHandedIn(JobFailed):
    """A reduction of `map` never became a job: its array or its options are at fault, as `__cause__` says."""

    def __init__(self, cause: Exception) -> None:
        WarpfoldError.__init__(self, f"the reduction could not be handed in: {cause}")
        self.reason = "invalid_input"
        self.error = str(cause)
        self.__cause__ = cause

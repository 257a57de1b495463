"""The Python client and the `warpfold` command line."""

from client.api import Client
from client.errors import FieldError, JobFailed, Refused, Unreachable, WarpfoldError
from client.models import Job, ReduceResult

__all__ = ["Client", "FieldError", "Job", "JobFailed", "ReduceResult", "Refused", "Unreachable", "WarpfoldError"]

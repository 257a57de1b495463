"""The Python client and the `warpfold` command line."""

from client.api import Client
from client.errors import FieldError, JobFailed, Refused, Unreachable, WarpfoldError
from client.models import BenchmarkResult, ClusterResult, Job, ReduceResult, Result

__all__ = [
    "BenchmarkResult",
    "Client",
    "ClusterResult",
    "FieldError",
    "Job",
    "JobFailed",
    "ReduceResult",
    "Refused",
    "Result",
    "Unreachable",
    "WarpfoldError",
]

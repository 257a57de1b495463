"""The Python client and the `warpfold` command line."""

from client.api import Client, LiveJob
from client.async_api import AsyncClient, AsyncLiveJob
from client.errors import (
    FieldError,
    JobFailed,
    NotConfigured,
    Refused,
    Unreachable,
    WaitedTooLong,
    WarpfoldError,
)
from client.models import (
    AccuracyResult,
    BenchmarkResult,
    ClusterResult,
    Dataset,
    Job,
    Merged,
    OtherResult,
    ProfileResult,
    ReduceResult,
    Result,
    ScalingResult,
    ThreeNumbersResult,
)
from client.results import Measurement, Results
from kernels.exact import ExactState
from kernels.ops import Terms

__all__ = [
    "AccuracyResult",
    "AsyncClient",
    "AsyncLiveJob",
    "BenchmarkResult",
    "Client",
    "ClusterResult",
    "Dataset",
    "ExactState",
    "FieldError",
    "Job",
    "JobFailed",
    "LiveJob",
    "Measurement",
    "Merged",
    "NotConfigured",
    "OtherResult",
    "ProfileResult",
    "ReduceResult",
    "Refused",
    "Result",
    "Results",
    "ScalingResult",
    "Terms",
    "ThreeNumbersResult",
    "Unreachable",
    "WaitedTooLong",
    "WarpfoldError",
]

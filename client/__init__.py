"""The Python client and the `warpfold` command line."""

from warpfold.client.api import Client
from warpfold.client.async_api import AsyncClient
from warpfold.client.batches import Batch, JobOutcome
from warpfold.client.errors import (
    FieldError,
    JobFailed,
    NotConfigured,
    NotHandedIn,
    Refused,
    Unreachable,
    WaitedTooLong,
    WarpfoldError,
)
from warpfold.client.group_table import GroupbyResult, MergeResult
from warpfold.client.groupby import GroupBy
from warpfold.client.job_results import (
    AccuracyResult,
    BenchmarkResult,
    ClusterResult,
    OtherResult,
    ProfileResult,
    ReduceArrayResult,
    ReduceResult,
    Result,
    ScalingResult,
    ThreeNumbersResult,
)
from warpfold.client.live_batches import AsyncLiveBatch, LiveBatch
from warpfold.client.live_jobs import AsyncLiveJob, LiveJob
from warpfold.client.models import Dataset, Job, Merged
from warpfold.client.results import Measurement, Results
from warpfold.client.sharing import Sharing
from warpfold.kernels.exact import ExactState
from warpfold.kernels.ops import Terms

__all__ = [
    "AccuracyResult",
    "AsyncClient",
    "AsyncLiveBatch",
    "AsyncLiveJob",
    "Batch",
    "BenchmarkResult",
    "Client",
    "ClusterResult",
    "Dataset",
    "ExactState",
    "FieldError",
    "GroupBy",
    "GroupbyResult",
    "Job",
    "JobFailed",
    "JobOutcome",
    "LiveBatch",
    "LiveJob",
    "Measurement",
    "MergeResult",
    "Merged",
    "NotConfigured",
    "NotHandedIn",
    "OtherResult",
    "ProfileResult",
    "ReduceArrayResult",
    "ReduceResult",
    "Refused",
    "Result",
    "Results",
    "ScalingResult",
    "Sharing",
    "Terms",
    "ThreeNumbersResult",
    "Unreachable",
    "WaitedTooLong",
    "WarpfoldError",
]

"""The Python client and the `warpfold` command line. A public name is imported when it is first asked for."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    from warpfold.kernels.errors import InvalidInput
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
    "InvalidInput",
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

_MODULES: Mapping[str, str] = MappingProxyType(
    {
        "AccuracyResult": "warpfold.client.job_results",
        "AsyncClient": "warpfold.client.async_api",
        "AsyncLiveBatch": "warpfold.client.live_batches",
        "AsyncLiveJob": "warpfold.client.live_jobs",
        "Batch": "warpfold.client.batches",
        "BenchmarkResult": "warpfold.client.job_results",
        "Client": "warpfold.client.api",
        "ClusterResult": "warpfold.client.job_results",
        "Dataset": "warpfold.client.models",
        "ExactState": "warpfold.kernels.exact",
        "FieldError": "warpfold.client.errors",
        "GroupBy": "warpfold.client.groupby",
        "GroupbyResult": "warpfold.client.group_table",
        "InvalidInput": "warpfold.kernels.errors",
        "Job": "warpfold.client.models",
        "JobFailed": "warpfold.client.errors",
        "JobOutcome": "warpfold.client.batches",
        "LiveBatch": "warpfold.client.live_batches",
        "LiveJob": "warpfold.client.live_jobs",
        "Measurement": "warpfold.client.results",
        "MergeResult": "warpfold.client.group_table",
        "Merged": "warpfold.client.models",
        "NotConfigured": "warpfold.client.errors",
        "NotHandedIn": "warpfold.client.errors",
        "OtherResult": "warpfold.client.job_results",
        "ProfileResult": "warpfold.client.job_results",
        "ReduceArrayResult": "warpfold.client.job_results",
        "ReduceResult": "warpfold.client.job_results",
        "Refused": "warpfold.client.errors",
        "Result": "warpfold.client.job_results",
        "Results": "warpfold.client.results",
        "Sharing": "warpfold.client.sharing",
        "ScalingResult": "warpfold.client.job_results",
        "Terms": "warpfold.kernels.ops",
        "ThreeNumbersResult": "warpfold.client.job_results",
        "Unreachable": "warpfold.client.errors",
        "WaitedTooLong": "warpfold.client.errors",
        "WarpfoldError": "warpfold.client.errors",
    }
)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)

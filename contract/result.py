"""What a job may come to, by kind."""

from pydantic import TypeAdapter

from warpfold.contract.results.accuracy import AccuracyResult, ThreeNumbersResult
from warpfold.contract.results.benchmark import BenchmarkResult
from warpfold.contract.results.cluster import ClusterResult
from warpfold.contract.results.preset import PresetResult
from warpfold.contract.results.profile import ProfileResult
from warpfold.contract.results.reduce import ReduceResult
from warpfold.contract.results.scaling import ScalingResult

JobResult = (
    ReduceResult
    | BenchmarkResult
    | ClusterResult
    | ScalingResult
    | ProfileResult
    | PresetResult
    | AccuracyResult
    | ThreeNumbersResult
)
"""Told apart by their fields: none allows another's."""

_RESULT: TypeAdapter[JobResult] = TypeAdapter(JobResult)


def result_of(text: str) -> JobResult:
    """A result as it is stored."""
    return _RESULT.validate_json(text)

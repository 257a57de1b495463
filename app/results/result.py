"""What a job may come to, by kind."""

from pydantic import TypeAdapter

from warpfold.app.results.accuracy import AccuracyResult, ThreeNumbersResult
from warpfold.app.results.benchmark import BenchmarkResult
from warpfold.app.results.cluster import ClusterResult
from warpfold.app.results.preset import PresetResult
from warpfold.app.results.profile import ProfileResult
from warpfold.app.results.reduce import ReduceResult
from warpfold.app.results.scaling import ScalingResult

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

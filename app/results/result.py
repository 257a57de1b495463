"""What a job may come to, by kind."""

from pydantic import TypeAdapter

from app.results.accuracy import AccuracyResult, ThreeNumbersResult
from app.results.benchmark import BenchmarkResult
from app.results.cluster import ClusterResult
from app.results.preset import PresetResult
from app.results.profile import ProfileResult
from app.results.reduce import ReduceResult
from app.results.scaling import ScalingResult

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

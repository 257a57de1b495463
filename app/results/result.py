"""What a job may come to, by kind."""

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

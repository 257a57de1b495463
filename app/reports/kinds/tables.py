"""The tables that a result of any kind has."""

from collections.abc import Sequence

from app.reports.kinds import accuracy, benchmark, profile, reduce, scaling
from app.reports.parts import Table
from app.results.accuracy import AccuracyResult, ThreeNumbersResult
from app.results.benchmark import BenchmarkResult
from app.results.cluster import ClusterResult
from app.results.measurement import Measurement
from app.results.profile import ProfileResult
from app.results.reduce import ReduceResult
from app.results.result import JobResult
from app.results.scaling import ScalingResult


def tables_of(result: JobResult, points: Sequence[Measurement]) -> tuple[Table, ...]:
    """The tables of a result; `points` are a benchmark's."""
    match result:
        case BenchmarkResult():
            return benchmark.tables(points)
        case ReduceResult() | ClusterResult():
            return reduce.tables(result)
        case AccuracyResult() | ThreeNumbersResult():
            return accuracy.tables(result)
        case ScalingResult():
            return scaling.tables(result)
        case ProfileResult():
            return profile.tables(result)
    return ()

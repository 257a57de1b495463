"""The tables that a result of any kind has."""

from collections.abc import Sequence

from warpfold.app.reports.kinds import accuracy, benchmark, profile, scaling
from warpfold.app.reports.kinds import tables_only as reduce
from warpfold.app.reports.parts import Table
from warpfold.contract.measurement import Measurement
from warpfold.contract.result import JobResult
from warpfold.contract.results.accuracy import AccuracyResult, ThreeNumbersResult
from warpfold.contract.results.benchmark import BenchmarkResult
from warpfold.contract.results.cluster import ClusterResult
from warpfold.contract.results.profile import ProfileResult
from warpfold.contract.results.reduce import ReduceResult
from warpfold.contract.results.scaling import ScalingResult


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

"""The tables that a result of any kind has."""

from collections.abc import Sequence

from warpfold.app.reports.kinds import accuracy, benchmark, profile, scaling
from warpfold.app.reports.kinds import tables_only as reduce
from warpfold.app.reports.parts import Table
from warpfold.contract.jobs import JobResult
from warpfold.contract.kinds.accuracy import AccuracyResult
from warpfold.contract.kinds.benchmark import BenchmarkResult
from warpfold.contract.kinds.cluster import ClusterResult
from warpfold.contract.kinds.profile import ProfileResult
from warpfold.contract.kinds.reduce import ReduceResult
from warpfold.contract.kinds.scaling import ScalingResult
from warpfold.contract.kinds.three_numbers import ThreeNumbersResult
from warpfold.contract.measurement import Measurement


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

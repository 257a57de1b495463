"""The charts that a result of any kind has."""

from collections.abc import Iterable

from warpfold.app.charts import accuracy, benchmark, scaling
from warpfold.app.charts.chart import Chart
from warpfold.contract.jobs import JobResult
from warpfold.contract.kinds.accuracy import AccuracyResult
from warpfold.contract.kinds.benchmark import BenchmarkResult
from warpfold.contract.kinds.scaling import ScalingResult
from warpfold.contract.measurement import Measurement


def charts_of(result: JobResult, points: Iterable[Measurement]) -> list[Chart]:
    """The charts of a result; `points` are a benchmark's. Other kinds have none."""
    match result:
        case BenchmarkResult():
            return benchmark.charts(points)
        case AccuracyResult():
            return accuracy.charts(result)
        case ScalingResult():
            return scaling.charts(result)
    return []

"""The charts that a result of any kind has."""

from collections.abc import Iterable

from app.charts import accuracy, benchmark, scaling
from app.charts.chart import Chart
from app.results.accuracy import AccuracyResult
from app.results.benchmark import BenchmarkResult
from app.results.measurement import Measurement
from app.results.result import JobResult
from app.results.scaling import ScalingResult


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

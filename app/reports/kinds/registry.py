"""How the result of each kind of job is shown: a row for each class of results, with the functions that make its tables
and its charts; None for a class without tables or charts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from warpfold.app.charts.chart import Chart
from warpfold.app.reports.kinds import accuracy, benchmark, groupby, scaling, tables_only
from warpfold.app.reports.report import Table
from warpfold.contract.jobs import JobResult
from warpfold.contract.kinds.accuracy import AccuracyResult
from warpfold.contract.kinds.benchmark import BenchmarkResult
from warpfold.contract.kinds.cluster import ClusterResult
from warpfold.contract.kinds.groupby import GroupbyResult
from warpfold.contract.kinds.merge import MergeResult
from warpfold.contract.kinds.preset import PresetResult
from warpfold.contract.kinds.profile import ProfileResult
from warpfold.contract.kinds.reduce import ReduceArrayResult, ReduceResult
from warpfold.contract.kinds.scaling import ScalingResult
from warpfold.contract.kinds.three_numbers import ThreeNumbersResult
from warpfold.contract.measurement import Measurement


@dataclass(frozen=True, slots=True)
class Presentation:
    """How a class of results is shown. Both functions take the result; `of_points`, the job's measured points instead,
    because the result does not hold them."""

    tables: Callable[[Any], tuple[Table, ...]] | None
    charts: Callable[[Any], list[Chart]] | None
    of_points: bool = False


PRESENTATIONS: Mapping[type, Presentation] = MappingProxyType(
    {
        ReduceResult: Presentation(tables_only.reduction, None),
        ReduceArrayResult: Presentation(tables_only.array, None),
        BenchmarkResult: Presentation(benchmark.tables, benchmark.charts, of_points=True),
        ClusterResult: Presentation(tables_only.cluster, None),
        AccuracyResult: Presentation(accuracy.tables, accuracy.charts),
        ThreeNumbersResult: Presentation(tables_only.three_numbers, None),
        ScalingResult: Presentation(scaling.tables, scaling.charts),
        ProfileResult: Presentation(tables_only.profile, None),
        GroupbyResult: Presentation(groupby.tables, groupby.charts),
        MergeResult: Presentation(groupby.tables, groupby.charts),
        # The report of a preset has a section for each preset, and the jobs in it have tables and charts.
        PresetResult: Presentation(None, None),
    }
)


def tables_of(result: JobResult, points: Sequence[Measurement]) -> tuple[Table, ...]:
    """The tables of a result of any kind; `points` are those of a benchmark."""
    shown = PRESENTATIONS[type(result)]
    return () if shown.tables is None else shown.tables(points if shown.of_points else result)


def charts_of(result: JobResult, points: Sequence[Measurement]) -> list[Chart]:
    """The charts of a result of any kind; `points` are those of a benchmark."""
    shown = PRESENTATIONS[type(result)]
    return [] if shown.charts is None else shown.charts(points if shown.of_points else result)

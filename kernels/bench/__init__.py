"""Benchmarks whose timings can be believed: axes, workloads, clocks, a stopping rule, summaries, flags, tables."""

from warpfold.kernels.bench.axes import MAX_CASES, Axes, Cache, Case
from warpfold.kernels.bench.engine import Point, run
from warpfold.kernels.bench.flags import Flag
from warpfold.kernels.bench.record import Record, case_of, record_of
from warpfold.kernels.bench.stopping import Rule
from warpfold.kernels.bench.target import BenchmarkTarget, open_target

__all__ = [
    "MAX_CASES",
    "Axes",
    "BenchmarkTarget",
    "Cache",
    "Case",
    "Flag",
    "Point",
    "Record",
    "Rule",
    "case_of",
    "open_target",
    "record_of",
    "run",
]

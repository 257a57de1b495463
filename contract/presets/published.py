"""The figures that the documents published, as data. `published/*.json` name their sources; rows keep the names and
the rounding of the documents."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from warpfold.contract.frozen import Frozen


class Kernel(Frozen):
    block: int
    grid: str
    shared_bytes: int
    passes: int
    dtype: str


class CorrectnessCase(Frozen):
    """A test of the custom kernel. The random arrays are not known, only what came out."""

    case: str
    n: int
    input: str
    expected: float | None = None
    published_expected: float | None = None
    published: float
    published_relative_error: float | None = None


class ThroughputRow(Frozen):
    n: int
    custom_ms: float
    thrust_ms: float
    custom_gbps: float
    speedup_vs_thrust: float


class ThroughputSummary(Frozen):
    peak_gbps: float
    peak_n: int
    percent_of_theoretical: float
    theoretical_gbps: float
    numpy_single_thread_peak_gbps: float
    speedup_vs_numpy_range: tuple[float, float]


class ScalingCheck(Frozen):
    n: int
    single_gpu: float
    multi_gpu: float


class ScalingRow(Frozen):
    """A row of times on two GPUs. The times of both together are not physical: see `task2_known_fault`."""

    n: int
    single_ms: float
    multi_ms: float
    speedup: float
    efficiency_percent: float


class Overhead(Frozen):
    single_ms: float
    per_gpu_compute_ms: float
    multi_ms: float
    communication_ms: float


class ThreeNumbers(Frozen):
    a: float
    b: float
    c: float
    exact: float
    published_ab_c: float
    published_a_bc: float


class P05(Frozen):
    """The course report. `task3_abs_error` is by distribution and method, an error for each of `task3_sizes`."""

    source: str
    machine: str
    task1_kernel: Kernel
    task1_correctness: tuple[CorrectnessCase, ...]
    task1_throughput: tuple[ThroughputRow, ...]
    task1_summary: ThroughputSummary
    task2_correctness: ScalingCheck
    task2_scaling: tuple[ScalingRow, ...]
    task2_known_fault: str
    task2_overhead_100M: Overhead  # noqa: N815 (as in the document)
    task3_methods: tuple[str, ...]
    task3_distributions: Mapping[str, str]
    task3_reference: str
    task3_sizes: tuple[int, ...]
    task3_abs_error: Mapping[str, Mapping[str, tuple[float, ...]]]
    task3_gpu_vs_cpu_normal: Mapping[str, tuple[float, ...]]
    task3_three_numbers: ThreeNumbers
    task3_known_fault: str
    future_work: tuple[str, ...]


class ClusterConfig(Frozen):
    size: int
    tpb: int
    cluster_size: int
    warp_size: int
    dtype: str
    needs: str


class Coordination(Frozen):
    input: str
    block_scale: str
    algorithm: str
    output: str
    check: str


class Reduction(Frozen):
    input: str
    algorithm: str
    expected: float
    published_error: float


class Advanced(Frozen):
    input: str
    block_scale: str
    algorithm: str
    published: tuple[float, ...]
    check: str


class P34(Frozen):
    """The cluster puzzles."""

    source: str
    config: ClusterConfig
    coordination: Coordination
    reduction: Reduction
    advanced: Advanced


@cache
def p05() -> P05:
    """The course report's figures."""
    return P05.model_validate_json(_text("p05"))


@cache
def p34() -> P34:
    """The cluster puzzles' figures."""
    return P34.model_validate_json(_text("p34"))


def source_of(document: str) -> str:
    """The title of a document."""
    return p34().source if document == "p34" else p05().source


def excerpt(document: str, paths: tuple[str, ...]) -> dict[str, Any]:
    """Parts of a document as JSON values, by dotted path. Raises KeyError for what it does not have."""
    whole = (p34() if document == "p34" else p05()).model_dump(mode="json", exclude_none=True)
    return {path: _at(whole, path) for path in paths}


def _at(whole: Any, path: str) -> Any:
    for part in path.split("."):
        whole = whole[part]
    return whole


def _text(name: str) -> str:
    return (files(__package__) / "published" / f"{name}.json").read_text(encoding="utf-8")

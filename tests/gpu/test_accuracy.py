"""An accuracy study on a GPU: its strategies beside the host's loops, on the same arrays."""

import numpy as np
import pytest

from warpfold.kernels.accuracy import AccuracyAxes, AccuracyFigures, BoundVerdict, StudiedCase, methods_on
from warpfold.kernels.accuracy.study import Repeats, run
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.strategies.registry import cuda_strategies
from warpfold.kernels.dtypes import dtype_named
from warpfold.kernels.source import GeneratedSource
from warpfold.kernels.studies.outcome import Outcome

OPS = ("sum", "mean", "dot", "norm2")
ONCE = Repeats(permutations=0, runs=1)
TWICE = Repeats(permutations=2, runs=2)


def source(distribution: str, dtype: str, n: int) -> GeneratedSource:
    return GeneratedSource(distribution, n, 42, dtype_named(dtype))


def study(
    backend: CudaBackend, methods: tuple[str, ...], *, distribution: str, dtype: str, n: int, repeats: Repeats
) -> list[StudiedCase]:
    return list(run(backend, AccuracyAxes(methods, OPS, (distribution,), (dtype,), (n,)), source, repeats))


def figures(points: list[StudiedCase], op: str = "sum") -> dict[str, AccuracyFigures]:
    return {point.case.method: point.measured for point in points if point.measured is not None and point.case.op == op}


DISTRIBUTIONS = ("normal", "pathological", "ill_conditioned")
SOME = ("exact", "single_pass", "cuda_float64_accumulator", "compensated", "cuda_pairwise", "cupy", "torch", "numpy")


def beyond_their_bounds(points: list[StudiedCase]) -> list[StudiedCase]:
    assert [point for point in points if point.outcome is Outcome.FAILED] == []
    return [point for point in points if point.measured and point.measured.bound_verdict is BoundVerdict.EXCEEDED]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_every_method_of_a_gpu_keeps_its_bound(backend: CudaBackend, distribution: str) -> None:
    methods = methods_on("cuda")
    points = study(backend, methods, distribution=distribution, dtype="float32", n=100_003, repeats=TWICE)
    assert beyond_their_bounds(points) == []


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_methods_keep_their_bounds_in_other_dtypes_too(backend: CudaBackend, dtype: str) -> None:
    for distribution in DISTRIBUTIONS:
        if (dtype, distribution) != ("float16", "pathological"):  # 1e8 is beyond float16
            points = study(backend, SOME, distribution=distribution, dtype=dtype, n=30_011, repeats=TWICE)
            assert beyond_their_bounds(points) == []


def test_every_strategy_of_the_gpu_that_claims_a_sum_is_measured_or_says_why_not(backend: CudaBackend) -> None:
    points = study(backend, methods_on("cuda"), distribution="normal", dtype="float32", n=10_000, repeats=ONCE)
    measured = figures(points)
    for row in cuda_strategies().values():
        if ("sum", "float32") in row.claims and row.missing is None:
            assert {row.name, f"cuda_{row.name}"} & set(measured), row.name
    assert all(point.reason for point in points if point.measured is None)


def test_the_exact_sum_is_correctly_rounded_and_the_same_in_every_order(backend: CudaBackend) -> None:
    for distribution in ("mixed", "pathological", "normal", "all_exponents", "ill_conditioned"):
        points = study(
            backend, ("exact",), distribution=distribution, dtype="float32", n=1_000_003, repeats=Repeats(4, 2)
        )
        point = figures(points)["exact"]
        assert point.correctly_rounded
        assert (point.distinct_results, point.repeatable) == (1, True)


def test_numpy_and_the_loops_of_a_gpu_slot_run_on_its_host(backend: CudaBackend) -> None:
    methods = ("numpy", "tree", "cuda_tree")
    points = study(backend, methods, distribution="normal", dtype="float32", n=1000, repeats=ONCE)
    measured = figures(points)
    assert measured["numpy"].value == float(np.sum(source("normal", "float32", 1000).read(0, 1000)))
    assert measured["tree"].how.startswith("compiled by Numba")
    assert measured["cuda_tree"].how == f"strategy tree on {backend.device.name}"

"""Benchmarks and puzzles as the child of a slot runs them, on the CPU."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.leases import lease_on
from tests.support.places.web import folders_of, web_server
from warpfold.app.jobs.attempt import Lease
from warpfold.contract.folders import Folders
from warpfold.contract.kinds.benchmark import BenchmarkResult, BenchmarkSpec
from warpfold.contract.kinds.cluster import ClusterResult
from warpfold.contract.kinds.reduce import ReduceResult
from warpfold.kernels.errors import InvalidInput
from warpfold.worker.execute import Kernels
from warpfold.worker.messages import Measured, News, PointBegun, Progress

QUICK = {"target_rse": 0.5, "min_samples": 2, "max_samples": 5, "time_limit_s": 1.0}


@pytest.fixture(scope="module")
def cpu() -> Kernels:
    return Kernels("cpu", "here:cpu", Folders((), Path("nowhere")), cpu_cache_bytes=8 << 20)


def asked(**spec: Any) -> Lease:
    return lease_on(json.dumps(spec), queued_ms=12.5)


BENCHMARK = asked(
    kind="benchmark", strategies=["exact", "numpy"], ops=["sum", "max"], sizes=[1000], caches=["hot"], **QUICK
)


def test_a_benchmark_gives_a_row_a_case_and_counts_them(cpu: Kernels) -> None:
    success = cpu.run(BENCHMARK, lambda news: None)
    result = BenchmarkResult.model_validate(success.result)
    assert (result.cases, result.measured, result.skipped, result.failed) == (4, 4, 0, 0)
    assert result.timings.queued_ms == 12.5
    assert [(row.strategy, row.op) for row in success.points] == [
        ("exact", "sum"),
        ("numpy", "sum"),
        ("exact", "max"),
        ("numpy", "max"),
    ]
    for row in success.points:
        assert (row.kind, row.backend, row.outcome, row.cache) == ("benchmark", "cpu", "measured", "hot")
        assert (row.n, row.bytes, row.distribution) == (1000, 4000, "normal")
        assert row.kernel_ms is not None
        assert row.kernel_ms > 0
        assert row.host is not None


SWEEPS = [
    {"rows": [20], "columns": [3], "axis": [0, 1]},
    {"sizes": [100], "segments": [4]},
    {
        "rows": [200],
        "groups": [9],
        "key_order": ["random", "sorted"],
        "strategies": ["exact", "numpy", "polars", "pyarrow"],
    },
]


@pytest.mark.parametrize("sweep", SWEEPS)
def test_a_benchmark_by_shape_gives_a_row_a_shape_and_goes_on_from_what_is_done(
    cpu: Kernels, sweep: dict[str, Any]
) -> None:
    spec = {"kind": "benchmark", "strategies": ["exact", "numpy"], "caches": ["hot"], **QUICK, **sweep}
    success = cpu.run(asked(**spec), lambda news: None)
    cases = BenchmarkSpec.model_validate(spec).axes().cases()
    assert [(row.strategy, row.shape) for row in success.points] == [(case.strategy, case.shape) for case in cases]
    assert all(row.shape is not None and row.outcome == "measured" for row in success.points)
    done = replace(asked(**spec), done=success.points[:-1])
    again = cpu.run(done, lambda news: None)
    assert again.points[:-1] == done.done
    assert again.points[-1].shape == success.points[-1].shape


def test_points_are_told_as_they_begin_and_end(cpu: Kernels) -> None:
    heard: list[News] = []
    success = cpu.run(BENCHMARK, heard.append)
    begun = [news.point for news in heard if isinstance(news, PointBegun)]
    done = [news.point for news in heard if isinstance(news, Measured)]
    steps = [(news.done, news.total, news.unit) for news in heard if isinstance(news, Progress)]
    assert tuple(done) == success.points
    assert [(row.strategy, row.op) for row in begun] == [(row.strategy, row.op) for row in done]
    assert {(row.outcome, row.reason) for row in begun} == {("failed", "the process that measured it died")}
    assert steps == [(k, 4, "points") for k in range(5)]


def test_what_is_done_is_not_measured_again(cpu: Kernels) -> None:
    first = cpu.run(BENCHMARK, lambda news: None).points
    heard: list[News] = []
    rest = lease_on(BENCHMARK.spec, done=first[:3])
    success = cpu.run(rest, heard.append)
    assert success.points[:3] == first[:3]
    assert [(news.point.strategy, news.point.op) for news in heard if isinstance(news, Measured)] == [("numpy", "max")]
    assert BenchmarkResult.model_validate(success.result).cases == 4


def test_a_case_that_is_not_claimed_or_too_large_is_skipped_while_the_rest_runs(cpu: Kernels) -> None:
    lease = asked(
        kind="benchmark", strategies=["numpy"], dtypes=["float64"], sizes=[1 << 40, 100], caches=["hot"], **QUICK
    )
    large, small = cpu.run(lease, lambda news: None).points
    assert (large.outcome, small.outcome) == ("skipped", "measured")
    assert large.reason is not None
    assert large.reason.startswith("the data take 8796.1 GB")
    assert (large.kernel_ms, large.samples) == (None, 0)


def test_a_puzzle_has_the_published_bits_and_says_that_it_is_a_model(cpu: Kernels) -> None:
    success = cpu.run(asked(kind="cluster", puzzle="advanced"), lambda news: None)
    result = ClusterResult.model_validate(success.result)
    assert result.texts == ("122.799995", "247.04001", "372.72", "499.83997")
    assert result.model
    assert result.why_model == "a CPU has no clusters"
    assert result.same_bits_as_model
    assert all(check.passed for check in result.checks)
    assert [float.fromhex(text) for text in result.hex] == list(result.values)


def test_the_reduction_puzzle_is_523776(cpu: Kernels) -> None:
    success = cpu.run(asked(kind="cluster", puzzle="reduction"), lambda news: None)
    assert ClusterResult.model_validate(success.result).values == (523776.0,)


def test_the_seed_of_a_benchmark_is_in_its_provenance(cpu: Kernels) -> None:
    lease = asked(kind="benchmark", strategies=["exact"], sizes=[10], caches=["hot"], seed=99, **QUICK)
    assert BenchmarkResult.model_validate(cpu.run(lease, lambda news: None).result).provenance.seed == 99


def test_a_dot_product_reads_both_sources_and_a_variance_its_ddof(cpu: Kernels) -> None:
    numbers = {"type": "values", "values": [1, 2, 4], "dtype": "float32"}
    other = {"type": "values", "values": [2.0**60, 0.5, -(2.0**58)], "dtype": "float64"}
    product = cpu.run(asked(kind="reduce", op="dot", source=numbers, other=other), lambda news: None)
    result = ReduceResult.model_validate(product.result)
    assert (result.value, result.dtype, result.count, result.correctly_rounded) == (1.0, "float64", 3, True)
    assert result.state is not None
    assert [row.bytes for row in product.points] == [3 * (4 + 8)]
    variance = cpu.run(asked(kind="reduce", op="var", ddof=1, source=numbers), lambda news: None)
    result = ReduceResult.model_validate(variance.result)
    assert (result.value, result.dtype, result.state) == (float(np.float32(7 / 3)), "float32", None)


def test_a_result_says_how_many_chunks_are_absent(data_root: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(data_root / "x.h5", "w") as file:
        file.create_dataset("x", (6, 2), "f8", chunks=(2, 2), fillvalue=7)[:2] = 1
    reducing = Kernels("cpu", "here:cpu", Folders((data_root,), data_root))
    source = {"type": "array", "path": "x.h5"}
    for shape, value in ({}, 60.0), ({"axis": 0}, (30.0, 30.0)):
        made = reducing.run(asked(kind="reduce", op="sum", source=source, **shape), lambda news: None).result
        assert made["notice"] == "2 of 3 chunks of 'x' absent, read as fill value 7.0"
        assert (made["values"] if shape else made["value"]) == (list(value) if isinstance(value, tuple) else value)
    part = {**source, "select": [{"stop": 2}], "missing_chunks": "raise"}
    assert "notice" not in reducing.run(asked(kind="reduce", op="sum", source=part), lambda news: None).result
    with pytest.raises(InvalidInput, match="2 of its 3 chunks, and missing_chunks is raise") as caught:
        reducing.run(asked(kind="reduce", op="sum", source=part | {"select": []}), lambda news: None)
    assert caught.value.field == "source.missing_chunks"


def test_nulls_of_a_file_are_left_out_and_counted_but_not_by_an_op_of_places(data_root: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(data_root / "x.nc", "w") as file:
        file["t"] = np.array([4, -9, 5, -9], np.int16)
        file["t"].attrs["_FillValue"] = np.int16(-9)
    reducing = Kernels("cpu", "here:cpu", Folders((data_root,), data_root))
    source = {"type": "array", "path": "x.nc"}
    success = reducing.run(asked(kind="reduce", op="mean", source=source), lambda news: None)
    result = ReduceResult.model_validate(success.result)
    assert (result.value, result.count, result.nulls) == (4.5, 2, 2)
    assert (success.points[0].n, success.points[0].bytes) == (2, 4)
    for op in ({"op": "argmin"}, {"op": "dot", "other": source}):
        with pytest.raises(InvalidInput, match="a null in 't', at index 1"):
            reducing.run(asked(kind="reduce", source=source, **op), lambda news: None)


def test_what_is_read_by_urls_is_named_in_the_result_and_its_progress_is_bytes() -> None:
    numbers = np.arange(300_000.0)
    buffer = io.BytesIO()
    np.save(buffer, numbers)
    news: list[Any] = []
    with web_server() as web:
        web.files["a.npy"] = buffer.getvalue()
        reducing = Kernels("cpu", "here:cpu", folders_of(web.place()))
        source = {"type": "files", "paths": [web.url("a.npy")] * 2}
        success = reducing.run(asked(kind="reduce", op="sum", source=source), news.append)
        result = ReduceResult.model_validate(success.result)
        assert result.value == 2 * numbers.sum()
        assert result.input is not None
        assert (result.input.count, result.input.bytes_read) == (2, 2 * len(web.files["a.npy"]))
        assert [(read.url, read.size) for read in result.input.objects] == [(web.url("a.npy"), buffer.tell())] * 2
        assert all(read.etag and read.modified for read in result.input.objects)
    steps = [news for news in news if isinstance(news, Progress)]
    assert {step.unit for step in steps} == {"bytes"}
    assert (steps[-1].done, steps[-1].total) == (2 * numbers.nbytes, 2 * numbers.nbytes)
    small = reducing.run(asked(kind="reduce", source={"type": "values", "values": [1]}), news.append)
    assert small.result["input"] is None

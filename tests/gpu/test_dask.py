"""Dask on a GPU: arrays whose chunks are CuPy arrays, and the slot `dask` with a worker that has a GPU."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from tests.support.gpu.adversarial import ADVERSARIAL, adversarial
from warpfold.contract.folders import Folders
from warpfold.kernels.dtypes import DTYPES

da = pytest.importorskip("dask.array")

OPS = ("sum", "mean", "var", "std", "sum_squares", "norm1", "norm2")


def same(values: Any, wanted: Any) -> None:
    """A CuPy array and a NumPy array have one shape, one dtype and the same bits; NaNs are alike."""
    import cupy

    assert isinstance(values, cupy.ndarray)
    assert (values.shape, values.dtype) == (wanted.shape, wanted.dtype)
    assert [float(x).hex() for x in values.get().ravel()] == [float(x).hex() for x in np.ravel(wanted)]


def computed(lazy: Any, scheduler: str = "synchronous") -> Any:
    """The values of a Dask array. Dask's threads have another stream than the test, on which they also put the blocks
    of values together."""
    import cupy

    cupy.cuda.runtime.deviceSynchronize()  # the elements are written
    values = lazy.compute(scheduler=scheduler)
    if scheduler != "synchronous":
        cupy.cuda.runtime.deviceSynchronize()
    return values


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("data", ADVERSARIAL)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_chunks_of_cupy_have_the_bits_of_chunks_of_numpy(dtype: str, data: str) -> None:
    import cupy

    from warpfold.engines import dask as exact

    array = adversarial(data, DTYPES[dtype], 12 * 90 * 5).reshape(12, 90, 5)
    for chunks in ((5, 31, 5), (12, 90, 5), (12, 7, 5)):
        on_gpu = da.from_array(cupy.asarray(array), chunks=chunks, asarray=False)
        on_host = da.from_array(array, chunks=chunks)
        for op in OPS:
            for axis in (None, 0, (1, 2), (0, 2)):
                wanted = getattr(exact, op)(on_host, axis, keepdims=axis == 0)
                lazy = getattr(exact, op)(on_gpu, axis, keepdims=axis == 0)
                same(computed(lazy), np.asarray(computed(wanted)))
        other = adversarial(data, DTYPES[dtype], array.size)[::-1].copy().reshape(array.shape)
        wanted = exact.dot(on_host, da.from_array(other, chunks=chunks))
        lazy = exact.dot(on_gpu, da.from_array(cupy.asarray(other), chunks=chunks, asarray=False))
        same(computed(lazy), np.asarray(computed(wanted)))


@pytest.mark.usefixtures("gpu")
def test_chunks_of_integers_and_of_other_layouts_are_added_up_too() -> None:
    import cupy

    from warpfold.engines import dask as exact

    array = np.random.default_rng(2).integers(-(2**60), 2**60, (40, 9))
    lazy = exact.sum(da.from_array(cupy.asarray(array), chunks=(7, 9), asarray=False), axis=0)
    assert computed(lazy).get().tolist() == [sum(map(int, column)) for column in array.T]
    floats = np.random.default_rng(3).standard_normal((40, 9))
    turned = da.from_array(cupy.asfortranarray(cupy.asarray(floats)), chunks=(7, 9), asarray=False)
    for axis in (None, 0, 1):
        wanted = computed(exact.var(da.from_array(floats, chunks=(7, 9)), axis))
        same(computed(exact.var(turned, axis), "threads"), np.asarray(wanted))


def integers(dtype: str, shape: tuple[int, int]) -> Any:
    """Integers of 21 bits as floats."""
    return np.random.default_rng(5).integers(-(1 << 20), 1 << 20, shape).astype(dtype)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_along_axes_stay_on_the_gpu_until_they_are_rounded(dtype: str) -> None:
    import cupy

    from warpfold.engines.dask_cupy import checked, merged, partial_of, rounded
    from warpfold.engines.dask_cupy_levels import ChunkLevels

    array = integers(dtype, (600, 40_000))
    on_gpu = cupy.asarray(array)
    for axis, parts in ((0, np.array_split(array, 11)), (1, np.array_split(array, 11, axis=1))):
        cut = cupy.array_split(on_gpu, 11, axis=axis)
        sums = [partial_of(part, None, (axis,), "sum") for part in cut]
        assert all(isinstance(each, ChunkLevels) for each in sums)
        assert isinstance(merged(sums), ChunkLevels)
        wanted = array.astype(np.int64).sum(axis, keepdims=True).astype(dtype)
        same(rounded(sums, np.dtype(dtype), 0), wanted)
        for each, part in zip(sums, parts, strict=True):
            assert isinstance(each, ChunkLevels)
            held = checked(each)
            assert isinstance(held, ChunkLevels)
            assert held.brought().values(np.dtype(dtype)).tobytes() == (
                part.astype(np.int64).sum(axis, keepdims=True).astype(dtype).tobytes()
            )


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_chunks_that_the_likely_window_does_not_hold_are_added_up_again(dtype: str) -> None:
    import cupy

    from warpfold.engines import dask as exact

    array = integers(dtype, (40, 500))
    array[13] *= 2.0**40
    array[29:33, 7] = [np.inf, 3e38, -1e-38, 1e-45]
    for axis in (0, 1):
        for split in (2, 64):
            for chunks in ((1, 500), (6, 500), (6, 70)):
                on_host = da.from_array(array, chunks=chunks)
                on_gpu = da.from_array(cupy.asarray(array), chunks=chunks, asarray=False)
                wanted = computed(exact.sum(on_host, axis, split_every=split))
                for scheduler in ("synchronous", "threads"):
                    same(computed(exact.sum(on_gpu, axis, split_every=split), scheduler), wanted)


@pytest.mark.usefixtures("gpu")
def test_sums_that_outgrow_their_window_when_they_are_merged_are_merged_on_the_host() -> None:
    import cupy

    from warpfold.engines import dask as exact
    from warpfold.engines.dask_cupy import merged, partial_of
    from warpfold.engines.dask_cupy_levels import ChunkLevels

    array = np.full((6000, 40), 65535.0)
    array[::7] = np.nextafter(65535.0, 0)
    parts = [partial_of(part, None, (0,), "sum") for part in cupy.array_split(cupy.asarray(array), 12)]
    assert isinstance(merged(parts[:2]), ChunkLevels)
    assert not isinstance(merged(parts), ChunkLevels)
    on_gpu = da.from_array(cupy.asarray(array), chunks=(500, 40), asarray=False)
    for split in (2, 3, 64):
        same(computed(exact.sum(on_gpu, 0, split_every=split)), computed(exact.sum(da.from_array(array, chunks=-1), 0)))


@pytest.mark.usefixtures("gpu")
def test_parts_in_windows_of_several_units_are_merged_on_the_gpu() -> None:
    import cupy

    from warpfold.engines.dask_cupy import merged, partial_of, rounded
    from warpfold.engines.dask_cupy_levels import ChunkLevels
    from warpfold.kernels.cpu.grouped.partial import PartialResults

    array = np.random.default_rng(8).standard_normal((90, 700))
    array[37, 5::9] = 2.0**-45 * (1 + 2.0**-51)
    array[71, 3::7] = -(2.0**-44) * (1 + 2.0**-51)
    array[:, 11] = -0.0
    for axis in (0, 1):
        parts = [partial_of(part, None, (axis,), "sum") for part in cupy.array_split(cupy.asarray(array), 10, axis)]
        together = merged(parts)
        assert isinstance(together, ChunkLevels)
        assert together.sums.unit < min(part.sums.unit for part in parts if isinstance(part, ChunkLevels))
        wanted = PartialResults.of(array, (axis,), "sum").values(np.dtype("float64"))
        same(rounded(parts, np.dtype("float64"), 0), wanted)
        same(rounded([together, *parts], np.dtype("float64"), 0), 2 * wanted)


@pytest.mark.usefixtures("gpu")
def test_sums_of_a_chunk_go_to_another_process_without_the_chunk() -> None:
    import pickle

    import cupy

    from warpfold.engines.dask_cupy import partial_of, rounded

    for scale in (1.0, 2.0**70):
        array = integers("float64", (30, 5000)) * scale
        part = pickle.loads(pickle.dumps(partial_of(cupy.asarray(array), None, (0,), "sum")))  # noqa: S301
        assert getattr(part, "chunk", None) is None
        same(rounded([part], np.dtype("float64"), 0), array.sum(0, keepdims=True))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("scale", [0.0, -0.0, 1e-30, 1.0, 1e9, 1e30, 3e38])
def test_sums_along_axes_are_those_of_the_cpu_whatever_the_size_of_the_elements(scale: float) -> None:
    import cupy

    from warpfold.engines import dask as exact

    for dtype in ("float32", "float64"):
        with np.errstate(over="ignore"):
            array = (np.random.default_rng(6).standard_normal((40, 70)) * scale).astype(dtype)
        on_host = da.from_array(array, chunks=(9, 20))
        on_gpu = da.from_array(cupy.asarray(array), chunks=(9, 20), asarray=False)
        for op in ("sum", "mean", "norm1"):
            for axis in (0, 1):
                same(computed(getattr(exact, op)(on_gpu, axis)), computed(getattr(exact, op)(on_host, axis)))


@pytest.mark.usefixtures("gpu")
def test_totals_stay_on_the_gpu_and_those_of_many_chunks_are_rounded_there() -> None:
    import cupy

    from warpfold.engines.dask_cupy import ChunkTotal, merged, partial_of, rounded

    array = integers("float64", (1, 1 << 20)).reshape(-1)
    for op, wanted in (("sum", array.sum()), ("norm1", np.abs(array).sum()), ("mean", array.sum() / array.size)):
        totals = [partial_of(part, None, (0,), op) for part in cupy.array_split(cupy.asarray(array), 200)]
        assert isinstance(merged(totals), ChunkTotal)
        same(rounded(totals, np.dtype("float64"), 0), np.array([wanted]))


@pytest.mark.usefixtures("gpu")
def test_threads_that_begin_together_open_the_gpu_once() -> None:
    from concurrent.futures import ThreadPoolExecutor

    from warpfold.engines.cupy import opened_once, reducer
    from warpfold.kernels.cuda.gpu.launch import Gpu

    open_gpu = opened_once(Gpu)
    with ThreadPoolExecutor(16) as pool:
        opened = list(pool.map(lambda _: open_gpu(0), range(64)))
        reducers = list(pool.map(lambda _: reducer(0), range(64)))
    assert len(set(map(id, opened))) == 1
    assert len(set(map(id, reducers))) == 1
    opened[0].close()


@pytest.fixture
def scheduler(gpu: Any) -> Iterator[str]:
    """The address of a scheduler with one Dask worker, which sees the GPU."""
    pytest.importorskip("distributed")
    from tests.support.dask_cluster import cluster_of

    with cluster_of(1, processes=True) as cluster:
        yield str(cluster.scheduler_address)


def run(kernels: Any, spec: dict[str, Any]) -> dict[str, Any]:
    """The result of a reduce job on a slot."""
    from warpfold.app.jobs.attempt import Lease

    text = json.dumps({"kind": "reduce", **spec})
    job = Lease(job_id=uuid4(), attempt=1, token=uuid4(), timeout_s=600.0, queued_ms=0.0, spec=text)
    return dict(kernels.run(job, lambda news: None).result)


def test_a_dask_worker_reduces_on_its_gpu_and_leaves_to_its_cpu_what_the_gpu_refuses(
    scheduler: str, tmp_path: Path
) -> None:
    from warpfold.worker.dask.options import ClusterOptions
    from warpfold.worker.execute import Kernels

    folders = Folders((), tmp_path)
    cluster = Kernels("dask", "here:dask", folders, cluster=ClusterOptions(scheduler))
    alone = Kernels("cpu", "here:cpu", folders)
    try:
        source = {"type": "generate", "distribution": "normal", "n": 1 << 22, "dtype": "float64", "seed": 7}
        whole = {"op": "sum", "source": source}
        made = run(cluster, {**whole, "backend": "dask", "partitions": 5})
        assert [each["backend"] for each in made["partitions"]["workers"]] == ["cuda"]
        assert made["state"] == run(alone, {**whole, "backend": "cpu"})["state"]
        column = {"op": "mean", "source": {**source, "shape": [1 << 18, 16]}, "axis": 0}
        apart = {"op": "mean", "source": {**source, "shape": [1 << 14, 16, 16]}, "axis": [0, 2]}
        # A GPU multiplies no numbers for many values, so that their products go to the worker's CPU.
        ones = {"type": "generate", "distribution": "constant", "n": 1 << 22, "dtype": "int64", "shape": [1 << 18, 16]}
        product = {"op": "prod", "source": ones, "axis": 0}
        for along, backend in ((column, "cuda"), (apart, "cuda"), (product, "cpu")):
            made = run(cluster, {**along, "backend": "dask", "partitions": 3})
            assert [each["backend"] for each in made["partitions"]["workers"]] == [backend]
            assert made["values"] == run(alone, {**along, "backend": "cpu"})["values"]
    finally:
        cluster.close()

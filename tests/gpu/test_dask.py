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


@pytest.fixture
def taken() -> Iterator[None]:
    """Chunks that are CuPy arrays are reduced where they lie."""
    import dask

    config: Any = dask.config  # its functions have no types
    with config.set({"warpfold.cupy-chunks": True}):
        yield


def same(values: Any, wanted: Any) -> None:
    """A CuPy array and a NumPy array have one shape, one dtype and the same bits; NaNs are alike."""
    import cupy

    assert isinstance(values, cupy.ndarray)
    assert (values.shape, values.dtype) == (wanted.shape, wanted.dtype)
    assert [float(x).hex() for x in values.get().ravel()] == [float(x).hex() for x in np.ravel(wanted)]


def computed(lazy: Any, scheduler: str = "synchronous") -> Any:
    """The values of a Dask array."""
    return lazy.compute(scheduler=scheduler)


@pytest.mark.usefixtures("gpu", "taken")
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


@pytest.mark.usefixtures("gpu", "taken")
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
        # A GPU reduces axes that lie side by side, so that other axes go to the worker's CPU.
        apart = {"op": "mean", "source": {**source, "shape": [1 << 14, 16, 16]}, "axis": [0, 2]}
        for along, backend in ((column, "cuda"), (apart, "cpu")):
            made = run(cluster, {**along, "backend": "dask", "partitions": 3})
            assert [each["backend"] for each in made["partitions"]["workers"]] == [backend]
            assert made["values"] == run(alone, {**along, "backend": "cpu"})["values"]
    finally:
        cluster.close()

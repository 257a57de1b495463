"""A Dask cluster within this process: two workers of one thread each, behind a real scheduler."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dask_cluster import cluster_of
from warpfold.contract.folders import Folders
from warpfold.worker.dask.options import ClusterOptions
from warpfold.worker.execute import Kernels


@pytest.fixture(scope="package")
def scheduler() -> Iterator[str]:
    with cluster_of(2, processes=False) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def spreading(scheduler: str, tmp_path: Path) -> Iterator[Kernels]:
    """The work of a slot on that cluster, with `tmp_path` as its data root."""
    slot = Kernels("dask", "here:dask", Folders((tmp_path,), tmp_path), cluster=ClusterOptions(scheduler, wait_s=0.5))
    yield slot
    slot.close()


@pytest.fixture
def alone(tmp_path: Path) -> Kernels:
    """The work of a CPU slot, with the same data root."""
    return Kernels("cpu", "here:cpu", Folders((tmp_path,), tmp_path), cpu_cache_bytes=8 << 20)

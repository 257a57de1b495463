"""A Dask cluster within this process: two workers of one thread each, behind a real scheduler."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.dask_cluster import cluster_of
from warpfold.contract.folders import Folders
from warpfold.worker.dask import running
from warpfold.worker.dask.cluster import Cluster
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
def merges(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Has workers merge three partitions at a time, however small; how many each merged."""
    monkeypatch.setattr(running, "_LARGE", 0)
    monkeypatch.setattr(running, "FAN_IN", 3)
    numbers: list[int] = []
    submit = Cluster.merge

    def noted(self: Cluster, task: Any, futures: Sequence[Any], ended: Any) -> Any:
        numbers.append(len(futures))
        return submit(self, task, futures, ended)

    monkeypatch.setattr(Cluster, "merge", noted)
    return numbers


@pytest.fixture
def alone(tmp_path: Path) -> Kernels:
    """The work of a CPU slot, with the same data root."""
    return Kernels("cpu", "here:cpu", Folders((tmp_path,), tmp_path), cpu_cache_bytes=8 << 20)

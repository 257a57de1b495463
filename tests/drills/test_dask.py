"""A cluster whose workers die, leave and come back in the middle of a job."""

import base64
import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.dask_cluster import cluster_of
from tests.support.leases import lease_on
from tests.support.waiting import until
from warpfold.app.jobs.attempt import Lease
from warpfold.contract.folders import Folders
from warpfold.contract.keyed import open_rows
from warpfold.contract.kinds.reduce import ReduceResult
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.parts.partitions import reduce_partition
from warpfold.kernels.source import GeneratedSource
from warpfold.worker.dask import cluster, task
from warpfold.worker.dask.options import ClusterOptions
from warpfold.worker.execute import Kernels
from warpfold.worker.messages import News, Progress

FOLDERS = Folders((), Path("nowhere"))


def asked(n: int, partitions: int) -> Lease:
    source = {"type": "generate", "distribution": "normal", "n": n, "dtype": "float64", "seed": 5}
    spec = {"kind": "reduce", "op": "sum", "backend": "dask", "source": source, "partitions": partitions}
    return lease_on(json.dumps(spec))


def state_of(n: int) -> str:
    state = CpuBackend(8 << 20).reduce(GeneratedSource("normal", n, 5, DTYPES["float64"]), "sum").state
    assert state is not None
    return base64.b64encode(state).decode()


@pytest.fixture
def own() -> Iterator[Any]:
    """A cluster of one thread that a test may do with as it likes."""
    with cluster_of(1, processes=False) as made:
        yield made


def test_a_worker_that_dies_takes_along_only_what_it_had_in_hand() -> None:
    with cluster_of(2, processes=True) as made:
        slot = Kernels("dask", "here:dask", FOLDERS, cluster=ClusterOptions(made.scheduler_address, wait_s=60))
        victim = psutil.Process(next(iter(made.workers.values())).pid)
        killed = threading.Event()

        def kill(news: News) -> None:
            if isinstance(news, Progress) and 0 < news.done < news.total and not killed.is_set():
                victim.send_signal(signal.SIGKILL)
                killed.set()

        result = ReduceResult.model_validate(slot.run(asked(40_000_000, 40), kill).result)
        slot.close()
    assert killed.is_set()
    assert result.state == state_of(40_000_000)
    assert result.partitions is not None
    assert sum(worker.partitions for worker in result.partitions.workers) == 40
    # Dask sends a worker two at a time. Some more may have ended there, or been on the way, but not a worker's half.
    assert 1 <= result.partitions.repeated <= 10


def test_a_job_waits_for_a_cluster_without_workers_and_then_is_unavailable(own: Any) -> None:
    slot = Kernels("dask", "here:dask", FOLDERS, cluster=ClusterOptions(own.scheduler_address, wait_s=0.4))
    own.scale(0)
    until(lambda: not own.scheduler.workers)
    with pytest.raises(Unavailable, match=r"has had no worker for 0.4 s; 0 of 3 partitions were done"):
        slot.run(asked(300, 3), lambda news: None)
    own.scale(1)
    assert slot.run(asked(300, 3), lambda news: None).result["count"] == 300
    slot.close()


def test_a_job_goes_on_where_workers_come_back(own: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpfold.worker.dask.running._LOOK_EVERY_S", 0.05)
    slot = Kernels("dask", "here:dask", FOLDERS, cluster=ClusterOptions(own.scheduler_address, wait_s=60))
    begun, may_go_on = threading.Event(), threading.Event()
    opened = task._open

    def gate(partition: task.Partition, folders: Any) -> Any:
        if partition.number == 2 and not begun.is_set():
            begun.set()
            may_go_on.wait(60)
        return opened(partition, folders)

    monkeypatch.setattr(task, "_open", gate)
    done: list[Any] = []
    job = threading.Thread(target=lambda: done.append(slot.run(asked(3000, 6), lambda news: None).result))
    job.start()
    assert begun.wait(60)
    own.scale(0)
    until(lambda: not own.scheduler.workers)
    may_go_on.set()
    own.scale(1)
    job.join(60)
    slot.close()
    (result,) = done
    assert result["state"] == state_of(3000)
    assert result["partitions"]["repeated"] >= 1


def test_a_scheduler_that_is_lost_in_the_middle_is_unavailable(own: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpfold.worker.dask.running._LOOK_EVERY_S", 0.05)
    slot = Kernels("dask", "here:dask", FOLDERS, cluster=ClusterOptions(own.scheduler_address, wait_s=0.2))
    monkeypatch.setattr(cluster, "CONNECT_S", 0.3)
    begun, may_go_on = threading.Event(), threading.Event()

    def gate(partition: task.Partition, folders: Any) -> Any:
        begun.set()
        may_go_on.wait(60)
        raise AssertionError("nobody waits for it")

    monkeypatch.setattr(task, "_open", gate)
    errors: list[Exception] = []

    def run() -> None:
        try:
            slot.run(asked(300, 3), lambda news: None)
        except Unavailable as error:
            errors.append(error)

    job = threading.Thread(target=run)
    job.start()
    assert begun.wait(60)
    closing = threading.Thread(target=own.close)
    closing.start()
    job.join(60)
    may_go_on.set()
    closing.join(60)
    slot.close()
    assert "0 of 3 partitions were done" in str(errors[0])


def test_a_task_that_nobody_waits_for_stops_early(own: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpfold.worker.dask.running._LOOK_EVERY_S", 0.05)
    slot = Kernels("dask", "here:dask", FOLDERS, cluster=ClusterOptions(own.scheduler_address))
    begun, stopped = threading.Event(), threading.Event()
    reduced, workers = reduce_partition, cluster.Cluster.workers

    def watched(*arguments: Any, **options: Any) -> Any:
        begun.set()
        try:
            return reduced(*arguments, **options)
        except task.Withdrawn:
            stopped.set()
            raise

    def look(of: cluster.Cluster) -> Any:
        if begun.is_set():
            raise Unavailable("the job ends here")
        return workers(of)

    monkeypatch.setattr(task, "reduce_partition", watched)
    monkeypatch.setattr(cluster.Cluster, "workers", look)
    monkeypatch.setattr("warpfold.worker.dask.running.Partitions._look", lambda run: run.cluster.workers())
    with pytest.raises(Unavailable, match="the job ends here"):
        slot.run(asked(1 << 34, 2), lambda news: None)  # minutes of work
    assert stopped.wait(60)
    slot.close()


def test_tables_that_are_lost_before_they_are_merged_are_made_again(own: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpfold.worker.dask.running._LOOK_EVERY_S", 0.05)
    monkeypatch.setattr("warpfold.worker.dask.running._LARGE", 0)
    monkeypatch.setattr("warpfold.worker.dask.running.FAN_IN", 4)
    made = {"type": "generate", "n": 6000, "seed": 3}
    key = {"name": "k", "source": made | {"distribution": "uniform", "dtype": "uint8"}}
    asked: dict[str, Any] = {"name": "v", "source": made | {"distribution": "normal", "dtype": "float64"}}
    spec: dict[str, Any] = {"kind": "groupby", "by": [key], "aggregations": [asked], "partitions": 40}
    slot = Kernels("dask", "here:dask", FOLDERS, cluster=ClusterOptions(own.scheduler_address, wait_s=60))
    begun, may_go_on = threading.Event(), threading.Event()
    opened = open_rows

    def gate(spec: Any, folders: Any, between: Any) -> Any:
        if between == (5250, 5400) and not begun.is_set():  # among those that are merged on a worker
            begun.set()
            may_go_on.wait(60)
        return opened(spec, folders, between)

    monkeypatch.setattr(task, "open_rows", gate)
    done: list[Any] = []
    lease = lease_on(json.dumps(spec | {"backend": "dask"}))
    job = threading.Thread(target=lambda: done.append(slot.run(lease, lambda news: None).result))
    job.start()
    assert begun.wait(60)
    own.scale(0)
    until(lambda: not own.scheduler.workers)
    may_go_on.set()
    own.scale(1)
    job.join(60)
    slot.close()
    alone = Kernels("cpu", "here:cpu", FOLDERS, cpu_cache_bytes=8 << 20)
    del spec["partitions"]
    expected = alone.run(lease_on(json.dumps(spec)), lambda news: None).result
    (result,) = done
    assert (result["columns"], result["keys"]) == (expected["columns"], expected["keys"])
    assert result["partitions"]["repeated"] >= 1

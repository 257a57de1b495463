"""A reduction on a Dask cluster beside the same on a CPU slot; and what one partition costs, by the number of workers.

`--workers` adds clusters of so many workers within this process, behind one real scheduler: their tasks do next to
nothing, so that what is left is the cost of Dask and of the slot for a partition, and of gathering its state.
"""

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import dask
from distributed import LocalCluster

from warpfold.app.jobs.attempt import Lease
from warpfold.contract.folders import Folders
from warpfold.worker.dask.options import ClusterOptions
from warpfold.worker.execute import Kernels

FOLDERS = Folders((), Path("nowhere"))


def lease(n: int, **asked: Any) -> Lease:
    """A job that adds up `n` generated float64."""
    source = {"type": "generate", "distribution": "normal", "n": n, "dtype": "float64", "seed": 1}
    spec = json.dumps({"kind": "reduce", "op": "sum", "source": source, **asked})
    return Lease(job_id=uuid4(), attempt=1, token=uuid4(), timeout_s=3600.0, queued_ms=0.0, spec=spec)


def seconds(kernels: Kernels, job: Lease) -> tuple[float, str]:
    """How long a job takes, and its state."""
    began = time.perf_counter()
    result = kernels.run(job, lambda news: None).result
    return time.perf_counter() - began, str(result["state"])


def beside_a_slot(mib: int, partitions: int, processes: int, rounds: int) -> None:
    """Both ways in turn, so that the load of the machine is the same for both."""
    n = mib << 17
    alone = Kernels("cpu", "here:cpu", FOLDERS)
    cluster = Kernels("dask", "here:dask", FOLDERS, cluster=ClusterOptions(processes=processes))
    jobs = lease(n, backend="cpu"), lease(n, backend="dask", partitions=partitions)
    seconds(alone, lease(1 << 20, backend="cpu"))
    seconds(cluster, lease(1 << 20, backend="dask", partitions=4 * processes))
    ratios, slot_s, dask_s = [], [], []
    for _ in range(rounds):
        (one_s, alone_state), (two_s, cluster_state) = seconds(alone, jobs[0]), seconds(cluster, jobs[1])
        assert alone_state == cluster_state, "the states are the same bytes"
        slot_s.append(one_s)
        dask_s.append(two_s)
        ratios.append(one_s / two_s)
    print(
        f"| {mib} MiB in {partitions} partitions, {processes} processes | {statistics.median(slot_s):.2f} s | "
        f"{statistics.median(dask_s):.2f} s | {statistics.median(ratios):.2f} |"
    )
    cluster.close()


def cost_of_partitions(workers: Sequence[int], each: int) -> None:
    """Milliseconds a partition of one element, in clusters of so many workers."""
    for number in workers:
        with (
            dask.config.set({"distributed.scheduler.http.routes": [], "distributed.admin.tick.interval": "1 s"}),
            LocalCluster(
                n_workers=number,
                threads_per_worker=1,
                processes=False,
                dashboard_address=None,
                scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                memory_limit=0,
            ) as made,
        ):
            slot = Kernels("dask", "here:dask", FOLDERS, cluster=ClusterOptions(made.scheduler_address))
            partitions = max(200, min(each * number, 4000))
            seconds(slot, lease(partitions, backend="dask", partitions=partitions))
            taken, _ = seconds(slot, lease(partitions, backend="dask", partitions=partitions))
            print(
                f"| {number} | {partitions} | {taken * 1e3 / partitions:.2f} | {partitions / taken:,.0f} |", flush=True
            )
            slot.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--partitions", type=int, default=64)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="*", default=[], help="such as 2 16 128 1000")
    arguments = parser.parse_args()
    print("| job | CPU slot | Dask | of the slot's rate |\n|---|---|---|---|")
    beside_a_slot(arguments.mib, arguments.partitions, arguments.processes, arguments.rounds)
    if arguments.workers:
        print("\n| workers | partitions | ms a partition | partitions a second |\n|---|---|---|---|")
        cost_of_partitions(arguments.workers, each=8)


if __name__ == "__main__":
    main()

"""A reduction on a Dask cluster beside the same on a CPU slot; and what one partition costs, by the number of workers.

`--workers` adds clusters of so many workers behind one scheduler: their tasks do next to nothing, so that what is left
is the cost of Dask and of the slot for a partition, and of gathering its state.
"""

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from benchmarks.dask_workers import workers_of
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
    """Processor time a partition of one element, of the scheduler and of the slot, in clusters of so many workers. It
    does not depend on what else the machine does, and its inverse is where they saturate."""
    for number in workers:
        with workers_of(number) as cluster:
            slot = Kernels("dask", "here:dask", FOLDERS, cluster=ClusterOptions(cluster.address))
            partitions = max(500, each * number)
            seconds(slot, lease(4 * number, backend="dask", partitions=4 * number))
            before, own = cluster.scheduler_s(), time.process_time()
            taken, _ = seconds(slot, lease(partitions, backend="dask", partitions=partitions))
            scheduler_s, own_s = cluster.scheduler_s() - before, time.process_time() - own
            print(
                f"| {number} | {partitions} | {scheduler_s * 1e3 / partitions:.2f} | {own_s * 1e3 / partitions:.2f} | "
                f"{partitions / max(scheduler_s, own_s):,.0f} | {taken * 1e3 / partitions:.2f} |",
                flush=True,
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
        print("\n| workers | partitions | scheduler, ms of CPU each | slot, ms of CPU each | at most, 1/s | ms each |")
        print("|---|---|---|---|---|---|")
        cost_of_partitions(arguments.workers, each=4)


if __name__ == "__main__":
    main()

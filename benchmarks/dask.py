"""A reduction on a Dask cluster beside the same on a CPU slot; and what one partition costs, by the number of workers.

`--workers` adds clusters of so many workers behind one scheduler: their tasks do next to nothing, so that what is left
is the cost of Dask and of the slot for a partition, and of gathering its state.
"""

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from uuid import uuid4

import dask
import psutil
from distributed import Client, Scheduler, Worker

from warpfold.app.jobs.attempt import Lease
from warpfold.contract.folders import Folders
from warpfold.worker.dask.options import ClusterOptions
from warpfold.worker.execute import Kernels

FOLDERS = Folders((), Path("nowhere"))
_IN_A_PROCESS = 125
"""Workers that share a process, and its event loop."""


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


def _scheduler(tell: Any) -> None:
    """Body of a process with a scheduler of its own."""

    async def serve() -> None:
        async with Scheduler(host="127.0.0.1", port=0, dashboard=False, dashboard_address="127.0.0.1:0") as scheduler:
            tell.put(scheduler.address)
            await scheduler.finished()

    asyncio.run(serve())


def _workers(scheduler: str, number: int) -> None:
    """Body of a process with many workers of one thread each. They tick seldom: thousands of ticks a second of as many
    workers would be the work of many machines, and not of this one."""

    async def serve() -> None:
        workers = [await Worker(scheduler, nthreads=1, host="127.0.0.1", memory_limit=0) for _ in range(number)]
        await asyncio.gather(*(worker.finished() for worker in workers))

    configured = {
        "distributed.admin.tick.interval": "60 s",
        "distributed.worker.profile.enabled": False,
        "warpfold.device": "cpu",
    }
    with dask.config.set(configured):
        asyncio.run(serve())


def cost_of_partitions(workers: Sequence[int], each: int) -> None:
    """Processor time a partition of one element, of the scheduler and of the slot, in clusters of so many workers. It
    does not depend on what else the machine does, and its inverse is where they saturate."""
    for number in workers:
        context = get_context("spawn")
        told = context.Queue()
        scheduler = context.Process(target=_scheduler, args=(told,), daemon=True)
        scheduler.start()
        address = told.get(timeout=120)
        hosts = [
            context.Process(target=_workers, args=(address, min(_IN_A_PROCESS, number - at)), daemon=True)
            for at in range(0, number, _IN_A_PROCESS)
        ]
        for host in hosts:
            host.start()
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(number, timeout=300)
        slot = Kernels("dask", "here:dask", FOLDERS, cluster=ClusterOptions(address))
        partitions = max(500, each * number)
        seconds(slot, lease(4 * number, backend="dask", partitions=4 * number))
        watched = psutil.Process(scheduler.pid)
        before, own = watched.cpu_times(), time.process_time()
        taken, _ = seconds(slot, lease(partitions, backend="dask", partitions=partitions))
        after, own_s = watched.cpu_times(), time.process_time() - own
        scheduler_s = after.user + after.system - before.user - before.system
        print(
            f"| {number} | {partitions} | {scheduler_s * 1e3 / partitions:.2f} | {own_s * 1e3 / partitions:.2f} | "
            f"{partitions / max(scheduler_s, own_s):,.0f} | {taken * 1e3 / partitions:.2f} |",
            flush=True,
        )
        slot.close()
        for process in (*hosts, scheduler):
            process.terminate()
            process.join()


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

"""Very many Dask workers that do nothing but sleep, behind a real scheduler and the slot's own code: what a partition
costs the scheduler and the slot, and how long partitions must be to keep all workers busy.

A partition sleeps for as long as a real one would take, and gives a state of 300 bytes; with a fan-in workers merge the
states of so many partitions. Sleeping takes no processor, so that a thousand workers fit on one machine.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dask_workers import ManyWorkers, workers_of
from warpfold.contract.folders import Folders
from warpfold.contract.kinds.reduce import ReduceSpec
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.parts.partial import PartialColumn, PartialTable
from warpfold.worker.dask.cluster import Cluster
from warpfold.worker.dask.options import ClusterOptions
from warpfold.worker.dask.running import Partitions
from warpfold.worker.dask.task import Partition, PartitionDone, PartitionsMerged, PartitionTask, Share

_STATES = StateColumn.of_bytes([bytes(300)])
_STATE = PartialTable(np.zeros(1, np.int64), (PartialColumn(("float64",), (_STATES,)),))


def asleep(number: int, seconds: float) -> PartitionDone:
    """A partition that takes so long."""
    time.sleep(seconds)
    share = Share("", "", "cpu", "", seconds)
    return PartitionDone(
        number, _STATE, None, 1, 8, 0, (), (), (), share, ("float64",), "exact", None, 0.0, 0.0, 0.0, None
    )


def together(done: Sequence[PartitionDone]) -> PartitionsMerged:
    """A merge of several partitions without the arithmetic."""
    return PartitionsMerged(tuple(replace(each, partial=None) for each in done), _STATE)


class Sleeping(Cluster):
    """A cluster whose partitions sleep."""

    seconds = 0.0

    def hand_out(self, tasks: Sequence[PartitionTask], ended: Callable[[Any], None]) -> Sequence[Any]:
        numbers = [task.partition.number for task in tasks]
        futures: Sequence[Any] = self.client.map(asleep, numbers, seconds=self.seconds, pure=False)
        for future in futures:
            future.add_done_callback(ended)
        return futures

    def merge(self, task: PartitionTask, futures: Sequence[Any], ended: Callable[[Any], None]) -> Any:
        future = self.client.submit(together, list(futures), pure=False)
        future.add_done_callback(ended)
        return future


def measured(workers: ManyWorkers, cluster: Sleeping, number: int, partitions: int, fan_in: int) -> str:
    """A row of the table."""
    source = {"type": "generate", "distribution": "normal", "n": partitions, "dtype": "float64"}
    spec = ReduceSpec.model_validate({"kind": "reduce", "op": "sum", "backend": "dask", "source": source})
    parts = [Partition(at, f"element {at}", (spec.source,), 8, at, at + 1) for at in range(partitions)]
    before, own, elsewhere = workers.scheduler_s(), time.process_time(), workers.workers_s()
    run = Partitions(cluster, spec, Folders((), Path("nowhere")), parts, _ignored, _ignored, fan_in)
    wall_s = run.run().wall_ms / 1e3
    scheduler_s, slot_s = workers.scheduler_s() - before, time.process_time() - own
    busy = partitions * cluster.seconds / (number * wall_s)
    return (
        f"| {number:,} | {partitions:,} | {cluster.seconds:g} | {fan_in} | {scheduler_s * 1e3 / partitions:.2f} | "
        f"{slot_s * 1e3 / partitions:.2f} | {(workers.workers_s() - elsewhere) * 1e3 / partitions:.2f} | "
        f"{wall_s:.1f} | {partitions / wall_s:,.0f} | {busy:.2f} |"
    )


def _ignored(*report: object) -> None:
    """Progress and states are of no account here."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--partitions", type=int, nargs="*", default=[1000, 10_000])
    parser.add_argument("--seconds", type=float, nargs="*", default=[0.0, 4.0], help="how long a partition takes")
    parser.add_argument("--fan-in", type=int, nargs="*", default=[1, 4, 8, 16, 64])
    arguments = parser.parse_args()
    with workers_of(arguments.workers) as workers:
        cluster = Sleeping(ClusterOptions(workers.address))
        print("| workers | partitions | s each | fan-in | scheduler | slot | workers | wall, s | 1/s | busy |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        for partitions, seconds, fan_in in product(arguments.partitions, arguments.seconds, arguments.fan_in):
            cluster.seconds = seconds
            print(measured(workers, cluster, arguments.workers, partitions, fan_in), flush=True)
        cluster.close()


if __name__ == "__main__":
    main()

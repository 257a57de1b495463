"""A Dask cluster of very many workers on one machine, for benchmarks of the scheduler, which has a process to itself; a
few others have all workers."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import dask
import psutil
from distributed import Client, Scheduler, Worker

_IN_A_PROCESS = 125
"""Workers that share a process, and its event loop."""


@dataclass(frozen=True, slots=True)
class ManyWorkers:
    """A scheduler and its workers."""

    address: str
    scheduler: psutil.Process
    hosts: tuple[psutil.Process, ...]

    def scheduler_s(self) -> float:
        """The processor time of the scheduler up to now, in seconds."""
        times = self.scheduler.cpu_times()
        return float(times.user + times.system)

    def workers_s(self) -> float:
        """The processor time of all workers up to now, in seconds."""
        return sum(float(sum(process.cpu_times()[:2])) for process in self.hosts)


@contextmanager
def workers_of(number: int) -> Iterator[ManyWorkers]:
    """A cluster of so many workers of one thread each."""
    context = get_context("spawn")
    addresses = context.Queue()
    scheduler = context.Process(target=_scheduler, args=(addresses,), daemon=True)
    scheduler.start()
    address = addresses.get(timeout=120)
    hosts = [
        context.Process(target=_workers, args=(address, min(_IN_A_PROCESS, number - at)), daemon=True)
        for at in range(0, number, _IN_A_PROCESS)
    ]
    try:
        for host in hosts:
            host.start()
        connected: Any = Client  # which has no annotations
        with connected(address, set_as_default=False) as client:
            client.wait_for_workers(number, timeout=600)
        yield ManyWorkers(address, psutil.Process(scheduler.pid), tuple(psutil.Process(host.pid) for host in hosts))
    finally:
        for process in (*hosts, scheduler):
            process.terminate()
            process.join()


def _scheduler(addresses: Any) -> None:
    """Body of a process with a scheduler of its own."""

    async def serve() -> None:
        async with Scheduler(host="127.0.0.1", port=0, dashboard=False, dashboard_address="127.0.0.1:0") as scheduler:
            addresses.put(scheduler.address)
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
